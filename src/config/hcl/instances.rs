//! Expands blocks with `for_each`, and resolves references between blocks.
//!
//! In: blocks, references such as `template.web` or `group.web["eu"]`. Out: the [`Instance`]s of a
//! block, each with its name; the text for a reference. Must not: read a block's body.

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use nstance_hcl::{
    Block, Error, Expression, ExpressionKind, Kind as ValueKind, ObjectKey, Reference, Span,
    StepKind, Value,
};

use super::File;
use super::known_names::Kind;
use super::scope::{At, Module, State};
use super::unknown::{first_name, undefined};
use crate::diagnostic::nearest;

/// A block with `for_each`.
pub(super) struct Repeated<'f> {
    file: &'f File,
    block: &'f Block,
    kind: Kind,
}

/// One instance of a block with `for_each`.
#[derive(Debug)]
pub(crate) struct Instance {
    /// `each.key`
    pub(super) key: Arc<str>,
    /// `each.value`
    pub(super) value: Value,
    /// The instance's name.
    pub(crate) name: Arc<str>,
    /// Where the key is written, or the whole of `for_each`.
    pub(super) span: Span,
    /// What determines the name: the block's `name`, the key, or the whole of `for_each`.
    pub(super) named_by: Span,
    /// Whether `for_each` failed; then key and value are undefined.
    pub(super) has_failed: bool,
}

impl Instance {
    /// A stand-in for the instances of a block whose `for_each` failed.
    pub(super) fn failed(block: &Block) -> Self {
        Self {
            key: "".into(),
            value: Value::null(),
            name: "".into(),
            span: block.span,
            named_by: block.span,
            has_failed: true,
        }
    }
}

impl<'f> Repeated<'f> {
    /// Collects all blocks with `for_each`. `blocks` reports those that don't allow it.
    pub(super) fn collect(files: &'f [File]) -> Vec<Self> {
        let blocks = |file: &'f File| file.body.blocks().map(move |block| (file, block));
        let mut repeated: Vec<Self> = files
            .iter()
            .flat_map(blocks)
            .filter(|(_, block)| block.body.attribute("for_each").is_some())
            .filter_map(|(file, block)| {
                let kind = Kind::of_singular(&block.kind.name)?;
                let labels = 1..=1 + usize::from(kind == Kind::Group);
                let fits = matches!(kind, Kind::Template | Kind::Group)
                    && labels.contains(&block.labels.len());
                fits.then_some(Self { file, block, kind })
            })
            .collect();
        repeated.sort_by_key(|repeated| repeated.block.span);
        repeated
    }

    fn label(&self) -> &'f Arc<str> {
        &self.block.labels[self.block.labels.len() - 1].name
    }

    fn tenant(&self) -> &'f str {
        match &self.block.labels[..] {
            [tenant, _] => &tenant.name,
            _ => "default",
        }
    }

    fn shown(&self) -> String {
        let (kind, label) = (self.kind.singular(), self.label());
        match self.tenant() {
            tenant if self.kind == Kind::Group && tenant != "default" => {
                format!("{kind}.{tenant}.{label}")
            }
            _ => format!("{kind}.{label}"),
        }
    }
}

impl Module<'_> {
    /// The instances of a block; `None` if it has no `for_each`, or if that failed.
    pub(in crate::config) fn instances_of(&self, block: &Block) -> Option<Rc<[Instance]>> {
        let blocks = &self.repeated;
        let index = blocks
            .binary_search_by_key(&block.span, |repeated| repeated.block.span)
            .ok()?;
        self.instances(index, block.header).ok()
    }

    fn instances(&self, index: usize, asked: Span) -> Result<Rc<[Instance]>, Vec<Error>> {
        let repeated = &self.repeated[index];
        match self.instances.borrow().get(&index) {
            Some(State::Done(result)) => return result.clone().ok_or_else(Vec::new),
            Some(State::Running) => return Err(vec![self.circle(&repeated.shown(), asked)]),
            None => {}
        }
        self.instances.borrow_mut().insert(index, State::Running);
        let result = self
            .run(repeated.shown(), || self.make_instances(repeated))
            .map_err(|errors| self.report(&errors))
            .ok();
        self.instances
            .borrow_mut()
            .insert(index, State::Done(result.clone()));
        result.ok_or_else(Vec::new)
    }

    fn make_instances(&self, repeated: &Repeated<'_>) -> Result<Rc<[Instance]>, Vec<Error>> {
        let body = &repeated.block.body;
        let Some(for_each) = body.attribute("for_each") else {
            return Ok(Rc::new([]));
        };
        let outside = At {
            module: self,
            folder: repeated.file.folder.as_ref(),
            each: None,
        };
        let value = outside.value(&for_each.value)?;
        let mut instances = turns(&value, for_each.value.span, repeated.label())?;
        for instance in &mut instances {
            let place = self.key_within(&for_each.value, &instance.key);
            instance.named_by = place.unwrap_or(instance.named_by);
        }
        let Some(name) = body.attribute("name") else {
            return Ok(instances.into());
        };
        let mut errors = Vec::new();
        let mut first: HashMap<Arc<str>, Arc<str>> = HashMap::new();
        for instance in &mut instances {
            let inside = At {
                each: Some(instance),
                ..outside
            };
            match inside.value(&name.value) {
                Ok(Value {
                    kind: ValueKind::String(text),
                    sensitive: false,
                    ..
                }) => {
                    instance.name = text;
                    instance.named_by = name.value.span;
                }
                Ok(value) => {
                    let found = if value.sensitive {
                        "this is sensitive, and names are shown"
                    } else {
                        "expected a string"
                    };
                    let what = format!("`name` can't name a {}", repeated.kind.singular());
                    errors.push(Error::new(name.value.span, what).detail(found));
                    break;
                }
                Err(found) => {
                    errors.extend(found);
                    break;
                }
            }
            if let Some(key) = first.insert(instance.name.clone(), instance.key.clone()) {
                errors.push(
                    Error::new(
                        name.value.span,
                        format!("two of these are named `{}`", instance.name),
                    )
                    .detail(format!("for the keys `{key}` and `{}`", instance.key))
                    .hint("let the name contain `${each.key}`"),
                );
                break;
            }
        }
        if errors.is_empty() {
            Ok(instances.into())
        } else {
            Err(errors)
        }
    }

    /// Where a key of an object literal is written, here or in a local.
    fn key_within(&self, expression: &Expression, key: &str) -> Option<Span> {
        match &expression.kind {
            ExpressionKind::Object(items) => items.iter().find_map(|item| match &item.key {
                ObjectKey::Name(name) => (*name.name == *key).then_some(name.span),
                ObjectKey::Expression(Expression {
                    kind: ExpressionKind::String(text),
                    span,
                }) => (**text == *key).then_some(*span),
                ObjectKey::Expression(_) => None,
            }),
            ExpressionKind::Parenthesis(inner) => self.key_within(inner, key),
            ExpressionKind::Traversal(traversal) => {
                match (&traversal.base.kind, &traversal.steps[..]) {
                    (ExpressionKind::Variable(root), [step]) if &*root.name == "local" => {
                        let StepKind::Attribute(name) = &step.kind else {
                            return None;
                        };
                        self.key_within(self.local_expression(&name.name)?, key)
                    }
                    _ => None,
                }
            }
            _ => None,
        }
    }
}

/// The instances of `for_each`, named `LABEL-KEY`.
///
/// Fails if the value isn't a map or a set of strings.
fn turns(value: &Value, span: Span, label: &str) -> Result<Vec<Instance>, Vec<Error>> {
    let wrong = |found: &str| {
        let error = Error::new(span, "`for_each` must be a map, or a set of strings");
        error.detail(format!("this is {found}"))
    };
    if value.sensitive {
        return Err(vec![wrong("sensitive").hint(
            "its keys become names, which are shown; `nonsensitive(…)` says that they may be",
        )]);
    }
    let is_set = matches!(value.kind, ValueKind::Set(..));
    let instance = |key: &Arc<str>, value: &Value| Instance {
        key: Arc::clone(key),
        value: value.clone(),
        name: format!("{label}-{key}").into(),
        span: value.span.unwrap_or(span),
        named_by: value.span.filter(|_| is_set).unwrap_or(span),
        has_failed: false,
    };
    match &value.kind {
        ValueKind::Object(entries) | ValueKind::Map(_, entries) => Ok(entries
            .iter()
            .map(|(key, value)| instance(key, value))
            .collect()),
        ValueKind::Set(_, elements) => {
            let named = elements.iter().map(|element| match &element.kind {
                ValueKind::String(text) => Some(instance(text, element)),
                _ => None,
            });
            let named: Option<Vec<Instance>> = named.collect();
            let has_null = elements.iter().any(Value::is_null);
            named.ok_or_else(|| {
                vec![wrong(if has_null {
                    "a set with a null in it"
                } else {
                    "a set of something else"
                })]
            })
        }
        ValueKind::Tuple(_) | ValueKind::List(..) => {
            Err(vec![wrong("a list").hint("make a set of it: `toset(…)`")])
        }
        ValueKind::Null(_) => Err(vec![wrong("null").hint("for no turn at all write `{}`")]),
        ValueKind::Bool(_) | ValueKind::Number(_) | ValueKind::String(_) => Err(vec![
            wrong("a single value").hint("for a single turn write `toset([…])`"),
        ]),
    }
}

impl At<'_> {
    /// The text for a reference to a block, and the number of steps that it uses.
    ///
    /// Fails if the name isn't defined.
    pub(super) fn reference(
        &self,
        kind: Kind,
        reference: &Reference<'_>,
    ) -> Result<(Value, usize), Vec<Error>> {
        let module = self.module;
        let what = kind.singular();
        let (first, first_span) = first_name(reference, &format!("{what}.name"))?;
        let second = match reference.steps.get(1).map(|step| &step.kind) {
            Some(StepKind::Attribute(name)) => Some(&*name.name),
            _ => None,
        };
        let written = |steps: usize| reference.root.span.to(reference.steps[steps - 1].span);
        let made = |text: String, steps: usize| {
            let whole = written(steps);
            match reference.steps.get(steps) {
                // It may be the name of an instance.
                Some(_) if module.known.is_open(kind) => Err(Vec::new()),
                None => Ok((Value::string(text).with_span(whole), steps)),
                Some(next) => Err(vec![
                    Error::new(next.span, "a reference to a block ends with its name")
                        .detail("take this out")
                        .related(whole, "this stands for the name alone")
                        .hint("values that several blocks need go into `locals`"),
                ]),
            }
        };
        if kind == Kind::Group {
            if let Some(second) = second
                && module.known.has_group(first, second)
            {
                return made(format!("{first}/{second}"), 2);
            }
            if module.known.has_group("default", first) {
                return made(format!("default/{first}"), 1);
            }
        } else if module.known.has(kind, first) {
            return made(text(kind, "", first), 1);
        }
        // Blocks with `for_each`: by label and key, or by the final name.
        let blocks = module.repeated.iter().enumerate();
        for (index, repeated) in blocks.clone().filter(|(_, other)| other.kind == kind) {
            let in_tenant = kind == Kind::Group
                && first == repeated.tenant()
                && second == Some(&**repeated.label());
            let steps = 1 + usize::from(in_tenant);
            let outside = kind != Kind::Group || repeated.tenant() == "default";
            if !(in_tenant || outside && first == &**repeated.label()) {
                continue;
            }
            let next = reference.steps.get(steps).map(|step| &step.kind);
            let all = || -> Result<(Value, usize), Vec<Error>> {
                let instances = module.instances(index, first_span)?;
                let names = instances.iter().map(|instance| {
                    let name = text(kind, repeated.tenant(), &instance.name);
                    let name = Value::string(name).with_span(written(steps));
                    (Arc::clone(&instance.key), name)
                });
                Ok((Value::object(names.collect()), steps))
            };
            let key = match next {
                Some(StepKind::Index(key))
                    if matches!(
                        key.kind,
                        ExpressionKind::String(_) | ExpressionKind::Number(_)
                    ) =>
                {
                    key
                }
                // A key that isn't a literal may depend on the surrounding expression, so return
                // all.
                Some(StepKind::Index(_)) => return all(),
                None if kind == Kind::Group => return all(),
                _ => {
                    let shown = repeated.shown();
                    return Err(vec![
                        Error::new(
                            written(steps),
                            format!("`{shown}` is several, by `for_each`"),
                        )
                        .detail("one of them must be named")
                        .related(repeated.block.header, "it is defined here")
                        .hint(format!("write `{shown}[\"KEY\"]`")),
                    ]);
                }
            };
            let value = self.value(key)?;
            let instances = module.instances(index, first_span)?;
            let found = instances
                .iter()
                .find(|instance| value.as_str() == Some(&*instance.key));
            let Some(found) = found else {
                let shown = repeated.shown();
                let all = instances.iter().take(8);
                let all: Vec<String> = all.map(|one| format!("`{}`", one.key)).collect();
                let more = if instances.len() > all.len() {
                    ", …"
                } else {
                    ""
                };
                let error = Error::new(key.span, format!("`{shown}` has no such key"))
                    .detail(format!("its keys are {}{more}", all.join(", ")))
                    .related(repeated.block.header, "it is defined here");
                let keys = instances.iter().map(|instance| &*instance.key);
                let near = value.as_str().and_then(|key| nearest(key, keys));
                return Err(vec![match near {
                    Some(near) => error.hint(format!("did you mean `{near}`?")),
                    None => error,
                }]);
            };
            return made(text(kind, repeated.tenant(), &found.name), steps + 1);
        }
        let mut known = module.known.names(kind);
        for (index, repeated) in blocks.filter(|(_, other)| other.kind == kind) {
            let tenant = repeated.tenant();
            for instance in module.instances(index, first_span)?.iter() {
                if kind == Kind::Group && tenant == first && second == Some(&*instance.name) {
                    return made(text(kind, tenant, &instance.name), 2);
                }
                if *instance.name == *first && (kind != Kind::Group || tenant == "default") {
                    return made(text(kind, tenant, first), 1);
                }
                known.push(match tenant {
                    "default" => instance.name.to_string(),
                    _ => format!("{tenant}.{}", instance.name),
                });
            }
        }
        if module.known.is_open(kind) {
            return match second {
                Some(second) if kind == Kind::Group => made(format!("{first}/{second}"), 2),
                _ => made(text(kind, "default", first), 1),
            };
        }
        if module.known.has_misnamed() {
            return Err(Vec::new());
        }
        let (name, span) = match second {
            Some(second) if kind == Kind::Group => (
                format!("{first}.{second}"),
                first_span.to(reference.steps[1].span),
            ),
            _ => (first.to_owned(), first_span),
        };
        let labels = name.replace('.', "\" \"");
        let define = format!("define it: `{what} \"{labels}\" {{ … }}`");
        let what = what.replace('_', " ");
        let names = known.iter().map(String::as_str);
        Err(vec![undefined(&what, &name, span, names, define)])
    }
}

/// The text for a block: its name; for an image, a template for its id.
fn text(kind: Kind, tenant: &str, name: &str) -> String {
    match kind {
        Kind::Group => format!("{tenant}/{name}"),
        Kind::Image if name.contains('-') => format!("{{{{ index .Image \"{name}\" }}}}"),
        Kind::Image => format!("{{{{ .Image.{name} }}}}"),
        Kind::Template | Kind::LoadBalancer | Kind::Certificate => name.to_owned(),
    }
}
