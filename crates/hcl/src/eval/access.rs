//! Into values: `.name`, `[key]`, splats.

use super::{Run, Scoped, described};
use crate::convert::convert;
use crate::convert::unify;
use crate::error::{Error, Span, nearest};
use crate::syntax::{Step, StepKind};
use crate::types::Type;
use crate::value::{Entries, Kind, Value};

/// So many names are listed in an error.
const MOST_NAMES: usize = 12;

impl Run<'_> {
    /// Goes the steps. `base_span` is where the value came from, as it was written.
    pub(super) fn steps(
        &mut self,
        base: Value,
        steps: &[Step],
        base_span: Span,
        frame: Scoped<'_>,
    ) -> Option<Value> {
        let mut value = base;
        let mut so_far = base_span;
        for step in steps {
            value = self.step(&value, step, so_far, frame)?;
            so_far = so_far.to(step.span);
        }
        Some(value)
    }

    fn step(&mut self, value: &Value, step: &Step, base: Span, frame: Scoped<'_>) -> Option<Value> {
        match &step.kind {
            StepKind::Attribute(name) => self.attribute(value, &name.name, name.span, base),
            StepKind::LegacyIndex(index) => {
                let key = Value::number(*index);
                self.index(value, &key, step.span, base)
            }
            StepKind::Index(expression) => {
                let key = self.value(expression, frame)?;
                self.index(value, &key, expression.span, base)
            }
            StepKind::AttributeSplat(steps) | StepKind::FullSplat(steps) => {
                self.splat(value, steps, step.span, frame)
            }
        }
    }

    fn attribute(&mut self, value: &Value, name: &str, span: Span, base: Span) -> Option<Value> {
        if let Some(entries) = value.entries() {
            return match entries.get(name) {
                Some(found) => Some(found.clone().or_sensitive(value.sensitive)),
                None => self.fail(missing(value, entries, Some(name), span)),
            };
        }
        let error = Error::new(span, format!("There is no attribute `{name}` here"))
            .related(base, format!("this is {}", described(value)));
        self.fail(match &value.kind {
            Kind::Tuple(_) | Kind::List(..) => error.hint(format!(
                "for that of one element write `[0].{name}`, of all `[*].{name}`"
            )),
            Kind::Set(..) => error.hint(format!("for that of all elements write `[*].{name}`")),
            _ => error,
        })
    }

    fn index(&mut self, value: &Value, key: &Value, span: Span, base: Span) -> Option<Value> {
        let sensitive = value.sensitive || key.sensitive;
        if key.is_null() && !value.is_null() {
            return self.fail(Error::new(span, "An index can't be null").detail("this is null"));
        }
        match &value.kind {
            Kind::Tuple(elements) | Kind::List(_, elements) => {
                let converted = convert(key, &Type::Number).map(|number| number.kind);
                let Ok(Kind::Number(number)) = converted else {
                    return self.fail(
                        Error::new(span, "The index of a list must be a number")
                            .detail(format!("this is {}", described(key))),
                    );
                };
                let found = number
                    .to_u64()
                    .and_then(|index| elements.get(index as usize));
                if let Some(element) = found {
                    return Some(element.clone().or_sensitive(sensitive));
                }
                let error = Error::new(span, "There is no element with this index");
                if sensitive {
                    return self.fail(error);
                }
                let count = elements.len();
                let detail = if number.is_negative() {
                    "an index can't be negative".to_owned()
                } else if !number.is_whole() {
                    "an index must be a whole number".to_owned()
                } else {
                    match count {
                        0 => "the list is empty".to_owned(),
                        1 => "the only index is 0".to_owned(),
                        _ => format!("the indices are 0 to {}", count - 1),
                    }
                };
                let has = format!("this has {}", counted(count));
                self.fail(error.detail(detail).related(base, has))
            }
            Kind::Object(entries) | Kind::Map(_, entries) => {
                let name = self.key(key, span)?;
                let shown = (!key.sensitive).then_some(&*name);
                match entries.get(&name) {
                    Some(element) => Some(element.clone().or_sensitive(sensitive)),
                    None => self.fail(missing(value, entries, shown, span)),
                }
            }
            Kind::Set(..) => self.fail(
                Error::new(base, "The elements of a set have no index")
                    .hint("make a list of it with `tolist`"),
            ),
            Kind::Null(_) | Kind::Bool(_) | Kind::Number(_) | Kind::String(_) => self.fail(
                Error::new(base, "This has no elements")
                    .detail(format!("it is {}", described(value))),
            ),
        }
    }

    /// Null has no elements; what is no sequence is its own only element.
    fn splat(
        &mut self,
        value: &Value,
        steps: &[Step],
        span: Span,
        frame: Scoped<'_>,
    ) -> Option<Value> {
        let elements = match &value.kind {
            Kind::Null(_) => &[][..],
            Kind::Tuple(elements) | Kind::List(_, elements) | Kind::Set(_, elements) => elements,
            _ => std::slice::from_ref(value),
        };
        let mut results = Vec::with_capacity(elements.len());
        let before = self.errors.len();
        for element in elements {
            self.charge(1, 0, span)?;
            match self.steps(element.clone(), steps, span, frame) {
                Some(result) => results.push(result),
                None => {
                    // The others would say the same.
                    self.errors.truncate(before + 1);
                    return None;
                }
            }
        }
        let is_list = matches!(value.kind, Kind::List(..) | Kind::Set(..));
        let made = if is_list {
            list_of_one_type(results)
        } else {
            Value::tuple(results)
        };
        Some(made.with_span(span).or_sensitive(value.sensitive))
    }
}

/// A list if all are of one type, and else a tuple.
fn list_of_one_type(elements: Vec<Value>) -> Value {
    let types: Vec<Type> = elements.iter().map(Value::type_of).collect();
    match unify(&types) {
        Some(of) if types.iter().all(|other| *other == of) => Value::list(of, elements),
        None if elements.is_empty() => Value::list(Type::Any, elements),
        _ => Value::tuple(elements),
    }
}

/// `name` is none if it is a secret.
fn missing(value: &Value, entries: &Entries, name: Option<&str>, span: Span) -> Error {
    let is_map = matches!(value.kind, Kind::Map(..));
    let (what, one, all) = if is_map {
        ("element", "map", "its keys are")
    } else {
        ("attribute", "object", "its attributes are")
    };
    let Some(name) = name else {
        return Error::new(span, format!("This {one} has no such {what}"));
    };
    let error = Error::new(span, format!("This {one} has no {what} `{name}`"));
    if value.sensitive {
        return error;
    }
    let names: Vec<String> = entries
        .keys()
        .take(MOST_NAMES)
        .map(|key| format!("`{key}`"))
        .collect();
    let more = if entries.len() > MOST_NAMES {
        ", …"
    } else {
        ""
    };
    let error = if names.is_empty() {
        error.detail(format!("the {one} is empty"))
    } else {
        error.detail(format!("{all} {}{more}", names.join(", ")))
    };
    let error = match value.span {
        Some(written) => error.related(written, format!("the {one} is written here")),
        None => error,
    };
    match nearest(name, entries.keys().map(AsRef::as_ref)) {
        Some(near) => error.hint(format!("did you mean `{near}`?")),
        None => error,
    }
}

fn counted(elements: usize) -> String {
    match elements {
        0 => "no elements".to_owned(),
        1 => "1 element".to_owned(),
        _ => format!("{elements} elements"),
    }
}
