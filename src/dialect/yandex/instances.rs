//! Renders every instance of a new group and checks the results.
//!
//! In: the texts of the instance template, and a fresh deal. Out: findings about names, addresses,
//! labels, and placeholders without a value. Must not: decide what is created.

use std::collections::{HashMap, HashSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::deal::Slot;
use super::names::{Instance, Names, is_system};
use super::schema::{LABEL_VALUE, Pattern, Role, VM_NAME};
use super::values::Field;
use crate::config::source::Span;
use crate::diagnostic::{Diagnostic, Diagnostics, typo};
use crate::render::placeholders::{self, GROUP_LABEL, INSTANCE_LABEL};

/// A group id for checks, as long as a real one.
const GROUP_ID: &str = "nsg00000000000000000";

/// How many unknown names of a specification are compared with the known ones.
const MOST_COMPARED: usize = 1_000;

/// Checks all instances. A field is reported once; fields in `failed` were reported before.
pub(super) fn check(
    slots: &[Slot],
    fields: &[Field],
    names: &Names,
    failed: HashSet<Span>,
    findings: &mut Diagnostics,
) {
    let mut check = Check {
        names,
        known: names.all(),
        findings,
        failed,
        warned: HashSet::new(),
        taken: HashMap::new(),
    };
    for slot in slots {
        let short_id = short_id(slot.index);
        let mut instance = Instance {
            group_id: GROUP_ID,
            short_id: &short_id,
            slot,
            labels: None,
        };
        // Labels can't refer to each other, and everything else can refer to them.
        let (labels, others): (Vec<_>, Vec<_>) =
            fields.iter().partition(|field| field.role == Role::Label);
        for field in labels {
            check.field(field, &instance);
        }
        names.render_labels(&mut instance);
        for field in others {
            check.field(field, &instance);
        }
    }
}

/// Four letters that are unique for indexes below 26⁴.
fn short_id(index: u32) -> String {
    let letter = |power| char::from(b'a' + (index / 26_u32.pow(power) % 26) as u8);
    [3, 2, 1, 0].map(letter).iter().collect()
}

struct Check<'c> {
    names: &'c Names,
    known: Vec<String>,
    findings: &'c mut Diagnostics,
    /// Fields with an error.
    failed: HashSet<Span>,
    /// Names that were compared with the known ones, by field.
    warned: HashSet<(Span, String)>,
    /// Names, hostnames and addresses, and the instance that has each.
    taken: HashMap<(Role, String), String>,
}

impl Check<'_> {
    fn field(&mut self, field: &Field, instance: &Instance<'_>) {
        if self.failed.contains(&field.span) {
            return;
        }
        let text = self.names.render(&field.text, instance);
        let error = match field.role {
            Role::Free => None,
            Role::Label => mismatch(field, &text, &LABEL_VALUE, instance),
            _ if text.is_empty() => None,
            _ => self
                .unresolved(field, &text, instance)
                .or_else(|| self.invalid(field, &text, instance)),
        };
        if matches!(field.role, Role::Free | Role::Label) {
            self.unreplaced(field, &text);
        }
        if let Some(error) = error {
            self.failed.insert(field.span);
            self.findings.push(error);
        }
    }

    /// The error for a placeholder that stays in a text where none may stay.
    fn unresolved(&self, field: &Field, text: &str, instance: &Instance<'_>) -> Option<Diagnostic> {
        let name = placeholders::names(text).into_iter().next()?;
        let place = format!("in {}", described(instance));
        Some(if self.names.is_known(name) {
            Diagnostic::error(format!("`{}` can't contain `{{{name}}}`", field.key))
                .at(field.span, place)
                .hint("single braces around a name are replaced, double ones aren't")
        } else {
            Diagnostic::error(format!("`{{{name}}}` has no value"))
                .at(field.span, place)
                .hint(self.hint(field, name))
        })
    }

    /// What to do about a placeholder without a value.
    fn hint(&self, field: &Field, name: &str) -> String {
        if let Some(near) = self.near(field, name) {
            format!("did you mean `{{{near}}}`?")
        } else if name == "instance.tag" {
            "add an `instance_tags_pool` to the zones".to_owned()
        } else if let Some(label) = name.strip_prefix(GROUP_LABEL) {
            format!("add the label `{label}` to the group's `labels`")
        } else if name.starts_with(INSTANCE_LABEL) && field.role == Role::Label {
            "labels can't refer to labels of the same instance".to_owned()
        } else if let Some(label) = name.strip_prefix(INSTANCE_LABEL) {
            format!("add the label `{label}` to the `labels` of `instance_template`")
        } else if is_systems(name) {
            "no system variable has this name".to_owned()
        } else {
            format!("add a variable with the key `{name}`")
        }
    }

    /// The known name that a name is likely to be a misspelling of. A name that is composed of
    /// other values is none.
    fn near(&self, field: &Field, name: &str) -> Option<&str> {
        let is_written = placeholders::find(&field.text).any(|(_, written)| written == name);
        let near = typo(name.trim(), self.known.iter().map(String::as_str));
        near.filter(|near| is_written && *near != name)
    }

    /// The error for a rendered text that is invalid or isn't unique.
    fn invalid(
        &mut self,
        field: &Field,
        text: &str,
        instance: &Instance<'_>,
    ) -> Option<Diagnostic> {
        let is_address = match field.role {
            Role::Name | Role::Hostname => {
                let error = mismatch(field, text, &VM_NAME, instance);
                if error.is_some() {
                    return error;
                }
                true
            }
            Role::Address(4) => text.parse::<Ipv4Addr>().is_ok(),
            Role::Address(_) => text.parse::<Ipv6Addr>().is_ok(),
            Role::PublicAddress => {
                if text.parse::<IpAddr>().is_err() {
                    self.findings.push(
                        Diagnostic::warning("a public address isn't a valid address")
                            .at(field.span, format!("`{text}` in {}", described(instance))),
                    );
                }
                true
            }
            _ => return None,
        };
        let subject = described(instance);
        if !is_address {
            return Some(
                Diagnostic::error(format!("`{text}` is not a valid address"))
                    .at(field.span, format!("in {subject}")),
            );
        }
        // Internal and public addresses are separate, and so are names and hostnames.
        let other = self
            .taken
            .insert((field.role, text.to_owned()), subject.clone())?;
        Some(
            Diagnostic::error(format!("two instances have the {} `{text}`", noun(field)))
                .at(field.span, format!("in {other} and in {subject}"))
                .hint(
                    "add a placeholder that differs in each instance, such as `{instance.index}`",
                ),
        )
    }

    /// Warns about placeholders that stay in a text, if they are likely errors.
    fn unreplaced(&mut self, field: &Field, text: &str) {
        for (open, name) in placeholders::find(text) {
            let is_template = text[..open].ends_with('{') && name.starts_with(' ');
            let key = (field.span, name.to_owned());
            if self.names.is_known(name) && field.role != Role::Label
                || is_template
                || !is_plain(name)
                || self.warned.len() >= MOST_COMPARED
                || !self.warned.insert(key)
            {
                continue;
            }
            if !is_systems(name) && !self.is_near(name) {
                continue;
            }
            let hint = self.hint(field, name);
            self.findings.push(
                Diagnostic::warning(format!("`{{{name}}}` isn't replaced"))
                    .at(field.span, format!("stays in `{}`", field.key))
                    .hint(hint),
            );
        }
    }

    /// Whether a name is almost a known one.
    fn is_near(&self, name: &str) -> bool {
        let name = name.trim();
        name.len() > 2 && typo(name, self.known.iter().map(String::as_str)).is_some()
    }
}

/// The error for a rendered text that doesn't fit its pattern.
fn mismatch(
    field: &Field,
    text: &str,
    pattern: &Pattern,
    instance: &Instance<'_>,
) -> Option<Diagnostic> {
    if (pattern.fits)(text) {
        return None;
    }
    let error = super::values::mismatch(&field.key, text, pattern, field.span);
    Some(if *text == *field.text {
        error
    } else {
        error.detail(format!("This is the value in {}", described(instance)))
    })
}

/// Whether a name belongs to the system variables by its prefix, or is one.
fn is_systems(name: &str) -> bool {
    name.starts_with("instance.") || name.starts_with("instance_group.") || is_system(name)
}

/// Whether a name consists of the characters of keys. Others belong to another language.
fn is_plain(name: &str) -> bool {
    name.len() <= 128
        && name
            .trim()
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"._-/\\@".contains(&byte))
}

fn described(instance: &Instance<'_>) -> String {
    let Slot { index, place } = instance.slot;
    let tag = match &*place.seat.tag {
        "" => String::new(),
        tag => format!(", tag {tag}"),
    };
    format!("instance {index} (zone {}{tag})", place.zone)
}

fn noun(field: &Field) -> &'static str {
    match field.role {
        Role::Name => "name",
        Role::Hostname => "hostname",
        _ => "address",
    }
}
