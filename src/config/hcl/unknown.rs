//! Reports unknown names with a suggestion.
//!
//! In: a name, its place and the known names. Out: errors. Must not: evaluate anything.

use nstance_hcl::{Error, Expression, ExpressionKind, Reference, StepKind, shell_expansion};

use super::scope::Module;
use crate::config::source::Span;
use crate::diagnostic::nearest;

/// The first names of references.
pub(super) const ROOTS: [&str; 9] = [
    "var",
    "local",
    "each",
    "path",
    "template",
    "image",
    "group",
    "load_balancer",
    "certificate",
];

impl Module<'_> {
    /// The errors for an unknown first name of a reference; none if it is part of a shell expansion
    /// that was reported.
    pub(super) fn nothing_named(&self, name: &str, span: nstance_hcl::Span) -> Vec<Error> {
        let place = self.span(span);
        let is_reported = self.expansions.borrow().iter().any(|(whole, first)| {
            whole.source == place.source
                && (whole.start..whole.end).contains(&place.start)
                && *first != place
        });
        if is_reported {
            return Vec::new();
        }
        let error = Error::new(span, format!("there is nothing named `{name}`"));
        let near = nearest(name, ROOTS).map(|near| format!("did you mean `{near}`?"));
        let references = || {
            let roots = ROOTS.map(|root| format!("`{root}`"));
            format!("references start with {}", roots.join(", "))
        };
        let Some((whole, hint)) = self.expansion_at(place) else {
            let quoted = || format!("strings must be quoted, `\"{name}\"`; {}", references());
            return vec![error.hint(near.unwrap_or_else(quoted))];
        };
        let is_name = whole.end - whole.start == place.end - place.start + "${}".len() as u32;
        let is_variable = name.bytes().any(|byte| byte.is_ascii_lowercase()) && !name.contains('-');
        vec![error.hint(match near {
            Some(near) if is_name => near,
            _ if is_name && is_variable => format!("{hint}; {}", references()),
            _ => {
                self.expansions.borrow_mut().push((whole, place));
                hint
            }
        })]
    }

    /// The shell expansion, such as `"${x/a/b}"`, whose parameter is at `place`, and its escaped
    /// form.
    fn expansion_at(&self, place: Span) -> Option<(Span, String)> {
        let text = &self.sources.get(place.source).text;
        let before = text.get(..place.start as usize)?;
        let start = before.strip_suffix(['!', '#']).unwrap_or(before);
        let start = start.strip_suffix("${")?.len();
        let (length, hint) = shell_expansion(&text[start..])?;
        Some((Span::new(place.source, start, start + length), hint))
    }
}

/// The name after the root, as in `var.region`.
///
/// Fails if there is none.
pub(super) fn first_name<'r>(
    reference: &Reference<'r>,
    example: &str,
) -> Result<(&'r str, nstance_hcl::Span), Vec<Error>> {
    match reference.steps.first().map(|step| &step.kind) {
        Some(StepKind::Attribute(name)) => Ok((&name.name, name.span)),
        Some(StepKind::Index(Expression {
            kind: ExpressionKind::String(name),
            span,
        })) => Ok((name, *span)),
        _ => {
            let root = reference.root;
            Err(vec![
                Error::new(root.span, format!("`{}` alone is no value", root.name))
                    .detail("a name must follow")
                    .hint(format!("for example `{example}`")),
            ])
        }
    }
}

/// The error that an entry of a kind isn't defined.
pub(super) fn undefined<'n>(
    what: &str,
    name: &str,
    span: nstance_hcl::Span,
    known: impl IntoIterator<Item = &'n str>,
    define: String,
) -> Error {
    let error = Error::new(span, format!("{what} `{name}` isn't defined"))
        .detail(format!("no {what} has this name"));
    match nearest(name, known) {
        Some(near) => error.hint(format!("did you mean `{near}`?")),
        None => error.hint(define),
    }
}
