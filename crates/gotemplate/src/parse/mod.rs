//! The parser: from template text straight to code, in one pass.
//!
//! In: a text and an environment. Out: the code of each template defined in it, or the first
//! error. It keeps its own stacks of open blocks and parentheses and never recurses.

mod blocks;
mod builder;
mod lex;
mod operand;
mod pipeline;
mod show;

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::code::{Code, Source};
use crate::environment::Environment;
use crate::error::{ParseError, Problem};
use builder::Builder;
use lex::{Keyword, Kind, LexError, Lexer, Token};
use pipeline::Level;

pub(crate) use show::{operands, show};

/// The templates that one text defines, by name; the text's own among them.
pub(crate) type Definitions = BTreeMap<Arc<str>, Code>;

/// Parses `text`, which defines the template `name` and those in its `define` and `block` actions.
pub(crate) fn parse(
    name: &str,
    text: &str,
    environment: &Environment,
) -> Result<Definitions, ParseError> {
    let source = Arc::new(Source {
        name: name.into(),
        text: text.into(),
        left: Arc::clone(environment.left()),
        right: Arc::clone(environment.right()),
    });
    let mut parser = Parser::new(&source, environment);
    match parser.parse() {
        Ok(()) => Ok(parser.definitions),
        Err(failure) => Err(parser.explain(failure)),
    }
}

/// A parse error before it is dressed up: Go's words and the place.
/// Boxed, because every step may return one.
#[derive(Debug)]
struct Failure(Box<Detail>);

#[derive(Debug)]
struct Detail {
    message: String,
    offset: usize,
    hint: Option<String>,
    /// Our words, where they say more than Go's.
    words: Option<String>,
}

impl Failure {
    fn new(message: String, offset: usize, hint: Option<String>) -> Self {
        Self(Box::new(Detail {
            message,
            offset,
            hint,
            words: None,
        }))
    }
}

type Parsed<T> = Result<T, Failure>;

fn fail<T>(message: impl Into<String>, offset: usize) -> Parsed<T> {
    Err(Failure::new(message.into(), offset, None))
}

fn fail_with_hint<T>(message: String, offset: usize, hint: Option<String>) -> Parsed<T> {
    Err(Failure::new(message, offset, hint))
}

fn fail_in_words<T>(go: &str, words: String, offset: usize) -> Parsed<T> {
    let mut failure = Failure::new(go.to_owned(), offset, None);
    failure.0.words = Some(words);
    Err(failure)
}

struct Parser<'t> {
    source: &'t Arc<Source>,
    text: &'t str,
    environment: &'t Environment,
    lexer: Lexer<'t>,
    /// Tokens put back, the next one last.
    pending: Vec<Token>,
    /// The open parentheses of the pipeline that is being read; kept between pipelines for its
    /// memory.
    levels: Vec<Level>,
    /// Where the last token that was read begins.
    latest: usize,
    /// Where the action that is being read begins.
    action: Option<usize>,
    builders: Vec<Builder>,
    definitions: Definitions,
    open_blocks: u32,
}

impl<'t> Parser<'t> {
    fn new(source: &'t Arc<Source>, environment: &'t Environment) -> Self {
        let mut lexer = Lexer::new(&source.text, &source.left, &source.right);
        lexer.break_is_keyword = environment.function("break").is_none();
        lexer.continue_is_keyword = environment.function("continue").is_none();
        Self {
            source,
            text: &source.text,
            environment,
            lexer,
            pending: Vec::new(),
            levels: Vec::new(),
            latest: 0,
            action: None,
            builders: vec![Builder::new(Arc::clone(&source.name), source)],
            definitions: Definitions::new(),
            open_blocks: 0,
        }
    }

    fn builder(&mut self) -> &mut Builder {
        self.builders
            .last_mut()
            .expect("the text's own builder stays to the end")
    }

    fn next(&mut self) -> Parsed<Token> {
        if let Some(token) = self.pending.pop() {
            return Ok(token);
        }
        match self.lexer.next_token() {
            Ok(token) => {
                self.latest = token.start();
                Ok(token)
            }
            Err(error) => Err(self.lex_failure(*error)),
        }
    }

    fn put_back(&mut self, token: Token) {
        self.pending.push(token);
    }

    fn next_non_space(&mut self) -> Parsed<Token> {
        loop {
            let token = self.next()?;
            if token.kind != Kind::Space {
                return Ok(token);
            }
        }
    }

    fn peek_non_space(&mut self) -> Parsed<Token> {
        let token = self.next_non_space()?;
        self.put_back(token);
        Ok(token)
    }

    fn expect(&mut self, kind: Kind, context: &str) -> Parsed<Token> {
        let token = self.next_non_space()?;
        if token.kind == kind {
            Ok(token)
        } else {
            self.unexpected(token, context)
        }
    }

    fn slice(&self, token: Token) -> &'t str {
        &self.text[token.start()..token.end()]
    }

    fn unexpected<T>(&self, token: Token, context: &str) -> Parsed<T> {
        let message = format!("unexpected {} in {context}", token.describe(self.text));
        fail(message, token.start())
    }

    /// Go says where the action began if that isn't on the line of the error.
    #[cold]
    fn lex_failure(&mut self, error: LexError) -> Failure {
        self.latest = error.start;
        let mut message = error.message;
        if let Some(action) = self.action {
            let line = line_of(self.text, action);
            if line != line_of(self.text, error.start) {
                let place = format!("started at {}:{line}", self.source.name);
                let joint = if message.ends_with(" action") {
                    " "
                } else {
                    " in action "
                };
                message = format!("{message}{joint}{place}");
            }
        }
        // What isn't closed is found at the end of the text, but made at its beginning.
        let offset = match self.action {
            Some(action) if error.start >= self.text.len() => action,
            _ => error.start,
        };
        Failure::new(message, offset, None)
    }

    fn explain(&self, failure: Failure) -> ParseError {
        let Detail {
            message,
            offset,
            hint,
            words,
        } = *failure.0;
        let line = line_of(self.text, self.latest);
        let go = format!("template: {}:{line}: {message}", self.source.name);
        ParseError::new(Problem::new(
            words.unwrap_or(message),
            &self.source.name,
            self.text,
            offset,
            hint,
            go,
        ))
    }

    fn parse(&mut self) -> Parsed<()> {
        if u32::try_from(self.text.len()).is_err() {
            return fail("the text is longer than the limit of 4 GiB", 0);
        }
        loop {
            let token = self.next_non_space()?;
            match token.kind {
                Kind::End => break,
                Kind::Text => self.builder().text(token),
                Kind::LeftDelimiter => {
                    self.action = Some(token.start());
                    self.action(token)?;
                    self.action = None;
                }
                _ => return self.unexpected(token, "input"),
            }
        }
        if self.builders.len() > 1 || self.builder().has_open_blocks() {
            let opening = self.innermost_opening();
            return fail_in_words("unexpected EOF", self.not_ended(opening), opening);
        }
        self.finish_template()
    }

    /// What is wrong with the action that begins at `opening`: the text ends before it does.
    fn not_ended(&self, opening: usize) -> String {
        let (left, right) = (&*self.source.left, &*self.source.right);
        let action = self.text[opening..].strip_prefix(left).unwrap_or_default();
        let action = action.strip_prefix('-').unwrap_or(action).trim_start();
        let is_letter = |letter: char| letter.is_ascii_lowercase();
        let keyword = &action[..action.len() - action.trim_start_matches(is_letter).len()];
        format!("unexpected EOF: this `{keyword}` has no `{left} end {right}`")
    }

    /// Takes the innermost builder's code as a template's definition.
    fn finish_template(&mut self) -> Parsed<()> {
        let builder = self.builders.pop().expect("a template is being built");
        let code = builder.finish();
        let known = self.definitions.get(&code.name);
        if known.is_none_or(|known| known.empty) {
            self.definitions.insert(Arc::clone(&code.name), code);
        } else if !code.empty {
            let name = crate::quote::quoted(&code.name);
            let message = format!("template: multiple definition of template {name}");
            let at = code.sites.first().map_or(0, |site| site.start as usize);
            return fail(message, at);
        }
        Ok(())
    }

    fn action(&mut self, left: Token) -> Parsed<()> {
        let token = self.next_non_space()?;
        let Kind::Keyword(keyword) = token.kind else {
            self.put_back(token);
            return self.plain_action(left);
        };
        match keyword {
            Keyword::Define if self.builders.len() == 1 && !self.builder().has_open_blocks() => {
                self.define(left)
            }
            Keyword::Block => self.block(left),
            Keyword::Break => self.loop_control(token, true),
            Keyword::Continue => self.loop_control(token, false),
            Keyword::Else => self.otherwise(token),
            Keyword::End => self.end(),
            Keyword::If | Keyword::Range | Keyword::With => self.open(keyword, left),
            Keyword::Template => self.template(left),
            Keyword::Define => self.unexpected(token, "command"),
        }
    }
}

/// The bytes that each token covers, up to the end of the text or the first error.
#[cfg(feature = "fuzzing")]
pub(crate) fn lex<'t>(
    text: &'t str,
    left: &'t str,
    right: &'t str,
) -> impl Iterator<Item = std::ops::Range<usize>> + 't {
    let mut lexer = Lexer::new(text, left, right);
    let mut ended = false;
    std::iter::from_fn(move || {
        if ended {
            return None;
        }
        let token = lexer.next_token().ok()?;
        ended = token.kind == Kind::End;
        Some(token.start()..token.end())
    })
}

/// The line, from 1, that a byte is on.
pub(crate) fn line_of(text: &str, offset: usize) -> usize {
    let before = text.as_bytes().get(..offset).unwrap_or(text.as_bytes());
    // One more piece than there are newlines.
    before.split(|byte| *byte == b'\n').count()
}
