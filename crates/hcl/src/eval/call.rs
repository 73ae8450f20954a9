//! Calls of functions: arguments counted, converted, checked for null.

use super::{Run, Scoped, described, special};
use crate::convert::convert;
use crate::error::{Error, Span, nearest};
use crate::functions::{self, CallError, Parameter, Signature};
use crate::syntax::Call;
use crate::value::{Kind, Value};

impl Run<'_> {
    pub(super) fn call(&mut self, call: &Call, span: Span, frame: Scoped<'_>) -> Option<Value> {
        let name = &*call.name.name;
        if let Some(form) = special::lookup(name) {
            return self.special(form, call, span, frame);
        }
        let Some(signature) = functions::lookup(name) else {
            // The arguments' errors would stand even with another name.
            self.arguments(call, frame);
            return self.fail(unknown(name, call.name.span));
        };
        let arguments = self.arguments(call, frame)?;
        self.apply(signature, call, &arguments, span)
    }

    /// Each argument with its place; `...` expanded.
    pub(super) fn arguments(
        &mut self,
        call: &Call,
        frame: Scoped<'_>,
    ) -> Option<Vec<(Value, Span)>> {
        let values: Vec<Option<Value>> = call
            .arguments
            .iter()
            .map(|argument| self.value(argument, frame))
            .collect();
        let values: Option<Vec<Value>> = values.into_iter().collect();
        let mut arguments: Vec<(Value, Span)> = values?
            .into_iter()
            .zip(call.arguments.iter().map(|argument| argument.span))
            .collect();
        if !call.expands {
            return Some(arguments);
        }
        let (last, span) = arguments.pop()?;
        let Some(elements) = last.elements() else {
            return self.fail(
                Error::new(span, "What `...` expands must be a list")
                    .detail(format!("this is {}", described(&last))),
            );
        };
        self.charge(elements.len(), 0, span)?;
        arguments.extend(
            elements
                .iter()
                .map(|element| (element.clone().or_sensitive(last.sensitive), span)),
        );
        Some(arguments)
    }

    fn apply(
        &mut self,
        signature: &Signature,
        call: &Call,
        arguments: &[(Value, Span)],
        span: Span,
    ) -> Option<Value> {
        let fixed = &signature.parameters;
        let count = arguments.len();
        if count < fixed.len() || count > fixed.len() && signature.variadic.is_none() {
            return self.fail(miscounted(signature, call, arguments));
        }
        let mut values = Vec::with_capacity(count);
        let mut sensitive = false;
        for (index, (value, span)) in arguments.iter().enumerate() {
            if let Some(parameter) = fixed.get(index).or(signature.variadic.as_ref()) {
                let converted = self.argument(value, parameter, signature.name, *span);
                values.push(converted.map(|value| {
                    let (value, spreads) = parameter.take(value);
                    sensitive |= spreads;
                    value
                }));
            }
        }
        let values: Vec<Value> = values.into_iter().collect::<Option<_>>()?;
        match (signature.body)(self.evaluator.context, &values) {
            Ok(mut result) => {
                result.span = result.span.or(Some(span));
                Some(result.or_sensitive(sensitive))
            }
            Err(CallError { argument, message }) => {
                let at = argument
                    .and_then(|index| arguments.get(index))
                    .map_or(span, |(_, at)| *at);
                let summary = format!("`{}` has no result here", signature.name);
                // What is wrong with a secret would tell of it.
                let detail = if sensitive
                    || arguments
                        .iter()
                        .any(|(value, _)| value.is_sensitive_within())
                {
                    "an argument is sensitive, so the reason isn't shown".to_owned()
                } else {
                    message
                };
                self.fail(Error::new(at, summary).detail(detail))
            }
        }
    }

    fn argument(
        &mut self,
        value: &Value,
        parameter: &Parameter,
        function: &str,
        span: Span,
    ) -> Option<Value> {
        let name = parameter.name;
        if value.is_null() && !parameter.nullable {
            return self.fail(
                Error::new(span, format!("`{name}` of `{function}` can't be null"))
                    .detail("this is null"),
            );
        }
        match convert(value, &parameter.of) {
            Ok(converted) => Some(converted),
            Err(error) => {
                // The way to what is wrong in a secret is a secret.
                let why = if value.is_sensitive_within() {
                    error.message
                } else {
                    error.to_string()
                };
                self.fail(
                    Error::new(span, format!("This can't be `{name}` of `{function}`"))
                        .detail(format!("{why}, but this is {}", described(value))),
                )
            }
        }
    }

    /// A string among the arguments of a special form.
    pub(super) fn string_argument(
        &mut self,
        (value, span): &(Value, Span),
        name: &'static str,
        function: &str,
    ) -> Option<std::sync::Arc<str>> {
        let parameter = Parameter::string(name);
        match self.argument(value, &parameter, function, *span)?.kind {
            Kind::String(text) => Some(text),
            _ => None,
        }
    }
}

fn unknown(name: &str, span: Span) -> Error {
    if functions::REFUSED.contains(&name) {
        return Error::new(span, format!("The function `{name}` isn't offered"))
            .detail("its result would be another each time, and so would every plan")
            .hint("pass the value in as a variable");
    }
    let error = Error::new(span, format!("There is no function `{name}`"));
    match name {
        "list" => return error.hint("Terraform has taken it out: write `tolist([…])`, or `[…]`"),
        "map" => return error.hint("Terraform has taken it out: write `tomap({…})`, or `{…}`"),
        _ => {}
    }
    match nearest(name, functions::names().chain(functions::FORMS)) {
        Some(near) => error.hint(format!("did you mean `{near}`?")),
        None => error,
    }
}

fn miscounted(signature: &Signature, call: &Call, arguments: &[(Value, Span)]) -> Error {
    let fixed = &signature.parameters;
    let given = arguments.len();
    let wanted = match (fixed.len(), signature.variadic.is_some()) {
        (0, false) => "no arguments".to_owned(),
        (1, false) => "1 argument".to_owned(),
        (count, false) => format!("{count} arguments"),
        (1, true) => "1 argument or more".to_owned(),
        (count, true) => format!("{count} arguments or more"),
    };
    let names: Vec<&str> = fixed
        .iter()
        .map(|parameter| parameter.name)
        .chain(signature.variadic.iter().map(|_| "…"))
        .collect();
    let form = format!("`{}({})`", signature.name, names.join(", "));
    let error = match fixed.get(given) {
        Some(missing) => Error::new(
            call.parentheses,
            format!("`{}` needs `{}`", signature.name, missing.name),
        ),
        None => {
            let surplus = arguments[fixed.len()].1;
            Error::new(
                surplus,
                format!("`{}` takes no more arguments", signature.name),
            )
        }
    };
    error
        .detail(format!("it takes {wanted}, here are {given}"))
        .hint(format!("it is {form}"))
}
