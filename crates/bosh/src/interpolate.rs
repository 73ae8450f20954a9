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
    resolved: HashMap<String, bool>,
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
            match self.variable(&name, place, scope) {
                Ok(None) => {}
                Ok(Some(_)) => found.push((name, place)),
                Err(why) => {
                    let message =
                        format!("Getting all variables from variable definitions sections: {why}");
                    return Err(vec![Error::at(place, message)]);
                }
            }
        }
        Ok(found)
    }

    /// The value of a variable, without a path. `None` if it has none, or if one is missing in the
    /// options of its definition.
    fn variable(
        &mut self,
        name: &str,
        place: Place,
        scope: &mut Scope,
    ) -> Result<Option<Value>, String> {
        scope.used.insert(name.to_owned());
        if scope.visited.iter().any(|visited| visited == name) {
            return Err("Detected recursion".to_owned());
        }
        if !self.is_resolved(name, scope)? {
            return Ok(None);
        }
        let value = self.values.get(name);
        if value.is_none() {
            scope.missing.entry(name.to_owned()).or_insert(place);
        }
        Ok(value.cloned())
    }

    /// Whether the options of a variable's definition lack no variable.
    fn is_resolved(&mut self, name: &str, scope: &Scope) -> Result<bool, String> {
        if let Some(is_resolved) = self.resolved.get(name) {
            return Ok(*is_resolved);
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
        if let Some(error) = errors.first() {
            return Err(format!(
                "Interpolating variable '{name}' definition options: {error}"
            ));
        }
        let is_resolved = inner.missing.is_empty();
        self.resolved.insert(name.to_owned(), is_resolved);
        Ok(is_resolved)
    }

    /// The value of `a.b.c`: the value at `/b/c` in the variable `a`.
    fn value_at(
        &mut self,
        name: &str,
        place: Place,
        scope: &mut Scope,
    ) -> Result<Option<Value>, String> {
        let (variable, path) = match name.split_once('.') {
            Some((variable, path)) => (variable, Some(path)),
            None => (name, None),
        };
        let (Some(value), Some(path)) = (self.variable(variable, place, scope)?, path) else {
            return Ok(self.values.get(name).cloned().filter(|_| path.is_none()));
        };
        let pointer = Pointer::parse(&format!("/{}", path.replace('.', "/")))?;
        let found = match pointer.find(&value) {
            Ok(found) => found,
            Err(_) => {
                let keys = pointer.with_indices_as_keys();
                keys.find(&value).map_err(|failure| failure.message)?
            }
        };
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
