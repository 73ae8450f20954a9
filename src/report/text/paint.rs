//! Signs and colors.
//!
//! In: text. Out: the same, colored if requested. Must not: query a terminal.

use std::fmt::Display;

use anstyle::{AnsiColor, Style as Ansi};

use super::value;
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
    /// Where the signs of lines are.
    pub signs: Signs,
}

/// Where the signs of lines are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Signs {
    /// Before the text, as in Terraform.
    #[default]
    Indented,
    /// In the first column, where the highlighters of `diff` look for them; `!` marks an update.
    Margin,
}

/// The minimum width; a narrower terminal is treated as this wide.
const NARROWEST: usize = 60;

impl Style<'_> {
    /// An address as shown; in a run over several shards, with the shard's prefix.
    pub(in crate::report) fn address(self, address: impl Display) -> String {
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

    /// A line after this many columns, with its sign.
    pub(super) fn row(self, columns: usize, sign: Sign, text: &str) -> String {
        match self.signs {
            Signs::Indented => {
                let symbol = self.signed(sign, &sign.symbol().to_string());
                format!("{:columns$}{symbol} {text}", "")
            }
            Signs::Margin => format!("{}{:columns$} {text}", sign.margin(), ""),
        }
    }

    /// A line of a text's diff after this many columns, cut to the terminal.
    pub(super) fn text_row(self, columns: usize, sign: Sign, text: &str) -> String {
        let room = self.columns().saturating_sub(columns);
        match self.signs {
            Signs::Indented => {
                let shown = format!("{} {text}", sign.symbol());
                let shown = self.signed(sign, &value::cut(shown.trim_end(), room));
                format!("{:columns$}{shown}", "").trim_end().to_owned()
            }
            Signs::Margin => {
                let shown = value::cut(text.trim_end(), room.saturating_sub(2));
                self.row(columns, sign, &shown).trim_end().to_owned()
            }
        }
    }

    /// The heading of a block.
    pub(super) fn title(self, text: &str) -> String {
        match self.signs {
            Signs::Indented => format!("  # {text}"),
            Signs::Margin => format!("# {text}"),
        }
    }

    /// A remark below the heading of a block.
    pub(super) fn remark(self, text: &str) -> String {
        let text = format!("# ({text})");
        match self.signs {
            Signs::Indented => format!("  {}", self.faint(&text)),
            Signs::Margin => text,
        }
    }

    /// The first line of a block, with the sign of its action.
    pub(super) fn action_row(self, action: Action, text: &str) -> String {
        let sign = self.action_sign(action);
        match (self.signs, action) {
            (Signs::Indented, _) if sign.trim().is_empty() => format!("    {text}"),
            (Signs::Indented, _) => format!("{sign} {text}"),
            (Signs::Margin, Action::Create) => format!("+   {text}"),
            (Signs::Margin, Action::Delete) => format!("-   {text}"),
            (Signs::Margin, Action::Update) => format!("!   {text}"),
            (Signs::Margin, Action::CreateThenDelete | Action::DeleteThenCreate) => {
                format!("!{sign} {text}")
            }
            (Signs::Margin, Action::Forget | Action::Adopt | Action::NoOp) => {
                format!("{sign} {text}")
            }
        }
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
    /// The character in the first column of a diff.
    fn margin(self) -> char {
        match self {
            Self::Update => '!',
            _ => self.symbol(),
        }
    }

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
