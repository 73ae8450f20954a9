//! What a template is parsed into: flat code for a small stack machine.
//!
//! Flat, because a tree would have to be walked, and dropped, by recursion, whose depth the
//! template's author chooses. Made by `parse`, run by `exec`, studied by `reads`.

use std::sync::{Arc, LazyLock};

use crate::function::Function;
use crate::functions::Builtin;
use crate::value::Value;

/// An operation. Those with a `path`, `name`, `constant`, `function`, `message` or `range` refer to
/// the table of that name in their [`Code`]; targets are operations' indices.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Op {
    /// Writes bytes of the source.
    Text {
        start: u32,
        end: u32,
    },
    /// Pushes a constant.
    Constant {
        constant: u32,
    },
    /// Pushes an untyped nil.
    Nil,
    /// Pushes dot.
    Dot {
        unwrap: bool,
    },
    /// Pushes a variable.
    Variable {
        name: u32,
        unwrap: bool,
    },
    /// Pushes a field of dot.
    Field {
        path: u32,
        flags: Flags,
    },
    /// Pushes a field of a variable.
    VariableField {
        name: u32,
        path: u32,
        flags: Flags,
    },
    /// Pops a value, pushes a field of it.
    ChainField {
        path: u32,
        flags: Flags,
    },
    /// Pops arguments, pushes what the function makes of them. Where `piped`, the value of the
    /// preceding command lies below the arguments, and is the last one.
    Call {
        function: u32,
        arguments: u32,
        piped: bool,
        tested: bool,
    },
    /// Fails unless the top is a string: `printf`'s format.
    CheckFormat {
        literal: bool,
    },
    /// Fails unless the top is of the kind that the function takes as that argument.
    CheckArgument {
        function: u32,
        argument: u32,
    },
    /// An interface's value in place of the interface, on the top.
    Unwrap,
    /// Of `and` and `or`: where the top decides, goes to `target`; else pops it.
    ShortCircuit {
        or: bool,
        piped: bool,
        target: u32,
    },
    /// Declares a variable with the top's value, which stays.
    Declare {
        name: u32,
    },
    /// Assigns the top's value, which stays.
    Assign {
        name: u32,
    },
    Pop,
    /// Pops a value and writes it.
    Print,
    /// Writes a field of dot: `Field` and `Print` in one.
    PrintField {
        path: u32,
    },
    /// Begins a block: remembers dot and the variables.
    Enter,
    /// Ends a block.
    Leave,
    /// Pops a value and goes to `target` unless it is true.
    If {
        target: u32,
        end: u32,
    },
    /// Pops a value and makes it dot, or goes to `target` unless it is true.
    With {
        target: u32,
        end: u32,
    },
    /// Pops a value and begins to range over it.
    Range {
        range: u32,
    },
    /// Goes on with the next item.
    Next {
        range: u32,
    },
    /// Leaves `blocks` blocks and goes to `target`.
    Unwind {
        blocks: u32,
        target: u32,
    },
    Jump {
        target: u32,
    },
    /// Calls a template; its dot is popped where there is an `argument`.
    Template {
        name: u32,
        argument: bool,
    },
    /// Fails with a message that the parser knew.
    Fail {
        message: u32,
    },
    /// Ends a template.
    Return,
}

impl Op {
    /// Whether all it does is to write a text, or the value of a field.
    pub(crate) fn only_inserts(&self) -> bool {
        matches!(
            self,
            Self::Text { .. } | Self::PrintField { .. } | Self::Return
        )
    }
}

/// How a field is read.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Flags {
    /// It is a whole command: an interface gives way to its value.
    pub(crate) unwrap: bool,
    /// The template tests its truth: that it is unset needs no report.
    pub(crate) tested: bool,
    /// It was given arguments, which only a method takes.
    pub(crate) arguments: bool,
    /// The arguments include the preceding command's value, on the top.
    pub(crate) piped: bool,
}

/// A range: its variables, and where its parts are.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Range {
    /// Index and item, or the item alone.
    pub(crate) variables: [u32; 2],
    pub(crate) variable_count: u8,
    pub(crate) assigns: bool,
    pub(crate) body: u32,
    pub(crate) otherwise: u32,
    pub(crate) end: u32,
}

/// Fields that are read one after the other: which of [`Code::fields`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Path {
    pub(crate) first: u32,
    pub(crate) end: u32,
}

/// Some bytes of the source.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    pub(crate) start: u32,
    pub(crate) end: u32,
}

/// Where an operation comes from.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Site {
    /// The byte that Go reports.
    pub(crate) position: u32,
    /// The node's bytes.
    pub(crate) start: u32,
    pub(crate) end: u32,
}

/// A function, as a template calls it.
#[derive(Clone, Debug)]
pub(crate) struct Callee {
    pub(crate) name: Arc<str>,
    pub(crate) body: Body,
}

#[derive(Clone, Debug)]
pub(crate) enum Body {
    Builtin(Builtin),
    Other(Function),
}

/// A text that was parsed.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) name: Arc<str>,
    pub(crate) text: Arc<str>,
    pub(crate) left: Arc<str>,
    pub(crate) right: Arc<str>,
}

/// One template.
#[derive(Debug)]
pub(crate) struct Code {
    pub(crate) name: Arc<str>,
    pub(crate) source: Arc<Source>,
    pub(crate) ops: Vec<Op>,
    pub(crate) sites: Vec<Site>,
    pub(crate) constants: Vec<Value>,
    /// Names of variables and of templates.
    pub(crate) names: Vec<Arc<str>>,
    /// What fields are read one after the other.
    pub(crate) paths: Vec<Path>,
    /// Where the source has the fields of the paths.
    pub(crate) fields: Vec<Span>,
    pub(crate) functions: Vec<Callee>,
    pub(crate) messages: Vec<String>,
    pub(crate) ranges: Vec<Range>,
    /// Where its definition begins.
    pub(crate) opening: u32,
    /// Nothing but white space and comments: such a definition replaces none.
    pub(crate) empty: bool,
}

/// The name of the variable that holds the data; every template has it at index 0.
pub(crate) const ROOT: &str = "$";

static ROOT_NAME: LazyLock<Arc<str>> = LazyLock::new(|| ROOT.into());

impl Code {
    /// An empty one, with room for some `operations`; what isn't needed is given back in the end.
    pub(crate) fn new(name: Arc<str>, source: Arc<Source>, operations: usize) -> Self {
        Self {
            name,
            source,
            ops: Vec::with_capacity(operations),
            sites: Vec::with_capacity(operations),
            constants: Vec::new(),
            names: vec![Arc::clone(&ROOT_NAME)],
            paths: Vec::with_capacity(operations / 4),
            fields: Vec::with_capacity(operations / 4),
            functions: Vec::new(),
            messages: Vec::new(),
            ranges: Vec::new(),
            opening: 0,
            empty: true,
        }
    }

    /// The names of the templates that it calls.
    pub(crate) fn called(&self) -> impl Iterator<Item = &Arc<str>> {
        self.ops.iter().filter_map(|op| match op {
            Op::Template { name, .. } => Some(&self.names[*name as usize]),
            _ => None,
        })
    }

    /// The names of the fields that a path follows.
    pub(crate) fn path(&self, path: u32) -> impl DoubleEndedIterator<Item = &str> + Clone {
        let Path { first, end } = self.paths[path as usize];
        let fields = &self.fields[first as usize..end as usize];
        let text = &*self.source.text;
        fields
            .iter()
            .map(move |field| &text[field.start as usize..field.end as usize])
    }

    pub(crate) fn path_text(&self, path: u32) -> String {
        let fields = self.path(path);
        let mut text = String::with_capacity(fields.clone().map(|field| 1 + field.len()).sum());
        for field in fields {
            text.push('.');
            text.push_str(field);
        }
        text
    }
}
