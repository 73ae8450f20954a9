//! The syntax tree: blocks, attributes, expressions and templates, each with its span.

use std::sync::Arc;

use crate::error::Span;
use crate::number::Number;

/// Attributes and blocks, in source order.
#[derive(Clone, Debug, Default)]
pub struct Body {
    pub items: Vec<Item>,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub enum Item {
    Attribute(Attribute),
    Block(Block),
}

impl Body {
    pub fn attributes(&self) -> impl Iterator<Item = &Attribute> {
        self.items.iter().filter_map(|item| match item {
            Item::Attribute(attribute) => Some(attribute),
            Item::Block(_) => None,
        })
    }

    pub fn blocks(&self) -> impl Iterator<Item = &Block> {
        self.items.iter().filter_map(|item| match item {
            Item::Block(block) => Some(block),
            Item::Attribute(_) => None,
        })
    }

    pub fn attribute(&self, name: &str) -> Option<&Attribute> {
        self.attributes()
            .find(|attribute| &*attribute.name.name == name)
    }
}

/// A name.
#[derive(Clone, Debug)]
pub struct Ident {
    pub name: Arc<str>,
    pub span: Span,
}

/// `name = value`
#[derive(Clone, Debug)]
pub struct Attribute {
    pub name: Ident,
    pub value: Expression,
    pub span: Span,
}

/// `kind "label" { … }`
#[derive(Clone, Debug)]
pub struct Block {
    pub kind: Ident,
    pub labels: Vec<Label>,
    pub body: Body,
    /// The whole block.
    pub span: Span,
    /// From its type to before the `{`.
    pub header: Span,
}

/// A block's label, quoted or not.
#[derive(Clone, Debug)]
pub struct Label {
    pub name: Arc<str>,
    /// Including quotation marks.
    pub span: Span,
}

/// An expression and its place.
#[derive(Clone, Debug)]
pub struct Expression {
    pub kind: ExpressionKind,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub enum ExpressionKind {
    Null,
    Bool(bool),
    Number(Number),
    /// A string without interpolations, with resolved escapes.
    String(Arc<str>),
    Template(Box<Template>),
    Tuple(Vec<Expression>),
    Object(Vec<ObjectItem>),
    Parenthesis(Box<Expression>),
    Variable(Ident),
    Traversal(Box<Traversal>),
    Call(Box<Call>),
    Unary(UnaryOperator, Box<Expression>),
    /// Operators of one precedence level, from left to right.
    Binary(Box<Binary>),
    Conditional(Box<Conditional>),
    For(Box<For>),
}

/// `key = value` in an object.
#[derive(Clone, Debug)]
pub struct ObjectItem {
    pub key: ObjectKey,
    pub value: Expression,
}

#[derive(Clone, Debug)]
pub enum ObjectKey {
    /// A name, which is itself the key.
    Name(Ident),
    Expression(Expression),
}

/// A value and the steps that access its parts.
#[derive(Clone, Debug)]
pub struct Traversal {
    pub base: Expression,
    pub steps: Vec<Step>,
}

#[derive(Clone, Debug)]
pub struct Step {
    pub kind: StepKind,
    /// From its `.` or `[`.
    pub span: Span,
}

#[derive(Clone, Debug)]
pub enum StepKind {
    /// `.name`
    Attribute(Ident),
    /// `[key]`
    Index(Expression),
    /// `.0`
    LegacyIndex(u64),
    /// `.*` and the following `.name` steps, applied to each element.
    AttributeSplat(Vec<Step>),
    /// `[*]` and all following steps, applied to each element.
    FullSplat(Vec<Step>),
}

/// `name(arguments)`
#[derive(Clone, Debug)]
pub struct Call {
    pub name: Ident,
    pub arguments: Vec<Expression>,
    /// Whether the last argument is expanded: `…`
    pub expands: bool,
    /// The parentheses and everything between them.
    pub parentheses: Span,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnaryOperator {
    Negate,
    Not,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BinaryOperator {
    Or,
    And,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

impl BinaryOperator {
    pub fn symbol(self) -> &'static str {
        match self {
            Self::Or => "||",
            Self::And => "&&",
            Self::Equal => "==",
            Self::NotEqual => "!=",
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
            Self::Add => "+",
            Self::Subtract => "-",
            Self::Multiply => "*",
            Self::Divide => "/",
            Self::Remainder => "%",
        }
    }

    /// The precedence, from 0 for `||` to 5 for `*`; higher binds tighter.
    pub fn precedence(self) -> usize {
        match self {
            Self::Or => 0,
            Self::And => 1,
            Self::Equal | Self::NotEqual => 2,
            Self::Less | Self::LessOrEqual | Self::Greater | Self::GreaterOrEqual => 3,
            Self::Add | Self::Subtract => 4,
            Self::Multiply | Self::Divide | Self::Remainder => 5,
        }
    }
}

#[derive(Clone, Debug)]
pub struct Binary {
    pub first: Expression,
    pub rest: Vec<(BinaryOperator, Span, Expression)>,
}

/// `condition ? yes : no`
#[derive(Clone, Debug)]
pub struct Conditional {
    pub condition: Expression,
    pub yes: Expression,
    pub no: Expression,
}

/// `[for key, value in collection : result if condition]`, or with braces and `key => result`.
#[derive(Clone, Debug)]
pub struct For {
    pub key_name: Option<Ident>,
    pub value_name: Ident,
    pub collection: Expression,
    /// Only for an object.
    pub key: Option<Expression>,
    pub result: Expression,
    /// Whether values with the same key are grouped into a tuple: `...`
    pub groups: bool,
    pub condition: Option<Expression>,
}

/// A string with interpolations or directives.
#[derive(Clone, Debug)]
pub struct Template {
    pub parts: Vec<TemplatePart>,
    /// Whether it is one interpolation and nothing else, whose value it then passes on as it is.
    pub passes: bool,
}

#[derive(Clone, Debug)]
pub enum TemplatePart {
    /// With resolved escapes, stripped and dedented.
    Literal(Arc<str>),
    Interpolation(Expression),
    If(Box<TemplateIf>),
    For(Box<TemplateFor>),
}

#[derive(Clone, Debug)]
pub struct TemplateIf {
    pub condition: Expression,
    pub yes: Vec<TemplatePart>,
    pub no: Vec<TemplatePart>,
}

#[derive(Clone, Debug)]
pub struct TemplateFor {
    pub key_name: Option<Ident>,
    pub value_name: Ident,
    pub collection: Expression,
    pub body: Vec<TemplatePart>,
    /// From `%{ for` to its `}`.
    pub span: Span,
}
