//! What becomes of settled variables: what is told of them, and what stands for those without a value.
//!
//! In: [`Settled`] variables. Out: their settings, their secrets, other values. May not: settle any.

use std::collections::BTreeSet;
use std::sync::Arc;

use nstance_hcl::{Entries, Type, Value, convert};

use super::Setting;
use super::declare::{Declaration, Declarations};
use super::settle::Settled;
use crate::config::hcl::{Module, Values};

impl Settled {
    /// Gives a value to each variable that has none.
    pub(in crate::config) fn stand_in(&mut self, declarations: &Declarations) {
        for name in self.missing.keys() {
            let Some(declaration) = declarations.variables.get(name) else {
                continue;
            };
            let of = declaration.of.as_ref().map_or(&Type::Any, |(of, _)| of);
            let value = convert(&stand_in(of), of)
                .map(|value| value.or_sensitive(declaration.is_sensitive()));
            self.values.insert(Arc::clone(name), value.ok());
        }
    }

    /// What there is to tell of each variable.
    pub(in crate::config) fn settings(
        &self,
        declarations: &Declarations,
        module: &Module<'_>,
    ) -> Vec<Setting> {
        let setting = |(name, declaration): (&Arc<str>, &Declaration)| {
            let value = self.values.get(name)?.as_ref()?;
            let hidden = value.is_sensitive_within();
            let node = || module.node(value, declaration.name_span, false);
            Some(Setting {
                name: Arc::clone(name),
                declared: Some(declaration.name_span),
                description: declaration.description.clone(),
                of: declaration.of.as_ref().map(|(of, _)| of.to_string()),
                sensitive: hidden,
                value: (!hidden).then(|| node().to_json()),
                origin: *self.origins.get(name)?,
            })
        };
        declarations.variables.iter().filter_map(setting).collect()
    }

    /// The values, of which `refused` are none.
    pub(in crate::config) fn values_without(&self, refused: &BTreeSet<Arc<str>>) -> Values {
        let mut values = self.values.clone();
        for name in refused {
            values.insert(Arc::clone(name), None);
        }
        values
    }

    /// Lets the module know the texts within sensitive values before it makes others of them.
    pub(in crate::config) fn keep_secrets(&self, declarations: &Declarations, module: &Module<'_>) {
        for (name, declaration) in &declarations.variables {
            if let Some(Some(value)) = self.values.get(name)
                && value.is_sensitive_within()
            {
                module.node(value, declaration.name_span, false);
            }
        }
    }
}

/// A value of a type, for what must work with any.
fn stand_in(of: &Type) -> Value {
    match of {
        Type::Any | Type::String => Value::string("x"),
        Type::Number => Value::from(1),
        Type::Bool => Value::from(true),
        Type::List(of) | Type::Set(of) => Value::tuple([stand_in(of)]),
        Type::Map(of) => Value::object(Entries::from([("x".into(), stand_in(of))])),
        Type::Tuple(elements) => Value::tuple(elements.iter().map(stand_in).collect::<Vec<_>>()),
        Type::Object(object) => {
            let attributes = object.attributes.iter();
            Value::object(
                attributes
                    .map(|(name, of)| (Arc::clone(name), stand_in(of)))
                    .collect(),
            )
        }
    }
}
