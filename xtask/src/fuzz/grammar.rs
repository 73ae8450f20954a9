//! Templates by the grammar: nearly all parse, and most of them execute some way.
//!
//! In: chance, and data to read. Out: a template's text. May not: loop without end, save for
//! templates that call themselves, which have a limit.

use super::case::Data;
use super::literals;
use super::random::Random;

/// Go's functions, by the number of arguments that makes sense.
const UNARY: [&str; 9] = [
    "len", "not", "html", "js", "urlquery", "print", "println", "call", "printf",
];
const BINARY: [&str; 8] = ["eq", "ne", "lt", "le", "gt", "ge", "and", "or"];
const MANY: [&str; 13] = [
    "and", "or", "eq", "print", "println", "printf", "index", "slice", "html", "js", "urlquery",
    "call", "len",
];

pub(super) fn function(random: &mut Random) -> &'static str {
    match random.below(3) {
        0 => random.pick(&UNARY),
        1 => random.pick(&BINARY),
        _ => random.pick(&MANY),
    }
}

pub(super) struct Grammar<'r> {
    random: &'r mut Random,
    /// What the data have, such as `.Vars.A`.
    paths: Vec<String>,
    /// Keys and indices that may fit somewhere.
    keys: Vec<String>,
    variables: Vec<String>,
    loops: u32,
}

impl<'r> Grammar<'r> {
    pub(super) fn new(random: &'r mut Random, data: &Data) -> Self {
        let (mut paths, mut keys) = (vec![".".to_owned()], vec!["Nope".to_owned()]);
        collect(data, "", &mut paths, &mut keys);
        Self {
            random,
            paths,
            keys,
            variables: vec!["$".to_owned()],
            loops: 0,
        }
    }

    pub(super) fn template(&mut self) -> String {
        let mut text = String::new();
        if self.random.one_in(4) {
            let name = self.template_name();
            let body = self.body(1);
            text.push_str(&self.action(&format!("define {name}")));
            text.push_str(&body);
            text.push_str(&self.action("end"));
        }
        text.push_str(&self.body(2));
        text
    }

    /// A path that the data have, mostly, or one behind a variable.
    pub(super) fn path(&mut self) -> String {
        let path = self.random.below(self.paths.len());
        let mut path = self.paths[path].clone();
        if self.random.one_in(12) {
            let key = self.key();
            path = format!("{}.{key}", path.trim_end_matches('.'));
        }
        if self.random.one_in(5) {
            let variable = self.variable();
            return format!("{variable}{path}").trim_end_matches('.').to_owned();
        }
        path
    }

    fn key(&mut self) -> String {
        let key = self.random.below(self.keys.len());
        self.keys[key].clone()
    }

    fn variable(&mut self) -> String {
        if self.random.one_in(40) {
            return "$nope".to_owned();
        }
        let variable = self.random.below(self.variables.len());
        self.variables[variable].clone()
    }

    fn template_name(&mut self) -> &'static str {
        self.random
            .pick(&["\"a\"", "\"b\"", "`c d`", "\"\"", "\"\\x61\""])
    }

    fn action(&mut self, inside: &str) -> String {
        let left = self
            .random
            .pick(&["{{", "{{", "{{", "{{ ", "{{- ", "{{-\n"]);
        let right = self
            .random
            .pick(&["}}", "}}", "}}", " }}", " -}}", "\t-}}"]);
        format!("{left}{inside}{right}")
    }

    fn body(&mut self, depth: u32) -> String {
        let outside = self.variables.len();
        let count = self.random.between(1, 3);
        let text = (0..count).map(|_| self.item(depth)).collect();
        self.variables.truncate(outside);
        text
    }

    fn item(&mut self, depth: u32) -> String {
        match self.random.below(if depth == 0 { 12 } else { 20 }) {
            0 => self.text(),
            1 => self.declaration(),
            2 => {
                let (variable, pipeline) = (self.variable(), self.pipeline(2));
                self.action(&format!("{variable} = {pipeline}"))
            }
            3 if self.loops > 0 || self.random.one_in(20) => {
                let word = self
                    .random
                    .pick(&["break", "continue", "break ", "continue"]);
                let condition = self.pipeline(1);
                format!("{{{{if {condition}}}}}{{{{{word}}}}}{{{{end}}}}")
            }
            4 => self
                .random
                .pick(&["{{/* c */}}", " {{- /* c */ -}} "])
                .to_owned(),
            3 | 5..12 => {
                let pipeline = self.pipeline(3);
                self.action(&pipeline)
            }
            12 | 13 => self.branch("if", depth),
            14 | 15 => self.branch("with", depth),
            16 | 17 => self.range(depth),
            _ => self.call(depth),
        }
    }

    fn text(&mut self) -> String {
        match self.random.below(4) {
            0 => self
                .random
                .pick(&[" ", "\n", "\t\r\n ", "}", "{", "\u{a0}"])
                .to_owned(),
            _ => literals::text(self.random).replace("{{", "{"),
        }
    }

    fn declaration(&mut self) -> String {
        let pipeline = self.pipeline(2);
        let name = self.random.pick(&["$x", "$y", "$é1"]).to_owned();
        let text = self.action(&format!("{name} := {pipeline}"));
        self.variables.push(name);
        text
    }

    fn branch(&mut self, keyword: &str, depth: u32) -> String {
        let outside = self.variables.len();
        let condition = self.condition();
        let mut text = self.action(&format!("{keyword} {condition}"));
        text.push_str(&self.body(depth - 1));
        if self.random.one_in(4) {
            let condition = self.condition();
            text.push_str(&self.action(&format!("else {keyword} {condition}")));
            text.push_str(&self.body(depth - 1));
        }
        if self.random.one_in(2) {
            text.push_str(&self.action("else"));
            text.push_str(&self.body(depth - 1));
        }
        text.push_str(&self.action("end"));
        self.variables.truncate(outside);
        text
    }

    fn condition(&mut self) -> String {
        let pipeline = self.pipeline(2);
        match self.random.below(8) {
            0 => {
                self.variables.push("$c".to_owned());
                format!("$c := {pipeline}")
            }
            1 => format!("{} = {pipeline}", self.variable()),
            _ => pipeline,
        }
    }

    fn range(&mut self, depth: u32) -> String {
        let outside = self.variables.len();
        let over = match self.random.below(4) {
            0 => self.random.between(0, 4).to_string(),
            1 => self.pipeline(1),
            _ => self.path(),
        };
        let head = match self.random.below(6) {
            0 => {
                self.variables.push("$v".to_owned());
                format!("range $v := {over}")
            }
            1 | 2 => {
                self.variables.extend(["$i".to_owned(), "$v".to_owned()]);
                format!("range $i, $v := {over}")
            }
            3 if outside > 1 => {
                let (first, second) = (self.variable(), self.variable());
                format!("range {first}, {second} = {over}")
            }
            _ => format!("range {over}"),
        };
        let mut text = self.action(&head);
        self.loops += 1;
        text.push_str(&self.body(depth - 1));
        self.loops -= 1;
        if self.random.one_in(3) {
            text.push_str(&self.action("else"));
            text.push_str(&self.body(depth - 1));
        }
        text.push_str(&self.action("end"));
        self.variables.truncate(outside);
        text
    }

    fn call(&mut self, depth: u32) -> String {
        let name = if self.random.one_in(150) {
            "\"t\""
        } else {
            self.template_name()
        };
        let argument = if self.random.one_in(3) {
            String::new()
        } else {
            self.pipeline(1)
        };
        if self.random.one_in(2) && !argument.is_empty() {
            let variables = std::mem::replace(&mut self.variables, vec!["$".to_owned()]);
            let body = self.body(depth - 1);
            self.variables = variables;
            let head = self.action(&format!("block {name} {argument}"));
            return head + &body + &self.action("end");
        }
        self.action(&format!("template {name} {argument}"))
    }

    pub(super) fn pipeline(&mut self, depth: u32) -> String {
        let mut text = self.command(depth);
        while self.random.one_in(4) {
            text.push_str(self.random.pick(&[" | ", " | ", "|"]));
            text.push_str(&self.stage(depth));
        }
        text
    }

    /// A command that takes what is piped.
    fn stage(&mut self, depth: u32) -> String {
        if self.random.one_in(20) {
            return self.command(depth);
        }
        let name = function(self.random);
        let count = usize::from(BINARY.contains(&name));
        self.apply(name, count, depth)
    }

    fn command(&mut self, depth: u32) -> String {
        if depth == 0 || self.random.one_in(2) {
            return self.operand(depth);
        }
        let name = function(self.random);
        let count = match name {
            _ if self.random.one_in(25) => self.random.below(4),
            "index" | "slice" => self.random.between(1, 3),
            _ if BINARY.contains(&name) => 2,
            "print" | "println" | "printf" | "html" => self.random.between(0, 3),
            _ => 1,
        };
        self.apply(name, count, depth)
    }

    fn apply(&mut self, name: &str, count: usize, depth: u32) -> String {
        let mut text = name.to_owned();
        for index in 0..count {
            text.push_str(self.random.pick(&[" ", " ", " ", "  ", "\n"]));
            text.push_str(&match (name, index) {
                ("printf", 0) if !self.random.one_in(20) => self.format(),
                ("index", 1..) if self.random.one_in(2) => format!("{:?}", self.key()),
                ("index" | "slice", 1..) if !self.random.one_in(6) => {
                    self.random.between(0, 4).to_string()
                }
                _ => self.operand(depth.saturating_sub(1)),
            });
        }
        text
    }

    fn format(&mut self) -> String {
        let format = literals::format(self.random);
        // Go's quoting and Rust's differ in what they escape; a raw string needs none.
        if format.contains('`') {
            "\"%v\"".to_owned()
        } else {
            format!("`{format}`")
        }
    }

    pub(super) fn operand(&mut self, depth: u32) -> String {
        match self.random.below(14) {
            0..6 => self.path(),
            6 | 7 => self.variable(),
            8 | 9 if depth > 0 => {
                let pipeline = self.pipeline(depth - 1);
                if self.random.one_in(4) {
                    let key = self.key();
                    return format!("({pipeline}).{key}");
                }
                format!("({pipeline})")
            }
            10 => function(self.random).to_owned(),
            _ => literals::any(self.random),
        }
    }
}

/// The paths and keys of data; an item of a list is its own path's end.
fn collect(data: &Data, path: &str, paths: &mut Vec<String>, keys: &mut Vec<String>) {
    match data {
        Data::Object(entries) => {
            for (key, part) in entries {
                keys.push(key.clone());
                let path = format!("{path}.{key}");
                paths.push(path.clone());
                collect(part, &path, paths, keys);
            }
        }
        Data::List(items) => {
            // Within a range these are paths of dot.
            for item in items.iter().take(2) {
                collect(item, "", paths, keys);
            }
        }
        _ => {}
    }
}
