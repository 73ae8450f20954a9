//! `nstance validate`: everything short of asking a cloud.

use std::collections::{BTreeMap, BTreeSet};
use std::io::IsTerminal as _;
use std::sync::Arc;

use clap::Args;
use serde_json::json;

use super::failure::Failure;
use super::session::{self, Session};
use super::{Ending, Globals, exit};
use crate::address::Address;
use crate::config::check::Purpose;
use crate::config::model::Config;
use crate::config::source::SourceMap;
use crate::diagnostic::Diagnostics;
use crate::merge::deep::Merged;
use crate::pipeline::{Compiled, compile_all, renderer};
use crate::provider::rules::Rules;
use crate::render::data::InstanceFacts;
use crate::render::instance::Report;
use crate::render::renderer::GroupRenderer;
use crate::report::diagnostic;
use crate::resolve::fetch;

/// Groups tried by one thread at least: below it a thread costs more than it gives.
const GROUPS_A_THREAD: usize = 500;

/// Renders some instances of every group, with an image id that stands for any: the first and the
/// last, which fail where slots are counted wrong, and those with overrides.
fn trial(
    config: &Config,
    sources: &SourceMap,
    compiled: &Compiled<'_>,
    strict: bool,
) -> Diagnostics {
    let rules = Rules::of(config.shard.infra.provider.value);
    let ids: BTreeMap<_, _> = config
        .images
        .keys()
        .map(|name| (Arc::clone(name), Some(Arc::from("image"))))
        .collect();
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let chunk = compiled.groups.len().div_ceil(threads).max(GROUPS_A_THREAD);
    let mut findings = Diagnostics::default();
    std::thread::scope(|scope| {
        let ids = &ids;
        let workers: Vec<_> = compiled
            .groups
            .chunks(chunk)
            .map(|some| {
                scope.spawn(move || {
                    some.iter()
                        .map(|group| {
                            let renderer = renderer(config, group, ids, rules);
                            try_group(&renderer, sources, strict)
                        })
                        .collect::<Vec<_>>()
                })
            })
            .collect();
        for worker in workers {
            for found in worker.join().expect("rendering doesn't panic") {
                findings.extend(found);
            }
        }
    });
    findings
}

fn try_group(renderer: &GroupRenderer<'_>, sources: &SourceMap, strict: bool) -> Diagnostics {
    if renderer.group.lacks_userdata() {
        return Diagnostics::default();
    }
    let group = &renderer.group.merged;
    let mut report = Report::default();
    let overridden = group
        .overrides
        .keys()
        .copied()
        .filter(|slot| *slot < group.size);
    let ends = [0, group.size.saturating_sub(1)]
        .into_iter()
        .take(group.size as usize);
    let slots: BTreeSet<u32> = ends.chain(overridden).collect();
    for slot in slots {
        let facts = InstanceFacts::example(group, slot, &renderer.head(slot).instance_type);
        let address = Address::new(group.name.clone(), slot);
        renderer.render(&address, &facts, &BTreeMap::new(), &mut report);
    }
    let names = group.vars.as_ref().and_then(Merged::entries);
    let names = names.into_iter().flatten().map(|(name, _)| &**name);
    report.findings(sources, &names, strict)
}

/// Options of `validate`.
#[derive(Debug, Args)]
pub struct Validate {}

/// Runs `validate`.
pub fn run(globals: &Globals, _command: &Validate) -> Ending {
    let mut loaded = Session::read(globals, Purpose::Plan);
    let mut findings = std::mem::take(&mut loaded.findings);
    let mut groups = 0;
    if let Some(config) = &loaded.config {
        groups = config.groups.len();
        let bodies = fetch::bodies(config, &loaded.directory, false, |_| None, &mut findings);
        let compiled = compile_all(config, &loaded.sources, &bodies, &mut findings);
        if !findings.has_errors() {
            let strict = config.strict || globals.strict;
            findings.extend(trial(config, &loaded.sources, &compiled, strict));
        }
    }
    // Found by different stages; people read from the top.
    let mut sorted: Vec<_> = findings.into_iter().collect();
    sorted.sort_by_key(|finding| finding.label.as_ref().map(|label| label.span));
    let mut findings = Diagnostics::default();
    findings.extend(sorted);
    if findings.has_errors() {
        return Err((Failure::from(findings), loaded.sources));
    }
    if globals.json {
        session::print_json(&json!({
            "format_version": "1.0",
            "valid": true,
            "diagnostics": diagnostic::to_json(&findings, &loaded.sources),
        }));
        return Ok(exit::SUCCESS);
    }
    if !findings.is_empty() && !globals.quiet {
        let color = globals.colors(std::io::stderr().is_terminal());
        session::error(&diagnostic::render(&findings, &loaded.sources, color));
    }
    session::print(&format!(
        "The configuration is valid: {groups} {}.\n",
        if groups == 1 { "group" } else { "groups" }
    ));
    Ok(exit::SUCCESS)
}
