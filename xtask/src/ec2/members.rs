//! The table of what args may hold.
//!
//! In: the model of `RunInstances`. Out: `src/provider/aws/rules/members.rs`. May not: judge.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::calls::snake;
use super::model::{Kind, Member, Model, Shape};
use crate::Failure;

/// Members that nstance sets itself: `rules.rs` says what to use instead.
const MANAGED: &[&str] = &[
    "ClientToken",
    "DryRun",
    "InstanceType",
    "MaxCount",
    "MinCount",
    "SubnetId",
    "UserData",
];

pub(super) fn generate(model: &Model, header: &str) -> Result<String, Failure> {
    let input = model
        .input("RunInstances")
        .ok_or_else(|| Failure::say("the model has no RunInstances"))?;
    let mut constants = BTreeMap::new();
    let members: Vec<Member<'_>> = input
        .members()
        .into_iter()
        .filter(|member| !MANAGED.contains(&member.name))
        .collect();
    let table = table(&members, &mut constants)?;
    let used: Vec<&str> = [
        "Between",
        "Choice",
        "Deprecated",
        "Flag",
        "List",
        "Map",
        "Required",
        "Structure",
        "Text",
        "Time",
        "Whole",
    ]
    .into_iter()
    .filter(|word| {
        let uses = |text: &str| {
            text.split(|c: char| !c.is_ascii_alphanumeric())
                .any(|found| found == *word)
        };
        uses(&unquoted(&table)) || constants.values().any(|text| uses(&unquoted(text)))
    })
    .collect();
    let mut text = format!(
        "//! The members of EC2's `RunInstances`, those that nstance sets itself left out.
//!
//! {header}
//!
//! In: nothing. Out: [`RUN_INSTANCES`]. Must not: hold rules, which are in `rules.rs`, or be
//! edited.

use crate::provider::shape::Members;
use crate::provider::shape::Shape::{{{}}};

/// What args may hold.
pub(super) const RUN_INSTANCES: Members = {table};
",
        used.join(", ")
    );
    for constant in constants.values() {
        let _ = write!(text, "\n{constant}");
    }
    Ok(text)
}

/// The text without what stands in quotes.
fn unquoted(text: &str) -> String {
    text.split('"').step_by(2).collect::<Vec<_>>().join(" ")
}

fn table(
    members: &[Member<'_>],
    constants: &mut BTreeMap<String, String>,
) -> Result<String, Failure> {
    let mut text = String::from("&[\n");
    for member in members {
        let mut shape = shape(member.shape, constants)?;
        if member.required {
            shape = format!("Required(&{shape})");
        }
        if let Some(message) = member.deprecated {
            shape = format!("Deprecated({message:?}, &{shape})");
        }
        let _ = writeln!(text, "({:?}, {shape}),", member.name);
    }
    text.push(']');
    Ok(text)
}

fn shape(of: Shape<'_>, constants: &mut BTreeMap<String, String>) -> Result<String, Failure> {
    let name = snake(of.name).to_uppercase();
    Ok(match of.kind()? {
        Kind::Structure => {
            if !constants.contains_key(&name) {
                // Its place is taken first, for structures that hold themselves.
                constants.insert(name.clone(), String::new());
                let table = table(&of.members(), constants)?;
                constants.insert(name.clone(), format!("const {name}: Members = {table};\n"));
            }
            format!("Structure({name})")
        }
        Kind::List(item) => format!("List(&{})", shape(item, constants)?),
        Kind::Map(value) => format!("Map(&{})", shape(value, constants)?),
        Kind::Enumeration(values) => {
            let text = format!("const {name}: &[&str] = &{values:?};\n");
            constants.insert(name.clone(), text);
            format!("Choice({name})")
        }
        Kind::Text => "Text".to_owned(),
        Kind::Flag => "Flag".to_owned(),
        Kind::Whole => match of.bounds() {
            (None, None) => "Whole".to_owned(),
            (low, high) => format!(
                "Between({}, {})",
                literal(low.unwrap_or(i64::from(i32::MIN))),
                literal(high.unwrap_or(i64::from(i32::MAX)))
            ),
        },
        Kind::Time => "Time".to_owned(),
        Kind::Number | Kind::Blob => {
            return Err(Failure::say(format!(
                "`{}` is new: src/provider/shape.rs has no shape for it yet",
                of.name
            )));
        }
    })
}

/// A number as Rust's lints want it: `2_147_483_647`.
fn literal(number: i64) -> String {
    let digits = number.unsigned_abs().to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        // Numbers below 10,000 are read without separators, too.
        if index > 0 && digits.len() > 4 && (digits.len() - index).is_multiple_of(3) {
            text.push('_');
        }
        text.push(digit);
    }
    if number < 0 {
        text.insert(0, '-');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::literal;

    #[test]
    fn large_numbers_have_separators() {
        for (number, text) in [
            (0, "0"),
            (-1, "-1"),
            (1024, "1024"),
            (65_535, "65_535"),
            (-2_147_483_648, "-2_147_483_648"),
        ] {
            assert_eq!(literal(number), text);
        }
    }
}
