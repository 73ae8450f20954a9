//! All groups of a configuration, merged and parsed.
//!
//! In: a configuration and what its URLs say. Out: the compiled groups in the graph's order, or what
//! was made of each. May not: render, or ask anyone.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::config::model::{Config, Group};
use crate::config::source::SourceMap;
use crate::diagnostic::{Diagnostics, conceal};
use crate::graph::{self, Graph};
use crate::merge::group::{MergedGroup, merge_group};
use crate::render::cache::{Images, TemplateCache};
use crate::render::group::{Bodies, CompiledGroup, compile};
use crate::render::library::Snippets;
use crate::threads::{GROUPS_A_THREAD, cores};

/// A configuration whose templates are parsed and whose groups are in order.
pub struct Compiled<'a> {
    /// The groups, each after those it depends on.
    pub groups: Vec<CompiledGroup<'a>>,
    /// What depends on what.
    pub graph: Graph,
}

/// Merges and parses everything. Findings may hold errors; then nothing should be planned.
pub fn compile_all<'a>(
    config: &'a Config,
    sources: &'a SourceMap,
    bodies: &Bodies,
    findings: &mut Diagnostics,
) -> Compiled<'a> {
    let (groups, graph) = compile_each(config, sources, bodies, findings, |group| group);
    Compiled { groups, graph }
}

/// As [`compile_all`], but gives each group away when it is parsed, and keeps what `use_it` makes of
/// it. Groups that nobody keeps need no memory of their own, which for thousands of them is most of
/// the time.
pub fn compile_each<'a, T: Send>(
    config: &'a Config,
    sources: &'a SourceMap,
    bodies: &Bodies,
    findings: &mut Diagnostics,
    use_it: impl Fn(CompiledGroup<'a>) -> T + Sync,
) -> (Vec<T>, Graph) {
    let mut found = Diagnostics::default();
    let snippets = Snippets::parse(config, sources, bodies, &mut found);
    // What is wrong with a snippet is told of its first caller, which one thread alone knows.
    let threads = if config.templates_lib.is_empty() {
        cores()
    } else {
        1
    };
    let images = Images {
        names: config
            .images
            .keys()
            .chain(&config.gaps.images)
            .map(|name| &**name)
            .collect(),
        are_open: config.gaps.has_more("images"),
    };
    let cache = TemplateCache::new(sources, images, Arc::new(snippets));
    let (twins, told) = Twins::new(config, sources, bodies, &cache);
    findings.extend(conceal(found, &told));
    let useful = config.groups.len().div_ceil(GROUPS_A_THREAD);
    let next = AtomicUsize::new(0);
    // Takes some groups at a time, as long as there are any.
    let work = |mut cache: TemplateCache<'a>, mut twins: Twins<'a>| {
        let mut parts = Vec::new();
        loop {
            let start = next.fetch_add(GROUPS_AT_ONCE, Ordering::Relaxed);
            let Some(rest) = config.groups.get(start..).filter(|rest| !rest.is_empty()) else {
                return (parts, cache, twins);
            };
            let groups = &rest[..rest.len().min(GROUPS_AT_ONCE)];
            twins.first = start;
            let part = compile_some(config, groups, bodies, &mut cache, &mut twins, &use_it);
            parts.push((start, part));
        }
    };
    let (mut parts, mut cache, twins) = std::thread::scope(|scope| {
        let workers: Vec<_> = (1..threads.min(useful))
            .map(|_| {
                let (cache, twins) = (cache.another(), twins.another());
                scope.spawn(|| work(cache, twins).0)
            })
            .collect();
        let (mut parts, cache, twins) = work(cache, twins);
        for worker in workers {
            parts.extend(worker.join().expect("parsing doesn't panic"));
        }
        (parts, cache, twins)
    });
    parts.sort_by_key(|(start, _)| *start);
    let mut made = Vec::with_capacity(config.groups.len());
    let mut images_of = Vec::with_capacity(config.groups.len());
    for (_, part) in parts {
        made.extend(part.made);
        images_of.extend(part.images_of);
        findings.extend(part.findings);
    }
    findings.extend(check_unused_templates(config, bodies, &mut cache, twins));
    let mut found = Diagnostics::default();
    let graph = graph::build(config, &images_of, &mut found);
    findings.extend(conceal_with(found, &config.twins, |twin, told| {
        graph::build(twin, &images_of, told);
    }));
    if !graph.order.is_sorted() {
        let mut as_written: Vec<Option<T>> = made.into_iter().map(Some).collect();
        made = graph
            .order
            .iter()
            .filter_map(|index| as_written[*index].take())
            .collect();
    }
    (made, graph)
}

/// So many groups are taken at a time by a thread: a thread that is held up leaves more to others.
const GROUPS_AT_ONCE: usize = 100;

/// What is made of some groups.
struct Part<T> {
    made: Vec<T>,
    /// The images that each of them reads.
    images_of: Vec<BTreeSet<Arc<str>>>,
    findings: Diagnostics,
}

fn compile_some<'a, T>(
    config: &'a Config,
    groups: &'a [Group],
    bodies: &Bodies,
    cache: &mut TemplateCache<'_>,
    twins: &mut Twins<'a>,
    use_it: &impl Fn(CompiledGroup<'a>) -> T,
) -> Part<T> {
    let mut findings = Diagnostics::default();
    let each = groups.iter().enumerate().map(|(index, group)| {
        let merged = merge_group(config, group);
        let (others, told) = twins.of(index, &merged, bodies);
        let mut found = Diagnostics::default();
        let mut compiled = compile(merged, config, bodies, cache, &mut found);
        compiled.twins = others;
        let images = compiled.images.clone();
        findings.extend(conceal(found, &told));
        (use_it(compiled), images)
    });
    let (made, images_of) = each.unzip();
    Part {
        made,
        images_of,
        findings,
    }
}

/// The configurations with other values in the place of secrets, and what parses their templates.
struct Twins<'a> {
    others: Vec<(&'a Config, TemplateCache<'a>)>,
    /// Whether a snippet is made of a secret: whatever calls it may be, too.
    in_snippets: bool,
    /// The number of the first group that is asked for.
    first: usize,
}

impl<'a> Twins<'a> {
    fn new(
        config: &'a Config,
        sources: &'a SourceMap,
        bodies: &Bodies,
        cache: &TemplateCache<'a>,
    ) -> (Self, Vec<Diagnostics>) {
        let contents = |config: &Config| -> Vec<Arc<str>> {
            let snippets = config.templates_lib.values();
            snippets
                .map(|snippet| Arc::clone(&snippet.value.content.value))
                .collect()
        };
        let snippets = contents(config);
        let (twins, told): (Vec<_>, Vec<_>) = config
            .twins
            .iter()
            .map(|twin| {
                let mut told = Diagnostics::default();
                let snippets = Snippets::parse(twin, sources, bodies, &mut told);
                ((twin, cache.with_snippets(Arc::new(snippets))), told)
            })
            .unzip();
        let twins = Self {
            in_snippets: twins.iter().any(|(twin, _)| contents(twin) != snippets),
            others: twins,
            first: 0,
        };
        (twins, told)
    }

    /// The same for another thread.
    fn another(&self) -> Self {
        let others = self.others.iter();
        Self {
            others: others
                .map(|(twin, cache)| (*twin, cache.another()))
                .collect(),
            in_snippets: self.in_snippets,
            first: self.first,
        }
    }

    /// The twins of a group, if anything in it is made of a secret, and what is wrong with each.
    fn of(
        &mut self,
        index: usize,
        group: &MergedGroup<'_>,
        bodies: &Bodies,
    ) -> (Vec<CompiledGroup<'a>>, Vec<Diagnostics>) {
        let number = self.first + index;
        let merged: Vec<_> = self
            .others
            .iter()
            .map(|(twin, _)| merge_group(twin, &twin.groups[number]))
            .collect();
        if !self.in_snippets && merged.iter().all(|twin| twin.has_contents_of(group)) {
            return (Vec::new(), Vec::new());
        }
        merged
            .into_iter()
            .zip(&mut self.others)
            .map(|(merged, (twin, cache))| {
                let mut told = Diagnostics::default();
                (compile(merged, twin, bodies, cache, &mut told), told)
            })
            .unzip()
    }
}

/// What `find` finds in a configuration, without what it finds otherwise in its twins.
fn conceal_with(
    found: Diagnostics,
    twins: &[Config],
    mut find: impl FnMut(&Config, &mut Diagnostics),
) -> Diagnostics {
    if found.is_empty() {
        return found;
    }
    let told: Vec<_> = twins
        .iter()
        .map(|twin| {
            let mut told = Diagnostics::default();
            find(twin, &mut told);
            told
        })
        .collect();
    conceal(found, &told)
}

/// A template that no group uses is still checked, through a group that uses nothing else.
fn check_unused_templates(
    config: &Config,
    bodies: &Bodies,
    cache: &mut TemplateCache<'_>,
    twins: Twins<'_>,
) -> Diagnostics {
    let used: BTreeSet<&str> = config
        .groups
        .iter()
        .filter_map(|group| group.template.as_ref().map(|name| &*name.value))
        .collect();
    let unused: Vec<_> = config
        .templates
        .iter()
        .filter(|(name, _)| !used.contains(&***name))
        .map(|(name, template)| Group::of_template(name, template.span))
        .collect();
    let check = |config: &Config, cache: &mut TemplateCache<'_>| {
        let mut findings = Diagnostics::default();
        for group in &unused {
            let merged = merge_group(config, group);
            compile(merged, config, bodies, cache, &mut findings);
        }
        findings
    };
    let found = check(config, cache);
    if found.is_empty() {
        return found;
    }
    let others = twins.others.into_iter();
    let told: Vec<_> = others
        .map(|(twin, mut cache)| check(twin, &mut cache))
        .collect();
    conceal(found, &told)
}
