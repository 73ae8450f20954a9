//! Applies ops files and variables to a manifest, as `bosh interpolate` does.
//!
//! In: a manifest, ops files and vars files as values. Out: the manifest with all of them applied.
//! What comes from another file keeps its place there. Errors have bosh-cli's wording.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::LazyLock;

use regex::Regex;

use crate::error::Error;
use crate::golang;
use crate::ops::{self, Pointer};
use crate::value::{Data, Entry, MapBuilder, Place, Value};

/// How many definitions may need each other, one through the other's options.
const DEEPEST: usize = 100;

/// What is an error in variables.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options {
    /// Variables without a value are errors: `--var-errs`.
    pub var_errs: bool,
    /// Values that no variable uses are errors: `--var-errs-unused`.
    pub var_errs_unused: bool,
}

/// Applies the operations of ops files in their order, then the variables.
///
/// `vars` are maps from names to values; later ones win. A dotted name is a path: `a.b: 1` is
/// `a: {b: 1}`. Fails with all errors of the first stage that has any: operations that can't be
/// parsed, the first operation that can't be applied, variables.
pub fn interpolate(
    manifest: &Value,
    ops: &[Value],
    vars: &[Value],
    options: Options,
) -> Result<Value, Vec<Error>> {
    let manifest = apply_ops(manifest, ops)?;
    let mut variables = Variables {
        values: values(vars)?,
        definitions: definitions(&manifest)?,
        resolved: HashMap::new(),
        errors: Vec::new(),
    };
    let mut scope = Scope::default();
    // Ends a recursion here, before every use of its variables reports it.
    variables.check_definitions(&mut scope, |definition| definition.is_typed)?;
    let mut manifest = variables.interpolated(&manifest, &mut scope);
    if !variables.errors.is_empty() {
        return Err(variables.errors);
    }
    let found = variables.check_definitions(&mut scope, |_| true)?;
    for (name, place) in found {
        Pointer::to_item("variables", "name", &name)
            .remove_from(&mut manifest)
            .map_err(|message| vec![Error::at(place, message)])?;
    }
    let mut errors = Vec::new();
    if options.var_errs {
        errors.extend(listed("find", &scope.missing));
    }
    if options.var_errs_unused {
        let entries = variables.values.as_map().unwrap_or_default().iter();
        let unused = entries
            .map(|entry| (entry.key.to_s(), entry.key.place))
            .filter(|(name, _)| !scope.used.contains(name));
        errors.extend(listed("use", &unused.collect()));
    }
    if errors.is_empty() {
        Ok(manifest)
    } else {
        Err(errors)
    }
}

fn apply_ops(manifest: &Value, files: &[Value]) -> Result<Value, Vec<Error>> {
    let mut manifest = manifest.clone();
    let mut operations = Vec::new();
    let mut errors = Vec::new();
    for file in files {
        match ops::parse(file) {
            Ok(parsed) => operations.extend(parsed),
            Err(found) => errors.extend(found),
        }
    }
    if !errors.is_empty() {
        return Err(errors);
    }
    for operation in operations {
        operation
            .apply(&mut manifest)
            .map_err(|error| vec![error])?;
    }
    Ok(manifest)
}

/// One error about names, sorted, at the place of the first.
fn listed(verb: &str, names: &BTreeMap<String, Place>) -> Option<Error> {
    let place = *names.values().next()?;
    let names: Vec<&str> = names.keys().map(String::as_str).collect();
    let message = format!("Expected to {verb} variables: {}", names.join("\n"));
    Some(Error::at(place, message))
}

/// The values of vars files as one map.
fn values(files: &[Value]) -> Result<Value, Vec<Error>> {
    let mut flat = MapBuilder::default();
    let mut errors = Vec::new();
    for file in files {
        match &file.data {
            Data::Null => {}
            Data::Map(entries) => {
                for Entry { key, value } in entries {
                    let name = Value::string(key.place, golang::text(key));
                    flat.set(name, value.clone());
                }
            }
            _ => {
                let message = "Expected variables to be a map of names to values";
                errors.push(Error::at(file.place, message));
            }
        }
    }
    if !errors.is_empty() {
        return Err(errors);
    }
    let flat = Value::new(Place::default(), flat.finish());
    let (dotted, plain): (Vec<&Entry>, Vec<&Entry>) = flat
        .as_map()
        .unwrap_or_default()
        .iter()
        .partition(|entry| entry.key.as_str().is_some_and(|name| name.contains('.')));
    let mut values = Value::new(
        Place::default(),
        Data::Map(plain.into_iter().cloned().collect()),
    );
    for entry in dotted {
        set_path(&mut values, entry);
    }
    Ok(values)
}

/// Sets `a.b.c` in `values`. A value on the way that isn't a map is replaced by one.
fn set_path(values: &mut Value, entry: &Entry) {
    let place = entry.key.place;
    let name = entry.key.to_s();
    let mut parts = name.split('.').peekable();
    let mut map = values;
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            map.set(Value::string(place, part), entry.value.clone());
            return;
        }
        if !map.get(part).is_some_and(Value::is_map) {
            map.set(Value::string(place, part), Value::empty_map(place));
        }
        let Some(next) = map.get_mut(part) else {
            return;
        };
        map = next;
    }
}

/// An entry of the manifest's `variables`.
struct Definition {
    name: String,
    place: Place,
    /// Whether it has a type, without which it can't be generated.
    is_typed: bool,
    options: Value,
}

fn definitions(manifest: &Value) -> Result<Vec<Definition>, Vec<Error>> {
    let Some(section) = manifest.get("variables").filter(|value| !value.is_null()) else {
        return Ok(Vec::new());
    };
    let not_maps = |place| {
        vec![Error::at(
            place,
            "Expected 'variables' to be a list of maps",
        )]
    };
    let items = section.as_list().ok_or_else(|| not_maps(section.place))?;
    let mut definitions = Vec::new();
    for item in items {
        if !item.is_map() {
            return Err(not_maps(item.place));
        }
        let text = |key| item.get(key).filter(|value| !value.is_null());
        let options = item.get("options").cloned();
        definitions.push(Definition {
            name: text("name").map(golang::text).unwrap_or_default(),
            place: item.place,
            is_typed: text("type").is_some_and(|value| value.as_str() != Some("")),
            options: options.unwrap_or_else(|| Value::null(item.place)),
        });
    }
    Ok(definitions)
}

/// What was looked up: in the manifest, or in the options of one definition.
#[derive(Default)]
struct Scope {
    /// The definitions whose options are being interpolated.
    visited: Vec<String>,
    missing: BTreeMap<String, Place>,
    used: BTreeSet<String>,
}

struct Variables {
    values: Value,
    definitions: Vec<Definition>,
    /// For each definition whose options were interpolated, whether nothing was missing in them.
    /// Otherwise definitions that use each other twice would take exponential time.
    resolved: HashMap<String, Result<bool, String>>,
    errors: Vec<Error>,
}

impl Variables {
    /// Looks definitions up. Returns those with a value.
    fn check_definitions(
        &mut self,
        scope: &mut Scope,
        is_checked: fn(&Definition) -> bool,
    ) -> Result<Vec<(String, Place)>, Vec<Error>> {
        let mut found = Vec::new();
        for index in 0..self.definitions.len() {
            let definition = &self.definitions[index];
            if !is_checked(definition) {
                continue;
            }
            let (name, place) = (definition.name.clone(), definition.place);
            match self.is_found(&name, place, scope) {
                Ok(false) => {}
                Ok(true) => found.push((name, place)),
                Err(why) => {
                    let message =
                        format!("Getting all variables from variable definitions sections: {why}");
                    return Err(vec![Error::at(place, message)]);
                }
            }
        }
        Ok(found)
    }

    /// Whether a variable, without a path, has a value, and nothing is missing in the options of its
    /// definition.
    fn is_found(&mut self, name: &str, place: Place, scope: &mut Scope) -> Result<bool, String> {
        scope.used.insert(name.to_owned());
        if scope.visited.iter().any(|visited| visited == name) {
            return Err("Detected recursion".to_owned());
        }
        if !self.is_resolved(name, scope)? {
            return Ok(false);
        }
        let is_found = self.values.get(name).is_some();
        if !is_found {
            scope.missing.entry(name.to_owned()).or_insert(place);
        }
        Ok(is_found)
    }

    /// Whether the options of a variable's definition lack no variable.
    fn is_resolved(&mut self, name: &str, scope: &Scope) -> Result<bool, String> {
        if let Some(is_resolved) = self.resolved.get(name) {
            return is_resolved.clone();
        }
        if scope.visited.len() == DEEPEST {
            return Err(format!("More than {DEEPEST} definitions need each other"));
        }
        let definition = self.definitions.iter().find(|found| found.name == name);
        let Some(options) = definition.map(|definition| definition.options.clone()) else {
            return Ok(true);
        };
        let mut inner = Scope {
            visited: [scope.visited.clone(), vec![name.to_owned()]].concat(),
            ..Scope::default()
        };
        let outer_errors = std::mem::take(&mut self.errors);
        self.interpolated(&options, &mut inner);
        let errors = std::mem::replace(&mut self.errors, outer_errors);
        let is_resolved = match errors.first() {
            None => Ok(inner.missing.is_empty()),
            Some(error) => Err(format!(
                "Interpolating variable '{name}' definition options: {error}"
            )),
        };
        self.resolved.insert(name.to_owned(), is_resolved.clone());
        is_resolved
    }

    /// The value of `a.b.c`: the value at `/b/c` in the variable `a`.
    fn value_at(
        &mut self,
        name: &str,
        place: Place,
        scope: &mut Scope,
    ) -> Result<Option<Value>, String> {
        let (variable, path) = match name.split_once('.') {
            Some((variable, path)) => (variable, format!("/{}", path.replace('.', "/"))),
            None => (name, String::new()),
        };
        if !self.is_found(variable, place, scope)? {
            return Ok(None);
        }
        let Some(value) = self.values.get(variable) else {
            return Ok(None);
        };
        let path = Pointer::parse(&path)?;
        // A number is the index of a list, or else a key.
        let found = path.find(value).or_else(|_| {
            let keys = path.with_indices_as_keys();
            keys.find(value)
        });
        let found = found.map_err(|failure| failure.message)?;
        Ok(Some(found.into_owned()))
    }

    /// A value with variables replaced. Errors are collected; a value with an error stays.
    fn interpolated(&mut self, value: &Value, scope: &mut Scope) -> Value {
        let data = match &value.data {
            Data::String(text) => return self.interpolated_string(value, text, scope),
            Data::List(items) => {
                let items = items.iter().map(|item| self.interpolated(item, scope));
                Data::List(items.collect())
            }
            Data::Map(entries) => {
                let mut map = MapBuilder::default();
                for entry in entries {
                    let value = self.interpolated(&entry.value, scope);
                    let key = self.interpolated(&entry.key, scope);
                    if matches!(key.data, Data::List(_) | Data::Map(_)) {
                        let type_name = golang::type_name(&key);
                        let message = format!("Invalid type '{type_name}' of a map key");
                        self.errors.push(Error::at(entry.key.place, message));
                        continue;
                    }
                    map.set(key, value);
                }
                map.finish()
            }
            other => other.clone(),
        };
        Value::new(value.place, data)
    }

    fn interpolated_string(&mut self, value: &Value, text: &str, scope: &mut Scope) -> Value {
        let mut result = text.to_owned();
        for reference in VARIABLE.captures_iter(text) {
            let name = reference[1].trim_start_matches('!');
            let found = match self.value_at(name, value.place, scope) {
                Ok(None) => continue,
                Ok(Some(found)) => found,
                Err(why) => {
                    let message = format!("Finding variable '{name}': {why}");
                    self.errors.push(Error::at(value.place, message));
                    continue;
                }
            };
            if VARIABLE.find(&result).map(|found| found.len()) == Some(result.len()) {
                return found;
            }
            if !matches!(found.data, Data::String(_) | Data::Integer(_)) {
                let message = format!(
                    "Invalid type '{}' for value '{}' and variable '{name}'. \
                     Supported types for interpolation within a string are integers and strings.",
                    golang::type_name(&found),
                    golang::text(&found)
                );
                self.errors.push(Error::at(value.place, message));
                continue;
            }
            let found = golang::text(&found);
            result = result.replace(&format!("(({name}))"), &found);
            result = result.replace(&format!("((!{name}))"), &found);
        }
        Value::string(value.place, result)
    }
}

/// A use of a variable. Within a longer string, the form with spaces isn't replaced.
static VARIABLE: LazyLock<Regex> = LazyLock::new(|| {
    #[expect(clippy::unwrap_used, reason = "a constant that the tests compile")]
    Regex::new(r"\(\( ?(!?[-/.0-9A-Za-z_\pL]+) ?\)\)").unwrap()
});

#[cfg(test)]
mod tests {
    use super::*;
    use crate::yaml::{read_as_cli, read_vars};

    const ALL: Options = Options {
        var_errs: true,
        var_errs_unused: true,
    };

    /// The manifest after variables, or the messages of all errors.
    fn interpolated(manifest: &str, vars: &[&str], options: Options) -> Result<String, String> {
        let manifest = read_as_cli(manifest, 0).unwrap();
        let vars = vars.iter().zip(1..);
        let vars: Vec<Value> = vars
            .map(|(text, file)| read_vars(text, file).unwrap())
            .collect();
        match interpolate(&manifest, &[], &vars, options) {
            Ok(value) => Ok(value.inspect()),
            Err(errors) => {
                let messages: Vec<String> = errors.iter().map(Error::to_string).collect();
                Err(messages.join("; "))
            }
        }
    }

    #[test]
    fn variables_are_replaced_by_their_values() {
        for (manifest, vars, expected) in [
            ("((a))", vec!["a: [1]"], "[1]"),
            ("a: ((!x))", vec!["x: 1.5"], r#"{"a"=>1.5}"#),
            ("a: (( !x ))", vec!["x: ~"], r#"{"a"=>nil}"#),
            (
                "a: -((x))-((y))-",
                vec!["x: 1", "y: z"],
                r#"{"a"=>"-1-z-"}"#,
            ),
            ("a: x (( x ))", vec!["x: 1"], r#"{"a"=>"x (( x ))"}"#),
            ("a: (((x)))", vec!["x: 1"], r#"{"a"=>"(1)"}"#),
            ("a: ((größe/x-1))", vec!["größe/x-1: 1"], r#"{"a"=>1}"#),
            ("a: ((x y))", vec!["x y: 1"], r#"{"a"=>"((x y))"}"#),
            // Later files win, key by key at the top only.
            (
                "[((x)), ((y))]",
                vec!["{x: {a: 1}, y: 1}", "x: {b: 2}"],
                r#"[{"b"=>2}, 1]"#,
            ),
            ("((x)): [((x)): 1]", vec!["x: k"], r#"{"k"=>[{"k"=>1}]}"#),
            ("((x)): 1", vec!["x: 5"], "{5=>1}"),
            // A value is put in before the next variable is looked for.
            ("((a))((b))", vec!["a: ''\nb: 1"], "1"),
            (
                "((a.b.c)) ((a.b.1))",
                vec!["a: {b: {c: x, 1: y, '1': z}}"],
                "\"x z\"",
            ),
            ("((a.-1.b))", vec!["a: [1, {b: 2}]"], "2"),
            ("((a.b/c))", vec!["a: {b: {c: 3}}"], "3"),
            ("((a.b.c))", vec!["a.b.c: 1\na.b.d: 2\na: {x: 1}"], "1"),
            (
                "((a))",
                vec!["a.b.c: 1\na.b.d: 2\na: {x: 1}"],
                r#"{"x"=>1, "b"=>{"c"=>1, "d"=>2}}"#,
            ),
            (
                "((n)) ((1)) ((yes))",
                vec!["n: a\n1: b\nyes: c"],
                "\"a b c\"",
            ),
        ] {
            let found = interpolated(manifest, &vars, Options::default());
            assert_eq!(found.as_deref(), Ok(expected), "{manifest}");
        }
    }

    #[test]
    fn all_errors_are_reported() {
        for (manifest, vars, expected) in [
            (
                "[((a.x)), ((a.k.z)), '-((a))']",
                vec!["a: {k: 1}"],
                "Finding variable 'a.x': Expected to find a map key 'x' for path '/x' \
                 (found map keys: 'k'); \
                 Finding variable 'a.k.z': Expected to find a map at path '/k/z' but found 'int'; \
                 Invalid type 'map[interface {}]interface {}' for value 'map[k:1]' and variable \
                 'a'. Supported types for interpolation within a string are integers and strings.",
            ),
            (
                "-((a))",
                vec!["a: ~"],
                "Invalid type '<nil>' for value '<nil>' and variable 'a'. Supported types for \
                 interpolation within a string are integers and strings.",
            ),
            (
                "((a.5))",
                vec!["a: [1]"],
                "Finding variable 'a.5': Expected to find a map at path '/5' but found \
                 '[]interface {}'",
            ),
            (
                "[((b)), ((a.x)), ((b))]",
                vec!["c: 1\nd.e: 1"],
                "Expected to find variables: a\nb; Expected to use variables: c\nd",
            ),
            (
                "((a)): 1",
                vec!["a: []"],
                "Invalid type '[]interface {}' of a map key",
            ),
            (
                "a",
                vec!["[a]"],
                "Expected variables to be a map of names to values",
            ),
            (
                "variables: a",
                vec![],
                "Expected 'variables' to be a list of maps",
            ),
            (
                "variables: [a]",
                vec![],
                "Expected 'variables' to be a list of maps",
            ),
        ] {
            let found = interpolated(manifest, &vars, ALL);
            assert_eq!(found.unwrap_err(), expected, "{manifest}");
        }
    }

    #[test]
    fn definitions_are_removed_once_their_values_are_known() {
        let dependent = "{variables: [{name: a, type: t, options: {x: ((b))}}], c: ((a))}";
        for (manifest, vars, expected) in [
            (
                "{variables: [{name: a, type: t}, {name: b, type: t}], c: ((a))}",
                vec!["a: 1"],
                r#"{"variables"=>[{"name"=>"b", "type"=>"t"}], "c"=>1}"#,
            ),
            (
                "variables: [{name: a}]",
                vec!["a: 1"],
                r#"{"variables"=>[]}"#,
            ),
            (
                dependent,
                vec!["b: 2"],
                r#"{"variables"=>[{"name"=>"a", "type"=>"t", "options"=>{"x"=>2}}], "c"=>"((a))"}"#,
            ),
            // A variable whose options lack one isn't looked up.
            (
                dependent,
                vec!["a: 1"],
                r#"{"variables"=>[{"name"=>"a", "type"=>"t", "options"=>{"x"=>"((b))"}}], "c"=>"((a))"}"#,
            ),
        ] {
            let found = interpolated(manifest, &vars, Options::default());
            assert_eq!(found.as_deref(), Ok(expected), "{manifest}");
        }
        // It isn't missing either, but the one in its options is.
        let found = interpolated(dependent, &["a: 1"], ALL);
        assert_eq!(found.unwrap_err(), "Expected to find variables: b");
        let twice = "variables: [{name: a}, {name: a}]";
        assert_eq!(
            interpolated(twice, &["a: 1"], ALL).unwrap_err(),
            "Expected to find exactly one matching array item for path '/variables/name=a' \
             but found 2"
        );
    }

    #[test]
    fn definitions_that_need_each_other_are_errors() {
        let cycle = "Getting all variables from variable definitions sections: \
                     Interpolating variable 'a' definition options: Finding variable 'b': \
                     Interpolating variable 'b' definition options: Finding variable 'a.y': \
                     Detected recursion";
        let manifest = "variables:\n\
                        - {name: a, type: t, options: {x: ((b))}}\n\
                        - {name: b, type: t, options: {x: ((a.y))}}\n";
        assert_eq!(interpolated(manifest, &[], ALL).unwrap_err(), cycle);
        // Each definition is looked at once, however often others need it.
        let mut deep = "variables:\n".to_owned();
        for level in 0..60 {
            let next = level + 1;
            deep += &format!("- {{name: v{level}, options: [((v{next})), ((v{next}))]}}\n");
        }
        assert!(interpolated(&deep, &["v60: 1"], Options::default()).is_ok());
        for level in 60..5000 {
            deep += &format!("- {{name: v{level}, options: ((v{}))}}\n", level + 1);
        }
        let found = interpolated(&deep, &["v60: 1"], Options::default());
        assert!(
            found
                .unwrap_err()
                .contains("More than 100 definitions need each other")
        );
    }

    #[test]
    fn values_keep_the_place_they_come_from() {
        let manifest = read_as_cli("{a: ((v)), b: x-((w)), c: 1}", 0).unwrap();
        let ops = "[{type: replace, path: '/d?/e', value: 2}, {type: replace, path: /c, value: 3}]";
        let ops = read_as_cli(ops, 1).unwrap();
        let vars = read_vars("{v: {x: 1}, w: 1}", 2).unwrap();
        let found = interpolate(&manifest, &[ops], &[vars], ALL).unwrap();
        for (path, expected) in [
            (vec![], 0),
            (vec!["a"], 2),
            (vec!["a", "x"], 2),
            (vec!["b"], 0),
            (vec!["c"], 1),
            (vec!["d"], 1),
            (vec!["d", "e"], 1),
        ] {
            let mut value = &found;
            for key in &path {
                value = value.get(key).unwrap();
            }
            assert_eq!(value.place.file, expected, "{path:?}");
        }
        let text = "[{type: remove, path: /x}]";
        let wrong = read_as_cli(text, 1).unwrap();
        let errors = interpolate(&manifest, &[wrong], &[], ALL).unwrap_err();
        let place = errors[0].place.unwrap();
        assert_eq!((place.file, &text[place.start..place.end]), (1, "/x"));
    }
}
