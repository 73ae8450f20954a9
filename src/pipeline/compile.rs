//! Merges all groups of a configuration and parses their templates.
//!
//! In: a configuration, and the bodies of its URLs. Out: the compiled groups in dependency order.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::validate::try_groups;
use crate::address::GroupName;
use crate::config::model::{Config, Group};
use crate::config::source::SourceMap;
use crate::diagnostic::{Diagnostic, Diagnostics, Reported, Severity};
use crate::graph::{self, Graph, ImagesRead, LateLink};
use crate::merge::group::merge_group;
use crate::merge::links::{self, Links};
use crate::render::args::Tree;
use crate::render::cache::TemplateCache;
use crate::render::erb::Erb;
use crate::render::files::CompiledFile;
use crate::render::group::{CompiledGroup, Linking, compile, no_nonce};
use crate::render::library::Snippets;
use crate::render::links::{LinkSet, Properties};
use crate::render::userdata::Bodies;
use crate::resolve::fetch::{self, Unfetched};
use crate::stage;
use crate::threads::{GROUPS_A_THREAD, cores};

/// A configuration whose templates are parsed and whose groups are in order.
pub struct Compiled<'a> {
    /// The groups, each after those it depends on.
    pub groups: Vec<CompiledGroup<'a>>,
    /// The dependency graph.
    pub graph: Graph,
    /// What groups offer to others, by group and link.
    pub properties: Properties,
    /// The outputs of ERB.
    pub erb: Arc<Erb>,
}

/// Compiled groups and the bodies of their URLs.
pub struct Prepared<'a> {
    /// The groups.
    pub compiled: Compiled<'a>,
    /// The bodies of userdata URLs.
    pub bodies: Bodies,
    /// The URLs that can't be fetched.
    pub unfetched: Unfetched,
    /// Warnings.
    pub findings: Diagnostics,
}

/// Reads and fetches userdata, merges the groups and compiles their templates.
///
/// Fetches URLs only with `network`; `kept` returns a cached body for a URL that can't be fetched.
/// With `strict`, warnings of templates, such as of unset vars, are errors. Fails if a template has an error, in parsing or in
/// rendering.
pub fn prepare<'a>(
    config: &'a Config,
    sources: &'a SourceMap,
    directory: &Path,
    network: bool,
    kept: impl Fn(&str) -> Option<Vec<u8>>,
    strict: bool,
) -> Result<Prepared<'a>, Diagnostics> {
    let mut findings = Diagnostics::default();
    let mut unfetched = Unfetched::default();
    let bodies = stage::timed("read userdata", || {
        fetch::bodies(
            config,
            directory,
            network,
            kept,
            &mut findings,
            &mut unfetched,
        )
    });
    let mut found = Diagnostics::default();
    let compiled = stage::timed("compile templates", || {
        compile_all(config, sources, &bodies, &mut found)
    });
    if strict || config.strict {
        for finding in &mut found {
            finding.severity = Severity::Error;
        }
    }
    findings.extend(found);
    if findings.has_errors() {
        findings.extend(try_groups(config, &compiled, sources, strict));
        return Err(findings);
    }
    Ok(Prepared {
        compiled,
        bodies,
        unfetched,
        findings,
    })
}

/// Merges the groups and compiles their templates. Omits groups with an invalid template, whose
/// errors are in the findings.
pub fn compile_all<'a>(
    config: &'a Config,
    sources: &'a SourceMap,
    bodies: &Bodies,
    findings: &mut Diagnostics,
) -> Compiled<'a> {
    let links = links::resolve(config, findings);
    let links = AllLinks::Resolved(&links);
    compile_linked(config, links, sources, bodies, Arc::default(), findings)
}

/// Compiles a configuration of which only one group was kept, and what its links were.
pub(super) fn compile_alone<'a>(
    config: &'a Config,
    links: &LinkSet,
    sources: &'a SourceMap,
    bodies: &Bodies,
    erb: Arc<Erb>,
    findings: &mut Diagnostics,
) -> Compiled<'a> {
    let links = AllLinks::Kept(links);
    compile_linked(config, links, sources, bodies, erb, findings)
}

/// The links of all groups.
#[derive(Clone, Copy)]
enum AllLinks<'l, 'a> {
    Resolved(&'l Links<'a>),
    /// Those of the only group.
    Kept(&'l LinkSet),
}

fn compile_linked<'a>(
    config: &'a Config,
    links: AllLinks<'_, 'a>,
    sources: &'a SourceMap,
    bodies: &Bodies,
    erb: Arc<Erb>,
    findings: &mut Diagnostics,
) -> Compiled<'a> {
    let snippets = Snippets::parse(config, sources, bodies, findings);
    // An error in a snippet is reported for its first caller, which only a single thread knows.
    let threads = if config.templates_lib.is_empty() {
        cores()
    } else {
        1
    };
    let images = config.images.keys().map(|name| &**name).collect();
    let cache = TemplateCache::new(sources, images, Arc::new(snippets)).with_erb(Arc::clone(&erb));
    let useful = config.groups.len().div_ceil(GROUPS_A_THREAD);
    let next = AtomicUsize::new(0);
    // Compiles chunks of groups until none is left.
    let work = |mut cache: TemplateCache<'a>| {
        let mut parts = Vec::new();
        loop {
            let start = next.fetch_add(GROUPS_AT_ONCE, Ordering::Relaxed);
            let Some(rest) = config.groups.get(start..).filter(|rest| !rest.is_empty()) else {
                return (parts, cache);
            };
            let groups = &rest[..rest.len().min(GROUPS_AT_ONCE)];
            let part = compile_some(config, links, groups, bodies, &mut cache);
            parts.push((start, part));
        }
    };
    let (mut parts, mut cache) = std::thread::scope(|scope| {
        let workers: Vec<_> = (1..threads.min(useful))
            .map(|_| {
                let cache = cache.another();
                scope.spawn(|| work(cache).0)
            })
            .collect();
        let (mut parts, cache) = work(cache);
        for worker in workers {
            parts.extend(worker.join().expect("parsing doesn't panic"));
        }
        (parts, cache)
    });
    parts.sort_by_key(|(start, _)| *start);
    let mut made = Vec::with_capacity(config.groups.len());
    let mut images = ImagesRead::default();
    for (_, part) in parts {
        made.extend(part.made);
        images.of_groups.extend(part.images_of);
        findings.extend(part.findings);
    }
    images.of_templates = compile_templates(config, bodies, &mut cache, findings);
    compile_of_server(config, &mut cache, findings);
    let properties = match links {
        AllLinks::Resolved(links) => compile_properties(links, &mut cache, findings),
        AllLinks::Kept(_) => Properties::new(),
    };
    let graph = graph::build(config, &images, &late_links(&made), findings);
    let ordered = graph.order.iter().filter_map(|index| made[*index].take());
    Compiled {
        groups: ordered.collect(),
        graph,
        properties,
        erb,
    }
}

/// The groups that each group must come after, because it reads addresses that these get when they
/// are created; as groups are written.
fn late_links(groups: &[Option<CompiledGroup<'_>>]) -> Vec<Vec<LateLink>> {
    if groups
        .iter()
        .flatten()
        .all(|group| group.reads_addresses.is_empty())
    {
        return Vec::new();
    }
    let by_name: HashMap<&GroupName, &CompiledGroup<'_>> = groups
        .iter()
        .flatten()
        .map(|group| (&group.merged.name, group))
        .collect();
    let of_group = |group: &CompiledGroup<'_>| {
        let read = group
            .links
            .iter()
            .filter(|link| group.reads_addresses.contains(&link.name));
        let late = read.filter_map(|link| {
            let provider = &link.provider.as_ref()?.group;
            let is_own = *provider == group.merged.name;
            let is_fixed = by_name.get(provider).is_some_and(|it| it.fixes_addresses());
            (!is_own && !is_fixed).then(|| LateLink {
                provider: provider.clone(),
                link: Arc::clone(&link.name),
                span: link.span,
            })
        });
        late.collect()
    };
    groups
        .iter()
        .map(|group| group.as_ref().map_or_else(Vec::new, of_group))
        .collect()
}

/// Compiles the values that groups offer to others. They may read nothing that differs between
/// instances, and no other link.
fn compile_properties(
    links: &Links<'_>,
    cache: &mut TemplateCache<'_>,
    findings: &mut Diagnostics,
) -> Properties {
    const FORBIDDEN: [&str; 4] = [".Instance", ".Nonce", ".Link", ".Image"];
    let mut properties = Properties::new();
    for provider in links.providers() {
        let key = provider.key();
        let Some(node) = provider.properties else {
            continue;
        };
        if properties.contains_key(&key) {
            continue;
        }
        let Ok(tree) = Tree::from_node(node, cache, findings) else {
            continue;
        };
        tree.templates(&mut |compiled| {
            for access in &compiled.template.reads().paths {
                let root = access.path.split('.').nth(1).unwrap_or_default();
                let root = format!(".{root}");
                if FORBIDDEN.contains(&&*root) {
                    let place = compiled.place_of(&access.template);
                    findings.push(
                        Diagnostic::error(format!("properties of a link can't read `{root}`"))
                            .at(place.at(cache.sources(), access.offset), "not known here")
                            .hint("They are the same for all instances; `.Link.NAME.Instances` has what differs"),
                    );
                }
            }
        });
        properties.insert(key, tree);
    }
    properties
}

/// The groups in a thread's chunk: small enough that one slow thread doesn't delay the rest.
const GROUPS_AT_ONCE: usize = 100;

/// The result of one chunk of groups.
struct Part<'a> {
    /// `None` for a group with an invalid template.
    made: Vec<Option<CompiledGroup<'a>>>,
    /// The images that each group reads.
    images_of: Vec<BTreeSet<Arc<str>>>,
    findings: Diagnostics,
}

fn compile_some<'a>(
    config: &'a Config,
    links: AllLinks<'_, 'a>,
    groups: &'a [Group],
    bodies: &Bodies,
    cache: &mut TemplateCache<'_>,
) -> Part<'a> {
    let mut findings = Diagnostics::default();
    let each = groups.iter().map(|group| {
        let merged = merge_group(config, group);
        let linking = match links {
            AllLinks::Resolved(links) => Linking::Resolved(links.of(&group.name)),
            AllLinks::Kept(links) => Linking::Kept(links),
        };
        let compiled = compile(merged, linking, config, bodies, cache, &mut findings);
        match compiled {
            Ok(group) => (group.images.clone(), Some(group)),
            Err(Reported) => (BTreeSet::new(), None),
        }
    });
    let (images_of, made) = each.unzip();
    Part {
        made,
        images_of,
        findings,
    }
}

/// Compiles each template by itself, through a minimal group, and returns the images that its own
/// texts read. Findings count where no group uses the template: a group's include them.
fn compile_templates(
    config: &Config,
    bodies: &Bodies,
    cache: &mut TemplateCache<'_>,
    findings: &mut Diagnostics,
) -> HashMap<Arc<str>, BTreeSet<Arc<str>>> {
    let used: BTreeSet<&str> = config
        .groups
        .iter()
        .filter_map(|group| group.template.as_ref().map(|name| &*name.value))
        .collect();
    let each = config.templates.iter().map(|(name, template)| {
        let group = Group::of_template(name, template.span);
        let mut found = Diagnostics::default();
        let alone = compile(
            merge_group(config, &group),
            Linking::Kept(&LinkSet::new()),
            config,
            bodies,
            cache,
            &mut found,
        );
        if !used.contains(&**name) {
            findings.extend(found);
        }
        let images = alone.map(|group| group.images);
        (Arc::clone(name), images.unwrap_or_default())
    });
    each.collect()
}

/// Compiles what the server renders itself, its files and the names in certificates, so that their
/// errors are found.
fn compile_of_server(config: &Config, cache: &mut TemplateCache<'_>, findings: &mut Diagnostics) {
    for (name, file) in &config.server_files {
        let file = CompiledFile::compile(name, &file.value, cache, findings);
        if let Ok(file) = file {
            file.templates(&mut |compiled| findings.extend(no_nonce(compiled, cache.sources())));
        }
    }
    let certificates = config.certificates.values();
    for names in certificates.flat_map(|certificate| &certificate.value.names) {
        if let Ok(names) = Tree::from_node(names, cache, findings) {
            names.templates(&mut |compiled| findings.extend(no_nonce(compiled, cache.sources())));
        }
    }
}
