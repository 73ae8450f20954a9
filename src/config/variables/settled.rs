//! What is reported of settled variables.
//!
//! In: [`Settled`] variables. Out: their settings and secrets. Must not: settle any.

use std::sync::Arc;

use super::Setting;
use super::declare::{Declaration, Declarations};
use super::settle::Settled;
use crate::config::hcl::Module;

impl Settled {
    /// What there is to tell of each variable.
    pub(in crate::config) fn settings(
        &self,
        declarations: &Declarations,
        module: &Module<'_>,
    ) -> Vec<Setting> {
        let setting = |(name, declaration): (&Arc<str>, &Declaration)| {
            let value = self.values.get(name)?.as_ref()?;
            let hidden = value.is_sensitive_within();
            let json = || {
                let node = module.node(value, declaration.name_span, false);
                node.ok().map(|node| node.to_json())
            };
            Some(Setting {
                name: Arc::clone(name),
                declared: Some(declaration.name_span),
                description: declaration.description.clone(),
                of: declaration.of.as_ref().map(|(of, _)| of.to_string()),
                sensitive: hidden,
                value: if hidden { None } else { json() },
                origin: *self.origins.get(name)?,
            })
        };
        declarations.variables.iter().filter_map(setting).collect()
    }

    /// Lets the module know the texts within sensitive values before it makes others of them.
    pub(in crate::config) fn keep_secrets(&self, declarations: &Declarations, module: &Module<'_>) {
        for (name, declaration) in &declarations.variables {
            if let Some(Some(value)) = self.values.get(name)
                && value.is_sensitive_within()
            {
                // Made for its secrets alone.
                let _ = module.node(value, declaration.name_span, false);
            }
        }
    }
}
