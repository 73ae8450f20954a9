//! Expressions of HCL, written on one line.
//!
//! In: an [`Expression`], and what to put in the place of names. Out: its text. May not: evaluate
//! anything, or keep comments within.

use std::sync::Arc;

use nstance_hcl::{
    Expression, ExpressionKind, For, Ident, Kind, ObjectKey, Step, StepKind, TemplatePart, Type,
    UnaryOperator, Value,
};

use super::hcl_text::{escaped, inner, quoted};

/// Longer texts aren't written: what stands for a name may hold names itself, and so on.
const LONGEST: usize = 1 << 20;

/// What stands for a reference, and how many of its steps it stands for. `None`: itself.
pub(super) type Instead<'s> = &'s mut dyn FnMut(&Expression) -> Option<(String, usize)>;

/// The text of an expression. `None` if it is too long.
pub(super) fn written(expression: &Expression, instead: Instead<'_>) -> Option<String> {
    let mut writer = Writer::new(instead);
    writer.expression(expression);
    writer.whole()
}

/// The same of what stands between the quotes of a template.
pub(super) fn template_text(expression: &Expression, instead: Instead<'_>) -> Option<String> {
    let mut writer = Writer::new(instead);
    match &expression.kind {
        ExpressionKind::String(text) => writer.out = escaped(text),
        ExpressionKind::Template(template) => writer.parts(&template.parts, escaped),
        _ => writer.interpolation(expression),
    }
    writer.whole()
}

/// The text of an expression in which everything stands for itself.
pub(super) fn plain(expression: &Expression) -> String {
    written(expression, &mut |_| None).unwrap_or_default()
}

/// A value as an expression that gives it.
pub(super) fn literal(value: &Value) -> String {
    let elements = |elements: &[Value]| {
        let elements: Vec<String> = elements.iter().map(literal).collect();
        format!("[{}]", elements.join(", "))
    };
    let entries = |entries: &nstance_hcl::Entries| {
        let entries: Vec<String> = entries
            .iter()
            .map(|(key, value)| format!("{} = {}", quoted(key), literal(value)))
            .collect();
        if entries.is_empty() {
            "{}".to_owned()
        } else {
            format!("{{ {} }}", entries.join(", "))
        }
    };
    match &value.kind {
        Kind::Null(of) => match of {
            Type::Bool => "tobool(null)".to_owned(),
            Type::Number => "tonumber(null)".to_owned(),
            Type::String => "tostring(null)".to_owned(),
            _ => "null".to_owned(),
        },
        Kind::Bool(value) => value.to_string(),
        Kind::Number(number) => number.to_string(),
        Kind::String(text) => quoted(text),
        Kind::Tuple(items) => elements(items),
        Kind::Object(attributes) => entries(attributes),
        Kind::List(_, items) => format!("tolist({})", elements(items)),
        Kind::Set(_, items) => format!("toset({})", elements(items)),
        Kind::Map(_, items) => format!("tomap({})", entries(items)),
    }
}

struct Writer<'s> {
    out: String,
    too_long: bool,
    /// The names of `for` around.
    bound: Vec<Arc<str>>,
    instead: Instead<'s>,
}

impl<'s> Writer<'s> {
    fn new(instead: Instead<'s>) -> Self {
        Self {
            out: String::new(),
            too_long: false,
            bound: Vec::new(),
            instead,
        }
    }

    fn whole(self) -> Option<String> {
        (!self.too_long && self.out.len() <= LONGEST).then_some(self.out)
    }

    fn put(&mut self, text: &str) {
        if self.out.len() > LONGEST {
            self.too_long = true;
        } else {
            self.out.push_str(text);
        }
    }

    fn several(&mut self, expressions: &[Expression]) {
        for (index, expression) in expressions.iter().enumerate() {
            self.put(if index == 0 { "" } else { ", " });
            self.expression(expression);
        }
    }

    fn expression(&mut self, expression: &Expression) {
        if self.too_long {
            return;
        }
        match &expression.kind {
            // A text with mistakes isn't written anew.
            ExpressionKind::Unreadable => {}
            ExpressionKind::Null => self.put("null"),
            ExpressionKind::Bool(value) => self.put(&value.to_string()),
            ExpressionKind::Number(number) => self.put(&number.to_string()),
            ExpressionKind::String(text) => self.put(&quoted(text)),
            ExpressionKind::Template(template) => {
                self.put("\"");
                self.parts(&template.parts, inner);
                self.put("\"");
            }
            ExpressionKind::Tuple(elements) => {
                self.put("[");
                self.several(elements);
                self.put("]");
            }
            ExpressionKind::Object(items) => {
                for (index, item) in items.iter().enumerate() {
                    self.put(if index == 0 { "{ " } else { ", " });
                    match &item.key {
                        ObjectKey::Name(name) => self.put(&name.name),
                        ObjectKey::Expression(key) => self.expression(key),
                    }
                    self.put(" = ");
                    self.expression(&item.value);
                }
                self.put(if items.is_empty() { "{}" } else { " }" });
            }
            ExpressionKind::Parenthesis(inner) => {
                self.put("(");
                self.expression(inner);
                self.put(")");
            }
            ExpressionKind::Variable(root) => {
                if self.reference(root, expression, &[]).is_none() {
                    self.put(&root.name);
                }
            }
            ExpressionKind::Traversal(traversal) => {
                let rest = match &traversal.base.kind {
                    ExpressionKind::Variable(root) => {
                        match self.reference(root, expression, &traversal.steps) {
                            Some(rest) => rest,
                            None => {
                                self.put(&root.name);
                                &traversal.steps
                            }
                        }
                    }
                    _ => {
                        self.expression(&traversal.base);
                        &traversal.steps
                    }
                };
                self.steps(rest);
            }
            ExpressionKind::Call(call) => {
                self.put(&call.name.name);
                self.put("(");
                self.several(&call.arguments);
                self.put(if call.expands { "...)" } else { ")" });
            }
            ExpressionKind::Unary(operator, operand) => {
                self.put(match operator {
                    UnaryOperator::Negate => "-",
                    UnaryOperator::Not => "!",
                });
                self.expression(operand);
            }
            ExpressionKind::Binary(binary) => {
                self.expression(&binary.first);
                for (operator, _, operand) in &binary.rest {
                    self.put(&format!(" {} ", operator.symbol()));
                    self.expression(operand);
                }
            }
            ExpressionKind::Conditional(conditional) => {
                self.expression(&conditional.condition);
                self.put(" ? ");
                self.expression(&conditional.yes);
                self.put(" : ");
                self.expression(&conditional.no);
            }
            ExpressionKind::For(made) => self.made(made),
        }
    }

    fn made(&mut self, made: &For) {
        let (open, close) = if made.key.is_some() {
            ("{ ", " }")
        } else {
            ("[", "]")
        };
        self.put(open);
        self.head(made.key_name.as_ref(), &made.value_name, &made.collection);
        self.put(" : ");
        let before = self.bind(made.key_name.as_ref(), &made.value_name);
        if let Some(key) = &made.key {
            self.expression(key);
            self.put(" => ");
        }
        self.expression(&made.result);
        if made.groups {
            self.put("...");
        }
        if let Some(condition) = &made.condition {
            self.put(" if ");
            self.expression(condition);
        }
        self.bound.truncate(before);
        self.put(close);
    }

    fn head(&mut self, key: Option<&Ident>, value: &Ident, collection: &Expression) {
        self.put("for ");
        if let Some(key) = key {
            self.put(&key.name);
            self.put(", ");
        }
        self.put(&value.name);
        self.put(" in ");
        self.expression(collection);
    }

    fn bind(&mut self, key: Option<&Ident>, value: &Ident) -> usize {
        let before = self.bound.len();
        self.bound.extend(key.map(|name| Arc::clone(&name.name)));
        self.bound.push(Arc::clone(&value.name));
        before
    }

    /// Writes what stands for a reference, if something else does; the steps that are left.
    fn reference<'e>(
        &mut self,
        root: &Ident,
        whole: &Expression,
        steps: &'e [Step],
    ) -> Option<&'e [Step]> {
        if self.bound.contains(&root.name) {
            return None;
        }
        let (text, taken) = (self.instead)(whole)?;
        let rest = steps.get(taken..).unwrap_or_default();
        let bare = rest.is_empty() || text.starts_with('(');
        self.put(&if bare { text } else { format!("({text})") });
        Some(rest)
    }

    fn steps(&mut self, steps: &[Step]) {
        for step in steps {
            match &step.kind {
                StepKind::Attribute(name) => {
                    self.put(".");
                    self.put(&name.name);
                }
                StepKind::Index(key) => {
                    self.put("[");
                    self.expression(key);
                    self.put("]");
                }
                StepKind::LegacyIndex(index) => self.put(&format!("[{index}]")),
                StepKind::AttributeSplat(steps) => {
                    self.put(".*");
                    self.steps(steps);
                }
                StepKind::FullSplat(steps) => {
                    self.put("[*]");
                    self.steps(steps);
                }
            }
        }
    }

    fn interpolation(&mut self, expression: &Expression) {
        self.put("${");
        self.expression(expression);
        self.put("}");
    }

    /// `escape` writes a text of the template.
    fn parts(&mut self, parts: &[TemplatePart], escape: fn(&str) -> String) {
        for (index, part) in parts.iter().enumerate() {
            match part {
                TemplatePart::Literal(text) => {
                    // Before what begins with `${` or `%{`, these would escape it.
                    let plain = if index + 1 < parts.len() {
                        text.trim_end_matches(['$', '%'])
                    } else {
                        text
                    };
                    self.put(&escape(plain));
                    if plain.len() < text.len() {
                        self.put(&format!("${{\"{}\"}}", &text[plain.len()..]));
                    }
                }
                TemplatePart::Interpolation(inner) => self.interpolation(inner),
                TemplatePart::If(part) => {
                    self.put("%{ if ");
                    self.expression(&part.condition);
                    self.put(" }");
                    self.parts(&part.yes, escape);
                    if !part.no.is_empty() {
                        self.put("%{ else }");
                        self.parts(&part.no, escape);
                    }
                    self.put("%{ endif }");
                }
                TemplatePart::For(part) => {
                    self.put("%{ ");
                    self.head(part.key_name.as_ref(), &part.value_name, &part.collection);
                    self.put(" }");
                    let before = self.bind(part.key_name.as_ref(), &part.value_name);
                    self.parts(&part.body, escape);
                    self.bound.truncate(before);
                    self.put("%{ endfor }");
                }
            }
        }
    }
}
