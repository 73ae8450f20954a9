//! Signs and colors.
//!
//! In: text. Out: the same, colored if requested. Must not: query a terminal.

use std::fmt::Display;

use anstyle::{AnsiColor, Style as Ansi};

use crate::address::in_shard;
use crate::plan::change::Action;

/// The style of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style<'a> {
    /// Whether to use ANSI colors.
    pub color: bool,
    /// The terminal's width in columns; long values are cut to fit.
    pub width: usize,
    /// The shard's name as a prefix of addresses, in a run over several shards.
    pub shard: Option<&'a str>,
}

/// The minimum width; a narrower terminal is treated as this wide.
const NARROWEST: usize = 60;

impl Style<'_> {
    /// An address as shown; in a run over several shards, with the shard's prefix.
    pub(super) fn address(self, address: impl Display) -> String {
        in_shard(self.shard, address)
    }

    /// The maximum columns of a line.
    pub(super) fn columns(self) -> usize {
        self.width.max(NARROWEST)
    }

    fn paint(self, ansi: Ansi, text: &str) -> String {
        if self.color {
            format!("{}{text}{}", ansi.render(), ansi.render_reset())
        } else {
            text.to_owned()
        }
    }

    /// Bold.
    pub(in crate::report) fn bold(self, text: &str) -> String {
        self.paint(Ansi::new().bold(), text)
    }

    /// Gray, for less important text.
    pub(super) fn faint(self, text: &str) -> String {
        self.paint(Ansi::new().dimmed(), text)
    }

    /// Red, for deletions and errors.
    pub(in crate::report) fn danger(self, text: &str) -> String {
        self.paint(AnsiColor::Red.on_default().bold(), text)
    }

    /// Yellow, for warnings.
    pub(in crate::report) fn warning(self, text: &str) -> String {
        self.paint(AnsiColor::Yellow.on_default().bold(), text)
    }

    /// Green, for success.
    pub(super) fn success(self, text: &str) -> String {
        self.paint(AnsiColor::Green.on_default().bold(), text)
    }

    /// Text in the colour of its sign.
    pub(super) fn signed(self, sign: Sign, text: &str) -> String {
        match sign {
            Sign::Create => self.paint(AnsiColor::Green.on_default(), text),
            Sign::Delete => self.paint(AnsiColor::Red.on_default(), text),
            Sign::Update => self.paint(AnsiColor::Yellow.on_default(), text),
            Sign::None => text.to_owned(),
            Sign::Note => self.faint(text),
        }
    }

    /// The sign of an action, right-aligned in three columns.
    pub(super) fn action_sign(self, action: Action) -> String {
        let (create, delete) = (
            self.signed(Sign::Create, "+"),
            self.signed(Sign::Delete, "-"),
        );
        match action {
            Action::Create => format!("  {create}"),
            Action::Update => format!("  {}", self.signed(Sign::Update, "~")),
            Action::Delete => format!("  {delete}"),
            Action::DeleteThenCreate => format!("{delete}/{create}"),
            Action::CreateThenDelete => format!("{create}/{delete}"),
            Action::Forget => "  .".to_owned(),
            Action::Adopt => "  =".to_owned(),
            Action::NoOp => "   ".to_owned(),
        }
    }
}

/// The sign before a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::report) enum Sign {
    /// `+`
    Create,
    /// `-`
    Delete,
    /// `~`
    Update,
    /// No sign: unchanged.
    None,
    /// No sign: a note about other lines.
    Note,
}

impl Sign {
    /// The character.
    pub(in crate::report) fn symbol(self) -> char {
        match self {
            Self::Create => '+',
            Self::Delete => '-',
            Self::Update => '~',
            Self::None | Self::Note => ' ',
        }
    }
}
