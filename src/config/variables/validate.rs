//! Evaluates the validations of variables.
//!
//! In: declarations, and the value of each variable. Out: findings about invalid values, and about
//! unusable conditions and messages. Must not: change a value.

use nstance_hcl::{Expression, Kind, Type, convert};

use super::declare::Declarations;
use super::settle::Settled;
use crate::config::hcl::{At, Module};
use crate::diagnostic::Diagnostic;

/// Checks values against the validations of their variables.
pub(in crate::config) fn validate(
    declarations: &Declarations,
    settled: &Settled,
    module: &Module<'_>,
) {
    for (name, declaration) in &declarations.variables {
        if !matches!(settled.values.get(name), Some(Some(_))) {
            continue;
        }
        for validation in &declaration.validations {
            let at = At {
                module,
                folder: validation.folder.as_ref(),
                each: None,
            };
            let place = module.span(validation.condition.span);
            let value = at.evaluate(&validation.condition);
            // Evaluate it even if unused, to report its errors.
            let message = message(at, &validation.message);
            let Some(value) = value else {
                continue;
            };
            match convert(&value, &Type::Bool).map(|value| value.kind) {
                Ok(Kind::Bool(true)) => {}
                Ok(Kind::Bool(false)) => {
                    let finding = Diagnostic::error(format!(
                        "variable `{name}` has a value that isn't valid"
                    ));
                    let finding = match settled.places.get(name) {
                        Some(given) => finding
                            .at(*given, "this value")
                            .related(place, "must fulfil this condition"),
                        None => finding.at(place, "its value must fulfil this condition"),
                    };
                    module.find(match message {
                        Some(message) => finding.detail(message),
                        None => finding,
                    });
                }
                _ => module.find(
                    Diagnostic::error("a `condition` must be true or false")
                        .at(place, "this is neither"),
                ),
            }
        }
    }
}

/// The text of an `error_message`; `None` if it is invalid, which is reported.
fn message(at: At<'_>, expression: &Expression) -> Option<String> {
    let value = at.evaluate(expression)?;
    if value.sensitive {
        return Some("its message would show what mustn't be shown".to_owned());
    }
    if let Ok(Kind::String(text)) = convert(&value, &Type::String).map(|value| value.kind) {
        return Some(text.to_string());
    }
    let place = at.module.span(expression.span);
    at.module
        .find(Diagnostic::error("an `error_message` must be a string").at(place, "this is none"));
    None
}
