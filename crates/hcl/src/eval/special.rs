//! Forms that look like functions but need more than their arguments' values: `try`, `can`,
//! `templatefile`, `templatestring`, and those about sensitivity.

use super::{Evaluator, Run, Scoped, described};
use crate::error::{Error, Span};
use crate::functions::files::located;
use crate::syntax::{Call, Expression, parse_template};
use crate::value::{Entries, Value};

/// The file number of texts that the caller never saw.
const NO_FILE: u32 = u32::MAX;

#[derive(Clone, Copy)]
pub(super) enum Form {
    Can,
    IsSensitive,
    NonSensitive,
    Sensitive,
    TemplateFile,
    TemplateString,
    Try,
}

pub(super) fn lookup(name: &str) -> Option<Form> {
    Some(match name {
        "can" => Form::Can,
        "issensitive" => Form::IsSensitive,
        "nonsensitive" => Form::NonSensitive,
        "sensitive" => Form::Sensitive,
        "templatefile" => Form::TemplateFile,
        "templatestring" => Form::TemplateString,
        "try" => Form::Try,
        _ => return None,
    })
}

impl Run<'_> {
    pub(super) fn special(
        &mut self,
        form: Form,
        call: &Call,
        span: Span,
        frame: Scoped<'_>,
    ) -> Option<Value> {
        match form {
            Form::Try => self.first_that_works(call, frame),
            Form::Can => {
                let [argument] = &call.arguments[..] else {
                    return self.miscounted(call, "1 argument", "can(expression)");
                };
                let before = self.errors.len();
                let works = self.value(argument, frame).is_some();
                self.forgive(before);
                Some(Value::from(works).with_span(span))
            }
            Form::Sensitive | Form::NonSensitive | Form::IsSensitive => {
                let arguments = self.arguments(call, frame)?;
                let [(value, _)] = &arguments[..] else {
                    let form = format!("{}(value)", call.name.name);
                    return self.miscounted(call, "1 argument", &form);
                };
                match form {
                    Form::IsSensitive => Some(Value::from(value.sensitive).with_span(span)),
                    Form::NonSensitive if !value.sensitive => self.fail(
                        Error::new(span, "This value isn't sensitive")
                            .hint("take `nonsensitive` away"),
                    ),
                    Form::NonSensitive => Some(value.clone().nonsensitive()),
                    _ => Some(value.clone().or_sensitive(true)),
                }
            }
            Form::TemplateFile => self.template_file(call, span, frame),
            Form::TemplateString => {
                let arguments = self.arguments(call, frame)?;
                let [template, variables] = &arguments[..] else {
                    let form = "templatestring(template, vars)";
                    return self.miscounted(call, "2 arguments", form);
                };
                let text = self.string_argument(template, "template", "templatestring")?;
                self.rendered(
                    &text,
                    "the template",
                    variables,
                    [template.1, span],
                    template,
                )
            }
        }
    }

    fn miscounted<T>(&mut self, call: &Call, wanted: &str, form: &str) -> Option<T> {
        let given = call.arguments.len();
        self.fail(
            Error::new(
                call.parentheses,
                format!("`{}` takes {wanted}", call.name.name),
            )
            .detail(format!("here are {given}"))
            .hint(format!("it is `{form}`")),
        )
    }

    fn first_that_works(&mut self, call: &Call, frame: Scoped<'_>) -> Option<Value> {
        let before = self.errors.len();
        let mut why = Vec::new();
        for argument in &call.arguments {
            if let Some(value) = self.value(argument, frame) {
                return Some(value);
            }
            why.extend(self.forgive(before));
        }
        if self.errors.len() > before {
            return None;
        }
        let mut error = Error::new(call.parentheses, "None of these expressions has a value");
        for reason in why {
            error = error.related(reason.span, reason.to_string());
        }
        self.fail(error.hint("end `try` with a value that always works"))
    }

    fn template_file(&mut self, call: &Call, span: Span, frame: Scoped<'_>) -> Option<Value> {
        if self.evaluator.within_template_file {
            return self.fail(
                Error::new(span, "A template file can't take in another")
                    .hint("pass the other's text in as a variable"),
            );
        }
        let arguments = self.arguments(call, frame)?;
        let [path, variables] = &arguments[..] else {
            return self.miscounted(call, "2 arguments", "templatefile(path, vars)");
        };
        let name = self.string_argument(path, "path", "templatefile")?;
        let context = self.evaluator.context;
        let read = match located(context, &name) {
            Ok(located) => context.files.read(&located).map_err(|error| {
                let name = if path.0.sensitive { "…" } else { &*name };
                format!("{error}: {name}")
            }),
            Err(error) => Err(error.message),
        };
        let bytes = match read {
            Ok(bytes) => bytes,
            Err(why) => {
                let summary = "The template file can't be read";
                return self.fail(Error::new(path.1, summary).detail(why));
            }
        };
        let Ok(text) = String::from_utf8(bytes) else {
            return self.fail(Error::new(path.1, "The template file isn't UTF-8 text"));
        };
        self.rendered(&text, &name, variables, [path.1, span], path)
    }

    /// `[at, span]`: where the template is named, and the whole call.
    fn rendered(
        &mut self,
        text: &str,
        name: &str,
        (variables, variables_at): &(Value, Span),
        [at, span]: [Span; 2],
        (template, _): &(Value, Span),
    ) -> Option<Value> {
        self.charge(0, text.len(), at)?;
        let Some(entries) = variables.entries() else {
            return self.fail(
                Error::new(*variables_at, "The variables of a template are an object")
                    .detail(format!("this is {}", described(variables)))
                    .hint("like `{ name = value }`"),
            );
        };
        if let Some(name) = entries.keys().find(|name| !is_variable_name(name)) {
            let shown = if variables.sensitive { "…" } else { name };
            return self.fail(
                Error::new(
                    *variables_at,
                    format!("A template can't have a variable `{shown}`"),
                )
                .hint("a variable's name is a letter and then letters, digits and underscores"),
            );
        }
        let expression = match parse_template(text, NO_FILE) {
            Ok(expression) => expression,
            Err(error) => return self.failed_within(&[error], name, text, at),
        };
        match self.evaluated_within(&expression, entries) {
            Ok(value) => {
                let sensitive = template.sensitive || variables.sensitive;
                Some(value.with_span(span).or_sensitive(sensitive))
            }
            Err(errors) => self.failed_within(&errors, name, text, at),
        }
    }

    fn evaluated_within(
        &self,
        expression: &Expression,
        variables: &Entries,
    ) -> Result<Value, Vec<Error>> {
        let inner = Evaluator {
            scope: variables,
            context: self.evaluator.context,
            within_template_file: true,
        };
        inner.evaluate(expression)
    }

    /// What went wrong in a text that the caller can't show.
    fn failed_within<T>(
        &mut self,
        errors: &[Error],
        name: &str,
        text: &str,
        at: Span,
    ) -> Option<T> {
        for error in errors {
            let before = &text[..error.span.range().start.min(text.len())];
            let line = before.matches('\n').count() + 1;
            let column = before
                .rsplit('\n')
                .next()
                .map_or(0, |line| line.chars().count())
                + 1;
            let _: Option<()> = self.fail(
                Error::new(at, error.to_string())
                    .detail(format!("in line {line}, column {column} of {name}")),
            );
        }
        None
    }
}

fn is_variable_name(name: &str) -> bool {
    name.starts_with(|first: char| first.is_alphabetic())
        && name
            .chars()
            .all(|character| character.is_alphanumeric() || character == '_')
}
