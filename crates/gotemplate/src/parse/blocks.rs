//! Actions that open, divide or close something: `if`, `range`, `define`, `else`, `end`, ….

use std::sync::Arc;

use super::builder::{BlockKind, Builder, Purpose};
use super::lex::{Keyword, Kind, Token};
use super::{Parsed, Parser, fail};
use crate::code::{Op, Range, Site};
use crate::quote::unquote;

impl Parser<'_> {
    fn site(start: usize, end: usize) -> Site {
        Site {
            position: start as u32,
            start: start as u32,
            end: end as u32,
        }
    }

    fn count_block(&mut self, opening: usize) -> Parsed<()> {
        self.open_blocks += 1;
        let limit = self.environment.limits().nesting;
        if self.open_blocks > limit {
            return fail(
                format!("blocks are nested deeper than the limit of {limit}"),
                opening,
            );
        }
        Ok(())
    }

    pub(super) fn innermost_opening(&mut self) -> usize {
        self.builder().block_opening()
    }

    pub(super) fn plain_action(&mut self, left: Token) -> Parsed<()> {
        let pipeline = self.pipeline("command", Kind::RightDelimiter)?;
        let builder = self.builder();
        let site = builder.latest_site();
        if pipeline.variable_count > 0 {
            builder.emit(Op::Pop, site);
            return Ok(());
        }
        let last = builder.here() - 1;
        // The commonest action of all gets an operation of its own.
        if let (true, Op::Field { path, flags }) = (pipeline.single_op, builder.op(last))
            && !flags.arguments
        {
            *builder.op_mut(last) = Op::PrintField { path };
        } else {
            builder.emit(Op::Print, Self::site(left.start(), pipeline.end));
        }
        Ok(())
    }

    pub(super) fn open(&mut self, keyword: Keyword, left: Token) -> Parsed<()> {
        self.count_block(left.start())?;
        let (kind, context) = match keyword {
            Keyword::With => (BlockKind::With, "with"),
            Keyword::Range => (BlockKind::Range(0), "range"),
            _ => (BlockKind::If, "if"),
        };
        let site = Self::site(left.start(), left.end());
        self.builder().enter(kind, left.start(), site);
        if kind == BlockKind::Range(0) {
            let pipeline = self.pipeline(context, Kind::RightDelimiter)?;
            let range = Range {
                variables: pipeline.variables,
                variable_count: pipeline.variable_count,
                assigns: pipeline.assigns,
                ..Range::default()
            };
            let builder = self.builder();
            let site = builder.latest_site();
            builder.range(range, site);
            return Ok(());
        }
        self.condition(kind, context)
    }

    fn condition(&mut self, kind: BlockKind, context: &'static str) -> Parsed<()> {
        let pipeline = self.pipeline(context, Kind::RightDelimiter)?;
        let builder = self.builder();
        if pipeline.commands == 1 {
            builder.mark_tested(pipeline.last_op);
        }
        let site = builder.latest_site();
        builder.condition(kind == BlockKind::With, site);
        Ok(())
    }

    /// `else`, `else if` and `else with`.
    pub(super) fn otherwise(&mut self, keyword: Token) -> Parsed<()> {
        let next = self.next_non_space()?;
        let chained = match next.kind {
            Kind::Keyword(Keyword::If) => Some(BlockKind::If),
            Kind::Keyword(Keyword::With) => Some(BlockKind::With),
            Kind::RightDelimiter => None,
            _ => return self.unexpected(next, "else"),
        };
        let found = format!("{}else{}", self.source.left, self.source.right);
        let builder = self.builder();
        let purpose = builder.purpose;
        let Some(block) = builder.innermost() else {
            let context = match purpose {
                Purpose::Text => "",
                Purpose::Define => " in define clause",
                Purpose::Block => " in block clause",
            };
            return fail(format!("unexpected {found}{context}"), keyword.start());
        };
        let kind = block.kind;
        if block.otherwise {
            return fail(format!("expected end; found {found}"), keyword.start());
        }
        let site = Self::site(keyword.start(), keyword.end());
        match chained {
            None => {
                self.builder().part_done(site);
                self.builder().otherwise();
                Ok(())
            }
            Some(chained) if chained == kind => {
                self.builder().part_done(site);
                self.condition(kind, if kind == BlockKind::If { "if" } else { "with" })
            }
            Some(_) => self.unexpected(next, "input"),
        }
    }

    pub(super) fn end(&mut self) -> Parsed<()> {
        let right = self.expect(Kind::RightDelimiter, "end")?;
        let builder = self.builder();
        if builder.has_open_blocks() {
            builder.leave(Self::site(right.start(), right.end()));
            self.open_blocks -= 1;
            return Ok(());
        }
        if builder.purpose == Purpose::Text {
            let message = format!("unexpected {}end{}", self.source.left, self.source.right);
            return fail(message, self.action.unwrap_or(right.start()));
        }
        self.open_blocks -= 1;
        self.finish_template()
    }

    pub(super) fn loop_control(&mut self, keyword: Token, breaks: bool) -> Parsed<()> {
        let name = if breaks { "{{break}}" } else { "{{continue}}" };
        self.expect(Kind::RightDelimiter, name)?;
        let site = Self::site(keyword.start(), keyword.end());
        if self.builder().loop_control(breaks, site) {
            Ok(())
        } else {
            fail(format!("{name} outside {{{{range}}}}"), keyword.start())
        }
    }

    fn template_name(&mut self, token: Token, context: &str) -> Parsed<Arc<str>> {
        if !matches!(token.kind, Kind::String | Kind::RawString) {
            return self.unexpected(token, context);
        }
        match unquote(self.slice(token)) {
            Some(name) => Ok(String::from_utf8_lossy(&name).into()),
            None => fail("invalid syntax", token.start()),
        }
    }

    fn begin_template(&mut self, name: Arc<str>, purpose: Purpose, opening: usize) -> Parsed<()> {
        self.count_block(opening)?;
        self.builders
            .push(Builder::with_purpose(name, self.source, purpose, opening));
        Ok(())
    }

    pub(super) fn define(&mut self, left: Token) -> Parsed<()> {
        const CONTEXT: &str = "define clause";
        let token = self.next_non_space()?;
        let name = self.template_name(token, CONTEXT)?;
        self.expect(Kind::RightDelimiter, CONTEXT)?;
        self.begin_template(name, Purpose::Define, left.start())
    }

    pub(super) fn block(&mut self, left: Token) -> Parsed<()> {
        const CONTEXT: &str = "block clause";
        let token = self.next_non_space()?;
        let name = self.template_name(token, CONTEXT)?;
        let pipeline = self.pipeline(CONTEXT, Kind::RightDelimiter)?;
        self.call_template(&name, true, left, token, pipeline.end);
        self.begin_template(name, Purpose::Block, left.start())
    }

    pub(super) fn template(&mut self, left: Token) -> Parsed<()> {
        const CONTEXT: &str = "template clause";
        let token = self.next_non_space()?;
        let name = self.template_name(token, CONTEXT)?;
        let next = self.next_non_space()?;
        let argument = next.kind != Kind::RightDelimiter;
        let mut end = next.end();
        if argument {
            self.put_back(next);
            end = self.pipeline(CONTEXT, Kind::RightDelimiter)?.end;
        }
        self.call_template(&name, argument, left, token, end);
        Ok(())
    }

    fn call_template(&mut self, name: &str, argument: bool, left: Token, token: Token, end: usize) {
        let site = Site {
            position: token.start() as u32,
            start: left.start() as u32,
            end: end as u32,
        };
        let builder = self.builder();
        let name = builder.name(name);
        builder.emit(Op::Template { name, argument }, site);
    }
}
