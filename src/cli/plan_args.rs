//! The options that plan and apply share.
//!
//! In: options. Out: the planner's options. Must not: plan.

use clap::Args;

use super::failure::Failure;
use super::selection::{AddressArgs, AllowedGroups, Selection};
use super::session::Session;
use crate::address::{InShard, Selector};
use crate::diagnostic::Diagnostics;
use crate::digest::sha256_hex;
use crate::merge::links::{self, Links};
use crate::plan::change::Mode;
use crate::plan::inputs::Options;

/// What may be replaced in protected groups.
#[derive(Debug, Args)]
pub struct Replacements {
    /// Apply the held back changes of a protected or opportunistic group
    ///
    /// May repeat. `all` allows every group.
    #[arg(long, value_name = "GROUP|all")]
    pub allow_replace: Vec<InShard<AllowedGroups>>,
}

/// What plan and apply can be asked for.
#[derive(Debug, Clone, Args)]
pub struct PlanArgs {
    /// Plan only this group or slot (may repeat)
    #[arg(long, value_name = "ADDR")]
    pub target: Vec<InShard<Selector>>,
    /// Leave out this group or slot (may repeat)
    #[arg(long, value_name = "ADDR")]
    pub exclude: Vec<InShard<Selector>>,
    /// Replace this group or slot (may repeat)
    #[arg(long, value_name = "ADDR")]
    pub replace: Vec<InShard<Selector>>,
    /// Plan to delete everything
    #[arg(long, conflicts_with_all = ["refresh_only", "replace"])]
    pub destroy: bool,
    /// Plan only to record what the cloud reports
    #[arg(long, conflicts_with = "replace")]
    pub refresh_only: bool,
    /// List the instances of the cloud first
    #[arg(long, value_name = "BOOL", default_value_t = true, num_args = 0..=1, default_missing_value = "true", action = clap::ArgAction::Set, require_equals = true)]
    pub refresh: bool,
    /// Look up images even if the cached result is fresh
    #[arg(long)]
    pub refresh_images: bool,
}

impl PlanArgs {
    /// Options for a mode and a selection.
    pub fn of(targets: &[InShard<Selector>], excludes: &[InShard<Selector>], mode: Mode) -> Self {
        Self {
            target: targets.to_owned(),
            exclude: excludes.to_owned(),
            replace: Vec::new(),
            destroy: mode == Mode::Destroy,
            refresh_only: mode == Mode::RefreshOnly,
            refresh: true,
            refresh_images: false,
        }
    }

    /// The address arguments.
    pub fn asked(&self) -> AddressArgs<'_> {
        AddressArgs {
            targets: &self.target,
            excludes: &self.exclude,
            replace: &self.replace,
            allow_delete: &[],
            allow_replace: &[],
        }
    }

    /// The planner's options; `chosen` is the selection for this shard.
    ///
    /// Fails if options exclude each other.
    pub fn options(
        &self,
        session: &Session<'_>,
        chosen: &Selection,
        keep_unchanged: bool,
    ) -> Result<Options, Failure> {
        if self.refresh_only && !self.refresh {
            return Err(Failure::say(
                "`--refresh-only` has nothing to do with `--refresh=false`",
            ));
        }
        if self.refresh_images && !self.refresh {
            return Err(Failure::say(
                "`--refresh-images` asks the cloud, which `--refresh=false` forbids",
            ));
        }
        let config = session.config();
        let mut targets = chosen.targets.clone();
        let links = if targets.is_empty() {
            Links::default()
        } else {
            links::resolve(config, &mut Diagnostics::default())
        };
        // Targets include their dependencies, recursively.
        let mut next = 0;
        while let Some(group) = targets.get(next).map(|target| target.group().clone()) {
            next += 1;
            let Some(group) = config.group(&group) else {
                continue;
            };
            for name in &group.depends_on {
                let full = if name.value.contains('/') {
                    name.value.to_string()
                } else {
                    format!("{}/{}", group.name.tenant(), name.value)
                };
                if let Ok(needed) = full.parse::<Selector>()
                    && !targets.contains(&needed)
                {
                    targets.push(needed);
                }
            }
            for link in links.of(&group.name).iter().filter(|_| !self.destroy) {
                let provider = link.provider.as_ref();
                let needed = provider.map(|it| Selector::Group(it.group.clone()));
                if let Some(needed) = needed.filter(|needed| !targets.contains(needed)) {
                    targets.push(needed);
                }
            }
        }
        Ok(Options {
            mode: match (self.destroy, self.refresh_only) {
                (true, _) => Mode::Destroy,
                (_, true) => Mode::RefreshOnly,
                _ => Mode::Normal,
            },
            targets,
            excludes: chosen.excludes.clone(),
            replace: chosen.replace.clone(),
            target: self.target_digest(session, chosen),
            keep_unchanged,
            strict: config.strict || session.globals.strict,
            only_shown: false,
            importing: None,
        })
    }

    /// A digest of the configuration and of what is planned of it, by which a rollout is recognised.
    fn target_digest(&self, session: &Session<'_>, chosen: &Selection) -> String {
        let mut text = format!(
            "{}\n{} {}",
            session.loaded.digest, self.destroy, self.refresh_only
        );
        for (what, selectors) in [
            ("target", &chosen.targets),
            ("exclude", &chosen.excludes),
            ("replace", &chosen.replace),
        ] {
            for selector in selectors {
                text.push_str(&format!("\n{what} {selector}"));
            }
        }
        sha256_hex(text.as_bytes())
    }
}
