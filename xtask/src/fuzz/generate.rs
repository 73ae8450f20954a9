//! New cases from old ones and from the grammar.
//!
//! In: a seed and the cases of a corpus. Out: one case after the other, the same for the same seed.
//! May not: ask what any of them gives.

use super::case::{Case, Data};
use super::grammar::{self, Grammar};
use super::literals;
use super::random::Random;
use super::tokens::{segments, tokens};

/// Longer templates than this are left alone: what is in them is in shorter ones, too.
const LONGEST: usize = 6_000;
/// And larger data.
const LARGEST: usize = 400;

const KEYWORDS: [&str; 10] = [
    "if", "else", "end", "range", "with", "define", "block", "template", "break", "continue",
];
const MARKS: [&str; 14] = [
    "(", ")", "|", ",", ":=", "=", " ", "\n", "\t", ".", "$", "}}", "{{", "-",
];

const DELIMITERS: [(&str, &str); 12] = [
    ("<<", ">>"),
    ("[", "]"),
    ("$(", ")"),
    ("<%", "%>"),
    ("((", "))"),
    ("@@", "@@"),
    ("{", "}"),
    ("{{", ">>"),
    ("/*", "*/"),
    ("-", "-"),
    ("é", "日本"),
    ("|", "\""),
];

pub(super) struct Generator {
    random: Random,
    seeds: Vec<Case>,
}

impl Generator {
    /// Cases beyond a size are left out; there have to be some that aren't.
    pub(super) fn new(seed: u64, seeds: &[Case]) -> Self {
        let fit = seeds
            .iter()
            .filter(|case| case.template.len() <= LONGEST && case.data.count() <= LARGEST);
        Self {
            random: Random::new(seed),
            seeds: fit.cloned().collect(),
        }
    }

    fn seed(&mut self) -> Case {
        let index = self.random.below(self.seeds.len());
        self.seeds[index].clone()
    }

    pub(super) fn case(&mut self) -> Case {
        let mut case = self.seed();
        match self.random.below(20) {
            0..7 => self.change_tokens(&mut case),
            7..10 => self.splice(&mut case),
            10..14 => case.template = Grammar::new(&mut self.random, &case.data).template(),
            14..16 => case.template = self.expressions(&case.data),
            16 => {
                self.splice(&mut case);
                self.change_tokens(&mut case);
            }
            17 => self.change_characters(&mut case.template),
            _ => {
                case.template = Grammar::new(&mut self.random, &case.data).template();
                self.change_tokens(&mut case);
            }
        }
        if self.random.one_in(3) {
            for _ in 0..self.random.between(1, 4) {
                self.change_data(&mut case);
            }
        }
        if self.random.one_in(12) {
            self.change_definitions(&mut case);
        }
        if self.random.one_in(5) {
            self.change_options(&mut case);
        }
        case
    }

    /// Another template associated with it, which may be the one to execute.
    fn change_definitions(&mut self, case: &mut Case) {
        let name = self.random.pick(&["a", "b", "t", "c d", ""]).to_owned();
        let text = match self.random.below(4) {
            0 => self
                .random
                .pick(&["", " \n", "{{/* c */}}", "x"])
                .to_owned(),
            1 => self.seed().template,
            _ => Grammar::new(&mut self.random, &case.data).template(),
        };
        if !name.is_empty() && self.random.one_in(4) && case.option("entry").is_none() {
            let options = format!("{};entry={name}", case.options);
            case.options = String::from(options.trim_matches(';'));
        }
        case.defines.insert(name, text);
    }

    /// A few actions, each a pipeline: functions and formats on what the data have.
    fn expressions(&mut self, data: &Data) -> String {
        let mut text = String::new();
        for _ in 0..self.random.between(1, 3) {
            let pipeline = match self.random.below(4) {
                0 => {
                    let format = literals::format(&mut self.random).replace('`', "");
                    let mut grammar = Grammar::new(&mut self.random, data);
                    let (first, second) = (grammar.operand(1), grammar.operand(0));
                    format!("printf `{format}` {first} {second}")
                }
                1 => literals::any(&mut self.random),
                _ => Grammar::new(&mut self.random, data).pipeline(3),
            };
            text.push_str(&format!("{{{{{pipeline}}}}}|"));
        }
        text
    }

    /// Actions of another template among this one's.
    fn splice(&mut self, case: &mut Case) {
        let other = self.seed();
        let (own, others) = (segments(&case.template), segments(&other.template));
        if others.is_empty() {
            return;
        }
        let at = self.random.below(own.len() + 1);
        let from = self.random.below(others.len());
        let to = self.random.between(from + 1, others.len().min(from + 6));
        let resume = if self.random.one_in(2) {
            at
        } else {
            self.random.between(at, own.len())
        };
        let parts = [&own[..at], &others[from..to], &own[resume..]];
        case.template = parts.concat().concat();
        for (name, text) in other.defines {
            case.defines.entry(name).or_insert(text);
        }
    }

    fn change_tokens(&mut self, case: &mut Case) {
        let text = case.template.clone();
        let mut tokens: Vec<String> = tokens(&text).into_iter().map(str::to_owned).collect();
        for _ in 0..self.random.between(1, 4) {
            let at = self.random.below(tokens.len());
            let Some(token) = tokens.get(at).cloned() else {
                break;
            };
            match self.random.below(12) {
                0 => drop(tokens.remove(at)),
                1 => tokens.insert(at, token),
                2 => {
                    let other = self.random.below(tokens.len());
                    tokens.swap(at, other);
                }
                3 | 4 => {
                    let new = self.new_token(&case.data);
                    let space = if self.random.one_in(4) { "" } else { " " };
                    tokens.insert(at, format!("{space}{new}{space}"));
                }
                _ => tokens[at] = self.like(&token, &case.data),
            }
        }
        case.template = tokens.concat();
    }

    fn new_token(&mut self, data: &Data) -> String {
        match self.random.below(8) {
            0 => self.random.pick(&KEYWORDS).to_owned(),
            1 | 2 => self.random.pick(&MARKS).to_owned(),
            3 => grammar::function(&mut self.random).to_owned(),
            4 => Grammar::new(&mut self.random, data).path(),
            5 => Grammar::new(&mut self.random, data).operand(2),
            _ => literals::any(&mut self.random),
        }
    }

    /// Another token of the same kind.
    fn like(&mut self, token: &str, data: &Data) -> String {
        let first = token.chars().next().unwrap_or_default();
        match first {
            '{' => self
                .random
                .pick(&["{{", "{{- ", "{{-", "{{ ", "{", "{{/*"])
                .to_owned(),
            '}' | '-' => self
                .random
                .pick(&["}}", " -}}", "-}}", " }}", "}", "*/}}"])
                .to_owned(),
            '.' | '$' => Grammar::new(&mut self.random, data).path(),
            '0'..='9' => literals::number(&mut self.random),
            '"' if token.contains('%') || self.random.one_in(6) => {
                let format = literals::format(&mut self.random);
                format!("\"{}\"", format.replace(['"', '\\', '\n'], "%"))
            }
            '"' if self.random.one_in(2) => {
                let mut text = token.to_owned();
                self.change_characters(&mut text);
                text
            }
            '"' | '`' | '\'' => literals::any(&mut self.random),
            ' ' | '\n' | '\t' => self
                .random
                .pick(&["", "  ", "\n", "\t", "\r\n", "\u{a0}"])
                .to_owned(),
            _ if KEYWORDS.contains(&token) => self.random.pick(&KEYWORDS).to_owned(),
            _ if first.is_alphabetic() && !token.contains(' ') => {
                grammar::function(&mut self.random).to_owned()
            }
            _ => {
                let mut text = token.to_owned();
                self.change_characters(&mut text);
                text
            }
        }
    }

    fn change_characters(&mut self, text: &mut String) {
        let mut characters: Vec<char> = text.chars().collect();
        for _ in 0..self.random.between(1, 4) {
            let at = self.random.below(characters.len() + 1);
            let end = (at + self.random.below(6)).min(characters.len());
            match self.random.below(4) {
                0 => drop(characters.drain(at..end)),
                1 => {
                    let copy = characters[at..end].to_vec();
                    characters.splice(at..at, copy);
                }
                2 => characters.insert(at, literals::character(&mut self.random)),
                _ => {
                    let new = self.random.character("{}-.$|()\"'`\\%=:, \n/*0xe_1");
                    characters.insert(at, new);
                }
            }
        }
        *text = characters.into_iter().collect();
    }

    fn change_data(&mut self, case: &mut Case) {
        let number = self.random.below(case.data.count());
        let new = self.data(2);
        let key = literals::text(&mut self.random);
        let known = self.random.pick(&["A", "Name", "X", "V"]).to_owned();
        let key = if self.random.one_in(3) { key } else { known };
        let Some(part) = case.data.part_mut(number) else {
            return;
        };
        match part {
            Data::Object(entries) if !self.random.one_in(6) => {
                let count = entries.len();
                if self.random.one_in(2) || count == 0 {
                    entries.insert(key, new);
                } else {
                    let gone = entries.keys().nth(self.random.below(count)).cloned();
                    entries.remove(&gone.unwrap_or_default());
                }
            }
            Data::List(items) if !self.random.one_in(4) => {
                let at = self.random.below(items.len() + 1);
                if self.random.one_in(2) || at == items.len() {
                    items.insert(at, new);
                } else {
                    items.remove(at);
                }
            }
            part => *part = new,
        }
    }

    fn data(&mut self, depth: u32) -> Data {
        match self.random.below(if depth == 0 { 8 } else { 10 }) {
            0 => Data::Null,
            1 => Data::Bool(self.random.one_in(2)),
            2..5 => Data::Number(self.json_number()),
            5 if self.random.one_in(3) => Data::Text(literals::format(&mut self.random)),
            5..8 => Data::Text(literals::text(&mut self.random)),
            8 => {
                let count = self.random.below(5);
                let strings = self.random.one_in(3);
                let item = |own: &mut Self| {
                    if strings {
                        Data::Text(literals::text(&mut own.random))
                    } else {
                        own.data(depth - 1)
                    }
                };
                Data::List((0..count).map(|_| item(self)).collect())
            }
            _ => {
                let count = self.random.below(4);
                let names = ["A", "B", "Name", "V", "Vars"];
                let entry =
                    |own: &mut Self| (own.random.pick(&names).to_owned(), own.data(depth - 1));
                Data::Object((0..count).map(|_| entry(self)).collect())
            }
        }
    }

    /// A number as JSON writes them, from tiny to huge.
    fn json_number(&mut self) -> String {
        let sign = self.random.pick(&["", "", "-"]);
        let whole = match self.random.below(8) {
            0 => self.random.next().to_string(),
            1 => "0".to_owned(),
            2 => (1_u64 << self.random.below(64)).to_string(),
            _ => self.random.below(2_000_000).to_string(),
        };
        let fraction = match self.random.below(4) {
            0 => format!(".{}", self.random.below(100_000)),
            1 if self.random.one_in(4) => ".0".to_owned(),
            _ => String::new(),
        };
        let exponent = if self.random.one_in(5) {
            let sign = self.random.pick(&["", "-", "+"]);
            format!(
                "{}{sign}{}",
                self.random.character("eE"),
                self.random.below(280)
            )
        } else {
            String::new()
        };
        format!("{sign}{whole}{fraction}{exponent}")
    }

    fn change_options(&mut self, case: &mut Case) {
        let missing = self
            .random
            .pick(&["", "missingkey=zero", "missingkey=error"]);
        let shape = self
            .random
            .pick(&["", "numbers=int", "numbers=json", "shape=typed"]);
        let mut options: Vec<&str> = case.options.split(';').collect();
        options.retain(|option| option.starts_with("delims=") || option.starts_with("entry="));
        options.extend(
            [missing, shape]
                .into_iter()
                .filter(|option| !option.is_empty()),
        );
        let mut all = options.join(";");
        if case.option("delims").is_none() && self.random.one_in(6) {
            let (left, right) = DELIMITERS[self.random.below(DELIMITERS.len())];
            for text in case.defines.values_mut().chain([&mut case.template]) {
                *text = text.replace("{{", left).replace("}}", right);
            }
            all = format!("{all};delims={left},{right}");
        }
        case.options = String::from(all.trim_matches(';'));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seeds() -> Vec<Case> {
        let line = |template: &str| Case {
            template: template.to_owned(),
            data: Data::Object([("A".to_owned(), Data::Text("x".to_owned()))].into()),
            ..Case::default()
        };
        vec![
            line("a {{.A}} b"),
            line("{{if .A}}{{printf \"%d\" 1}}{{end}}"),
            line(""),
        ]
    }

    #[test]
    fn a_seed_decides_every_case() {
        let cases = |seed| -> Vec<Case> {
            let mut generator = Generator::new(seed, &seeds());
            (0..500).map(|_| generator.case()).collect()
        };
        assert_eq!(cases(1), cases(1));
        assert_ne!(cases(1), cases(2));
    }

    #[test]
    fn cases_can_be_read_back() {
        let mut generator = Generator::new(3, &seeds());
        for _ in 0..2_000 {
            let case = generator.case();
            assert_eq!(Case::parse(&case.question()).as_ref(), Some(&case));
        }
    }
}
