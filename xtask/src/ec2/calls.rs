//! Rust that turns JSON into an SDK's inputs, and an SDK's outputs into JSON.
//!
//! In: a service's model and its SDK's types. Out: a module for each operation, and one for what
//! several share. May not: leave a member out without a complaint.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use nstance_ec2::Operation;

use super::Source;
use super::model::{Kind, Member, Model, Shape};
use super::sdk::{Field, Holds, Sdk, Structure, Type, squeeze};
use crate::Failure;

/// Which way a structure goes. Few go both.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Way {
    Read,
    Write,
}

/// A function for a structure, and who needs it.
struct Function {
    text: String,
    operations: BTreeSet<&'static str>,
}

/// What is gathered while the shapes of a service are walked.
struct Walk<'m> {
    sdk: &'m Sdk,
    complaints: &'m mut Vec<String>,
    functions: BTreeMap<(String, Way), Function>,
}

/// The files of a service, by their names in its folder.
pub(super) fn generate(
    source: &Source,
    model: &Model,
    sdk: &Sdk,
    header: &str,
    complaints: &mut Vec<String>,
) -> Result<BTreeMap<String, String>, Failure> {
    let mut walk = Walk {
        sdk,
        complaints,
        functions: BTreeMap::new(),
    };
    let operations: Vec<Operation> = operations_of(source).collect();
    let mut bodies = BTreeMap::new();
    for operation in &operations {
        bodies.insert(operation.name(), walk.operation(model, *operation)?);
    }
    let mut shared = String::new();
    for ((_, _), function) in &walk.functions {
        match function.operations.iter().collect::<Vec<_>>()[..] {
            [only] => bodies.entry(only).or_default().push_str(&function.text),
            _ => shared.push_str(&function.text),
        }
    }
    let mut files = BTreeMap::new();
    let mut modules = String::new();
    for operation in operations {
        let name = operation.name();
        let module = snake(name);
        let _ = writeln!(modules, "pub(in crate::client) mod {module};");
        let text = file(
            &format!("`{name}`: its input from JSON, its output to JSON."),
            header,
            &sdk.name,
            Some(name),
            &bodies[name],
            &walk.functions,
        );
        files.insert(format!("{module}.rs"), text);
    }
    if !shared.is_empty() {
        modules.push_str("mod shared;\n");
        let what = "Structures of more than one operation, from JSON and to JSON.";
        let text = file(what, header, &sdk.name, None, &shared, &walk.functions);
        files.insert("shared.rs".to_owned(), text);
    }
    files.insert(
        "mod.rs".to_owned(),
        format!(
            "{}\n{modules}",
            head(&format!("The operations of {}.", sdk.name), header)
        ),
    );
    Ok(files)
}

/// The module that holds those of the services, and finds an operation's.
pub(super) fn index(sources: &[Source]) -> String {
    let mut text = head(
        "Every operation, as a call of an SDK or of `json`.",
        "Made by `cargo xtask gen-ec2-args`.",
    );
    text.push('\n');
    for source in sources.iter().filter(|source| source.sdk.is_some()) {
        let _ = writeln!(text, "mod {};", source.module);
    }
    text.push_str(
        "
use serde_json::Value;

use super::{Clients, json};
use crate::{ApiError, Operation};

/// Makes one call.
pub(super) async fn call(
    clients: &Clients,
    operation: Operation,
    input: &Value,
) -> Result<Value, ApiError> {
    // The futures are large, so each has its own allocation.
    match operation {
",
    );
    for source in sources {
        for operation in operations_of(source) {
            let (name, service) = (operation.name(), source.module);
            let call = match source.sdk {
                Some(_) => format!(
                    "{service}::{}::call(&clients.{service}, input)",
                    snake(name)
                ),
                None => format!("json::call(&clients.{service}, operation, input)"),
            };
            let _ = writeln!(text, "Operation::{name} => Box::pin({call}).await,");
        }
    }
    text.push_str("    }\n}\n");
    text
}

fn operations_of(source: &Source) -> impl Iterator<Item = Operation> {
    let service = source.service;
    let mut operations: Vec<Operation> = Operation::ALL
        .iter()
        .copied()
        .filter(|operation| operation.service() == service)
        .collect();
    operations.sort_by_key(|operation| operation.name());
    operations.into_iter()
}

fn head(what: &str, header: &str) -> String {
    format!(
        "//! {what}
//!
//! {header}
//!
//! In: JSON by the API's names, values of the SDK. Out: the one from the other. May not: be edited.
"
    )
}

/// A file of functions, with the imports that they need.
fn file(
    what: &str,
    header: &str,
    sdk: &str,
    operation: Option<&str>,
    body: &str,
    functions: &BTreeMap<(String, Way), Function>,
) -> String {
    let sdk = sdk.replace('-', "_");
    let mut imports = String::new();
    if body.contains(" types::") || body.contains("(types::") || body.contains("&types::") {
        let _ = writeln!(imports, "use {sdk}::types;");
    }
    if let Some(operation) = operation {
        let _ = writeln!(imports, "use {sdk}::Client;");
        let module = snake(operation);
        let mut names = vec![
            format!("builders::{operation}InputBuilder"),
            format!("{operation}Input"),
        ];
        if body.contains("write_output") {
            names.push(format!("{operation}Output"));
        }
        let _ = writeln!(
            imports,
            "use {sdk}::operation::{module}::{{{}}};",
            names.join(", ")
        );
    }
    imports.push_str("use serde_json::Value;\n\n");
    if operation.is_some() {
        let shared: Vec<String> = functions
            .iter()
            .filter(|(_, function)| function.operations.len() > 1)
            .map(|((name, way), _)| function_name(name, *way))
            .filter(|name| body.contains(&format!(", {name})")))
            .collect();
        if !shared.is_empty() {
            let _ = writeln!(imports, "use super::shared::{{{}}};", shared.join(", "));
        }
        imports.push_str("use crate::ApiError;\nuse crate::client::failure::failure;\n");
    }
    let mut read = Vec::new();
    for (name, mark) in [("Members", "Members::"), ("Misfit", "Misfit>")] {
        if body.contains(mark) {
            read.push(name);
        }
    }
    if body.contains("read::") {
        read.push("self");
    }
    if !read.is_empty() {
        let _ = writeln!(imports, "use crate::client::read::{{{}}};", read.join(", "));
    }
    let mut write = Vec::new();
    if body.contains("Object::") {
        write.push("Object");
    }
    if body.contains("write::") {
        write.push("self");
    }
    match write[..] {
        [] => {}
        ["self"] => imports.push_str("use crate::client::write;\n"),
        _ => {
            let _ = writeln!(
                imports,
                "use crate::client::write::{{{}}};",
                write.join(", ")
            );
        }
    }
    format!("{}\n{imports}{body}", head(what, header))
}

impl Walk<'_> {
    /// The functions of an operation itself.
    fn operation(&mut self, model: &Model, operation: Operation) -> Result<String, Failure> {
        let name = operation.name();
        let module = snake(name);
        let input = self.sdk.of_operation(&module, "input")?;
        let output = self.sdk.of_operation(&module, "output")?;
        let mut text = String::new();
        let answer = if output.fields.is_empty() {
            self.compare(name, &[], &output);
            "Ok(write::nothing())"
        } else {
            "Ok(write_output(&output))"
        };
        let mutable = if input.fields.is_empty() { "" } else { "mut " };
        let binding = if output.fields.is_empty() {
            ""
        } else {
            "let output = "
        };
        let _ = write!(
            text,
            "
/// Makes the call.
pub(in crate::client) async fn call(client: &Client, input: &Value) -> Result<Value, ApiError> {{
    {binding}read_input(input)?.send_with(client).await.map_err(failure)?;
    {answer}
}}

{}fn read_input(value: &Value) -> Result<{name}InputBuilder, Misfit> {{
    let {mutable}members = Members::of(value)?;
    let builder = {name}Input::builder(){};
    members.end(\"{name}\")?;
    Ok(builder)
}}
",
            expectation(&input),
            self.setters(operation, name, &members_of(model.input(name)), &input)?,
        );
        if !output.fields.is_empty() {
            let lines = self.puts(operation, name, &members_of(model.output(name)), &output)?;
            let _ = write!(
                text,
                "
{}fn write_output(value: &{name}Output) -> Value {{
    let mut members = Object::new();
{lines}    members.end()
}}
",
                expectation(&output)
            );
        }
        Ok(text)
    }

    /// Complains of members that only one of the two has.
    fn compare(&mut self, owner: &str, members: &[Member<'_>], structure: &Structure) {
        for member in members {
            if !structure.fields.contains_key(&squeeze(member.name)) {
                self.complaints
                    .push(format!("only the model has {owner}.{}", member.name));
            }
        }
        for (squeezed, field) in &structure.fields {
            if !members
                .iter()
                .any(|member| squeeze(member.name) == *squeezed)
            {
                self.complaints
                    .push(format!("only the SDK has {owner}.{}", field.name));
            }
        }
    }

    /// The calls of a builder's setters.
    fn setters(
        &mut self,
        operation: Operation,
        owner: &str,
        members: &[Member<'_>],
        structure: &Structure,
    ) -> Result<String, Failure> {
        self.compare(owner, members, structure);
        let mut text = String::new();
        for (member, field) in pairs(members, structure) {
            let (get, of) = self.way(operation, member, field, Way::Read)?;
            let setter = field.name.trim_start_matches("r#");
            let _ = write!(
                text,
                "\n.set_{setter}(members.{get}(\"{}\", {of})?)",
                member.name
            );
        }
        Ok(text)
    }

    /// The lines that put members into an object.
    fn puts(
        &mut self,
        operation: Operation,
        owner: &str,
        members: &[Member<'_>],
        structure: &Structure,
    ) -> Result<String, Failure> {
        self.compare(owner, members, structure);
        let mut text = String::new();
        for (member, field) in pairs(members, structure) {
            let (put, of) = self.way(operation, member, field, Way::Write)?;
            let put = if put == "get" { "put" } else { put };
            let value = if field.optional {
                format!("value.{}.as_ref()", field.name)
            } else {
                format!("Some(&value.{})", field.name)
            };
            let _ = writeln!(text, "members.{put}(\"{}\", {value}, {of});", member.name);
        }
        Ok(text)
    }

    /// How a member is taken (`get` or `list`), and the function for what it holds.
    fn way(
        &mut self,
        operation: Operation,
        member: &Member<'_>,
        field: &Field,
        way: Way,
    ) -> Result<(&'static str, String), Failure> {
        let (get, shape, holds) = match (member.shape.kind()?, &field.holds) {
            (Kind::List(item), Holds::List(holds)) => ("list", item, &**holds),
            _ => ("get", member.shape, &field.holds),
        };
        let module = match way {
            Way::Read => "read",
            Way::Write => "write",
        };
        let leaf = |name: &str| format!("{module}::{name}");
        let of = match (shape.kind()?, holds) {
            (Kind::Structure, Holds::Named(name)) => {
                self.structure(operation, shape, name, way)?;
                function_name(name, way)
            }
            (Kind::Enumeration(_), Holds::Named(_)) => leaf("enumeration"),
            (Kind::Enumeration(_) | Kind::Text, Holds::Text) => leaf("text"),
            (Kind::Flag, Holds::Flag) => leaf("flag"),
            (Kind::Whole, Holds::Whole) => leaf("whole"),
            (Kind::Whole, Holds::Long) => leaf("long"),
            (Kind::Number, Holds::Number) => leaf("number"),
            (Kind::Time, Holds::Time) => leaf("time"),
            (Kind::Blob, Holds::Blob) => leaf("blob"),
            (_, holds) => {
                self.complaints.push(format!(
                    "`{}` of {}: the SDK has {holds:?} where the model has {}",
                    member.name,
                    operation.name(),
                    shape.name
                ));
                String::new()
            }
        };
        Ok((get, of))
    }

    /// Makes the function of a structure, or notes one more operation that needs it.
    fn structure(
        &mut self,
        operation: Operation,
        shape: Shape<'_>,
        name: &str,
        way: Way,
    ) -> Result<(), Failure> {
        let key = (name.to_owned(), way);
        let function = self.functions.entry(key.clone()).or_insert(Function {
            text: String::new(),
            operations: BTreeSet::new(),
        });
        if !function.operations.insert(operation.name()) {
            return Ok(());
        }
        let Type::Structure(structure) = self.sdk.named(name)? else {
            self.complaints
                .push(format!("`{name}` is no structure in the SDK"));
            return Ok(());
        };
        let members = shape.members();
        // Walked for every operation: what it reaches is reached by each of them.
        let body = match way {
            Way::Read => self.setters(operation, name, &members, &structure)?,
            Way::Write => self.puts(operation, name, &members, &structure)?,
        };
        let expectation = expectation(&structure);
        let function_name = function_name(name, way);
        let text = match way {
            Way::Read => {
                let built = if structure.fallible { "?" } else { "" };
                format!(
                    "
{expectation}pub(super) fn {function_name}(value: &Value) -> Result<types::{name}, Misfit> {{
    let mut members = Members::of(value)?;
    let structure = types::{name}::builder(){body}.build(){built};
    members.end(\"{name}\")?;
    Ok(structure)
}}
"
                )
            }
            Way::Write => format!(
                "
{expectation}pub(super) fn {function_name}(value: &types::{name}) -> Value {{
    let mut members = Object::new();
{body}    members.end()
}}
"
            ),
        };
        if let Some(function) = self.functions.get_mut(&key) {
            function.text = text;
        }
        Ok(())
    }
}

fn members_of(shape: Option<Shape<'_>>) -> Vec<Member<'_>> {
    shape.map(Shape::members).unwrap_or_default()
}

/// Members with their fields, where both sides have them.
fn pairs<'p>(
    members: &'p [Member<'p>],
    structure: &'p Structure,
) -> impl Iterator<Item = (&'p Member<'p>, &'p Field)> {
    members
        .iter()
        .filter_map(|member| Some((member, structure.fields.get(&squeeze(member.name))?)))
}

/// What stands before a function that touches deprecated members.
fn expectation(structure: &Structure) -> &'static str {
    if structure.fields.values().any(|field| field.deprecated) {
        "#[expect(deprecated, reason = \"the API still has these members\")]\n"
    } else {
        ""
    }
}

fn function_name(structure: &str, way: Way) -> String {
    let way = match way {
        Way::Read => "read",
        Way::Write => "write",
    };
    format!("{way}_{}", snake(structure))
}

/// `DescribeIamInstanceProfile` as `describe_iam_instance_profile`.
pub(super) fn snake(name: &str) -> String {
    let mut text = String::new();
    let characters: Vec<char> = name.chars().collect();
    for (index, &c) in characters.iter().enumerate() {
        let after_small = index > 0 && !characters[index - 1].is_ascii_uppercase();
        let before_small = characters
            .get(index + 1)
            .is_some_and(char::is_ascii_lowercase);
        if c.is_ascii_uppercase() && index > 0 && (after_small || before_small) {
            text.push('_');
        }
        text.push(c.to_ascii_lowercase());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::snake;

    #[test]
    fn names_are_cut_before_capitals() {
        for (name, wanted) in [
            ("RunInstances", "run_instances"),
            ("Ipv6AddressCount", "ipv6_address_count"),
            ("EnaSrdSpecification", "ena_srd_specification"),
            ("DITMaxResults", "dit_max_results"),
            ("Tag", "tag"),
        ] {
            assert_eq!(snake(name), wanted);
        }
    }
}
