//! A plan as one HTML page.
//!
//! In: a [`Plan`], its findings, and how far its apply came. Out: a page that loads nothing, with
//! all values masked and escaped. Must not: write a file, or read a clock.
//!
//! All content is in the page's HTML, so that it can be read without its script, which only filters
//! and reloads. The script's hash is in the page's policy: no other script runs.

mod attributes;
mod changes;
mod graph;
pub mod live;
#[cfg(test)]
mod tests;
mod timeline;
mod writer;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use self::changes::{Blocks, KINDS, Kind};
use self::live::Live;
use self::writer::Html;
use super::text::drift;
use super::text::notes;
use super::text::paint::{Signs, Style};
use crate::diagnostic::counted;
use crate::plan::change::{Mode, Plan};
use crate::sensitivity::cover::covered;

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// The style of the lines that the text report and the page share.
const PLAIN: Style<'static> = Style {
    color: false,
    width: 140,
    shard: None,
    signs: Signs::Indented,
};

/// Up to this many groups are listed at once; more are in a closed list.
const GROUPS: usize = 30;

/// Up to this many findings are shown at once; more are in a closed list.
const FINDINGS: usize = 8;

/// The maximum number of reasons in the list of groups.
const REASONS: usize = 2;

/// A rendered page. Only its live section differs from one writing to the next.
#[derive(Debug, Clone)]
pub struct Page {
    title: String,
    policy: String,
    before: String,
    after: String,
}

impl Page {
    /// Renders a plan. `findings` are those of planning, as JSON; `shard` is for options that name
    /// groups in a run over several shards.
    pub fn of(plan: &Plan, findings: &Value, shard: Option<&str>) -> Self {
        let plan = &*covered(plan);
        let mut title = Html::default();
        title
            .text("Plan of ")
            .text(&plan.cluster)
            .text("/")
            .text(&plan.shard);
        let mut before = Html::default();
        heading(plan, &mut before);
        let mut after = Html::default();
        let blocks = Blocks::of(plan);
        summary(plan, &blocks, findings, shard, &mut after);
        graph::graph(plan, &mut after);
        changes::changes(plan, &blocks, shard, &mut after);
        drifted(plan, &mut after);
        images(plan, &mut after);
        after.markup("</main>");
        Self {
            title: title.finish(),
            policy: STANDARD.encode(Sha256::digest(SCRIPT)),
            before: before.finish(),
            after: after.finish(),
        }
    }

    /// The whole page; with `live`, it shows how far the apply came, and reloads itself until that
    /// is final.
    pub fn text(&self, live: Option<&Live>) -> String {
        let mut middle = Html::default();
        if let Some(live) = live {
            live::live(live, &mut middle);
        }
        let middle = middle.finish();
        let reload = match live {
            Some(live) if !live.state.is_final() => format!(
                "<noscript><meta http-equiv=refresh content={}></noscript>\n",
                live::RELOAD
            ),
            _ => String::new(),
        };
        let Self {
            title,
            policy,
            before,
            after,
        } = self;
        format!(
            "<!doctype html>\n<html lang=en>\n<head>\n<meta charset=utf-8>\n\
             <meta http-equiv=Content-Security-Policy content=\"default-src 'none'; \
             style-src 'unsafe-inline'; script-src 'sha256-{policy}'; base-uri 'none'; \
             form-action 'none'\">\n\
             <meta name=viewport content=\"width=device-width, initial-scale=1\">\n\
             <meta name=color-scheme content=\"light dark\">\n\
             <meta name=referrer content=no-referrer>\n{reload}\
             <title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n\
             {before}{middle}{after}\n<script>{SCRIPT}</script>\n</body>\n</html>\n"
        )
    }
}

fn heading(plan: &Plan, html: &mut Html) {
    html.markup(
        "<a class=skip href=\"#changes-title\">Skip to the changes</a>\n<header><h1>Plan of ",
    );
    html.text(&plan.cluster)
        .text("/")
        .text(&plan.shard)
        .markup("</h1>");
    html.markup("<dl class=made><div><dt>Cluster<dd>")
        .text(&plan.cluster);
    html.markup("</div><div><dt>Shard<dd>").text(&plan.shard);
    html.markup("</div><div><dt>Provider<dd>")
        .text(&plan.provider_name);
    let mode = match plan.mode {
        Mode::Normal => None,
        Mode::Destroy => Some("destroy"),
        Mode::RefreshOnly => Some("refresh only"),
    };
    if let Some(mode) = mode {
        html.markup("</div><div><dt>Mode<dd>").text(mode);
    }
    html.markup("</div><div><dt>Planned at<dd><time>")
        .text(&plan.created_at.to_string());
    html.markup("</time></div><div><dt>State<dd>");
    if plan.new_state {
        html.text("new");
    } else {
        html.text("serial ").text(&plan.serial.to_string());
    }
    html.markup("</div><div><dt>nstance<dd>")
        .text(env!("CARGO_PKG_VERSION"));
    html.markup("</div></dl><nav aria-label=\"Sections of the page\">");
    for (id, title, is_there) in [
        ("graph", "Dependencies", plan.summary.has_changes()),
        ("changes", "Changes", !plan.changes.is_empty()),
        ("held-back", "Held back", !plan.held_back.is_empty()),
        (
            "drift",
            "Changed outside of nstance",
            !plan.drift.is_empty(),
        ),
        ("images", "Images", !plan.images.is_empty()),
    ] {
        if is_there {
            html.markup("<a href=\"#")
                .text(id)
                .markup("\">")
                .text(title)
                .markup("</a> ");
        }
    }
    html.markup("</nav></header>\n<main>");
}

/// The verdict, what stops or endangers, and the counts.
fn summary(
    plan: &Plan,
    blocks: &Blocks<'_>,
    findings: &Value,
    shard: Option<&str>,
    html: &mut Html,
) {
    let style = Style { shard, ..PLAIN };
    html.markup("<section id=summary aria-labelledby=summary-title>");
    html.markup("<h2 id=summary-title class=verdict>");
    let mut footer = notes::footer(plan, style).into_iter();
    html.text(&footer.next().unwrap_or_default())
        .markup("</h2>");
    let rest: Vec<String> = footer.filter(|line| !line.is_empty()).collect();
    if !rest.is_empty() {
        html.markup("<p>").text(&rest.join(" ")).markup("</p>");
    }
    let s = &plan.summary;
    html.markup("<ul class=tiles>");
    for kind in KINDS {
        let count = (kind.count)(s);
        if count > 0 {
            html.markup("<li class=\"tile ").text(kind.word);
            html.markup("\"><a href=\"#action=")
                .text(kind.word)
                .markup("\"><b>");
            html.number(count)
                .markup("</b> ")
                .text(kind.label)
                .markup("</a></li>");
        }
    }
    if s.no_op > 0 {
        html.markup("<li class=tile><span><b>").number(s.no_op);
        html.markup("</b> unchanged</span></li>");
    }
    html.markup("</ul>");
    if s.replace > 0 {
        html.markup("<p class=m>A replacement counts as one to add and one to destroy.</p>");
    }
    self::findings(findings, html);
    lines("bad", &notes::left_out(plan, style), html);
    lines("bad", &notes::deletions(plan, style), html);
    let manifest = notes::manifest(plan, style);
    if let [title, rest @ ..] = &manifest[..] {
        html.markup("<details><summary>")
            .text(title)
            .markup("</summary><pre>");
        html.text(rest.join("\n").trim()).markup("</pre></details>");
    }
    groups(plan, blocks, html);
    for line in notes::files(plan).iter().filter(|line| !line.is_empty()) {
        html.markup("<p class=m>").text(line).markup("</p>");
    }
    html.markup("</section>");
}

/// Lines of the text report; indented ones become a list.
fn lines(class: &'static str, lines: &[String], html: &mut Html) {
    if lines.is_empty() {
        return;
    }
    html.markup("<div class=\"note ")
        .markup(class)
        .markup("\">");
    let is_item = |line: &String| line.starts_with("    ");
    for run in lines.chunk_by(|a, b| is_item(a) == is_item(b)) {
        let is_list = is_item(&run[0]);
        html.markup(if is_list { "<ul>" } else { "" });
        for line in run.iter().filter(|line| !line.is_empty()) {
            html.markup(if is_list { "<li>" } else { "<p>" });
            html.text(line.trim());
            html.markup(if is_list { "</li>" } else { "</p>" });
        }
        html.markup(if is_list { "</ul>" } else { "" });
    }
    html.markup("</div>");
}

/// Errors and warnings.
fn findings(findings: &Value, html: &mut Html) {
    let findings = findings.as_array().map_or(&[][..], Vec::as_slice);
    if findings.is_empty() {
        return;
    }
    let is_error = |finding: &&Value| finding["severity"] == "error";
    let errors = findings.iter().filter(is_error).count();
    let counts = [(errors, "error"), (findings.len() - errors, "warning")];
    let counts = counts.into_iter().filter(|(count, _)| *count > 0);
    let counts: Vec<String> = counts.map(|(count, noun)| counted(count, noun)).collect();
    html.markup(if findings.len() > FINDINGS {
        "<details>"
    } else {
        "<details open>"
    });
    html.markup("<summary>")
        .text(&counts.join(", "))
        .markup("</summary>");
    for finding in findings {
        let text = |key: &str| finding[key].as_str().unwrap_or_default();
        html.markup(if is_error(&finding) {
            "<div class=\"note bad\"><p><b>Error:</b> "
        } else {
            "<div class=\"note warn\"><p><b>Warning:</b> "
        });
        html.text(text("summary"));
        let range = &finding["range"];
        if let Some(file) = range["filename"].as_str() {
            let [line, column] =
                ["line", "column"].map(|key| range["start"][key].as_u64().unwrap_or_default());
            html.markup(" <code>")
                .text(&format!("{file}:{line}:{column}"))
                .markup("</code>");
        }
        html.markup("</p>");
        for line in text("detail").lines() {
            html.markup("<p>").text(line).markup("</p>");
        }
        if !text("hint").is_empty() {
            html.markup("<p class=m>hint: ")
                .text(text("hint"))
                .markup("</p>");
        }
        html.markup("</div>");
    }
    html.markup("</details>");
}

/// The groups with their counts.
fn groups(plan: &Plan, blocks: &Blocks<'_>, html: &mut Html) {
    let counts = changes::counts(plan);
    if counts.is_empty() {
        return;
    }
    html.markup(if counts.len() > GROUPS {
        "<details>"
    } else {
        "<details open>"
    });
    html.markup("<summary>")
        .text(&counted(counts.len(), "group"));
    html.text(" with changes").markup("</summary>");
    let columns = KINDS.iter();
    let columns = columns.filter(|kind| counts.values().any(|own| (kind.count)(own) > 0));
    let columns: Vec<&Kind> = columns.collect();
    html.markup("<div class=scroll><table class=g><thead><tr><th scope=col>Group");
    for kind in &columns {
        html.markup("<th scope=col>").text(kind.title);
    }
    html.markup("<th scope=col>Why<tbody>");
    let reasons = blocks.reasons();
    for (name, own) in &counts {
        html.markup("<tr><th scope=row><a href=\"#group-")
            .text(name);
        html.markup("\">").text(name).markup("</a>");
        for kind in &columns {
            let count = (kind.count)(own);
            html.markup("<td class=").text(kind.word).markup(">");
            if count > 0 {
                html.number(count);
            }
        }
        let reasons = reasons.get(name).map_or(&[][..], Vec::as_slice);
        html.markup("<td>")
            .text(&reasons[..reasons.len().min(REASONS)].join(" · "));
        let more = reasons.len().saturating_sub(REASONS);
        if more > 0 {
            html.text(" · ").text(&counted(more, "more reason"));
        }
    }
    html.markup("</table></div></details>");
}

/// What changed outside of nstance.
fn drifted(plan: &Plan, html: &mut Html) {
    if plan.drift.is_empty() {
        return;
    }
    html.markup("<section id=drift aria-labelledby=drift-title><h2 id=drift-title>");
    html.markup("Changed outside of nstance</h2><p>");
    html.text(&drift::verdict(plan, None, PLAIN)).markup("</p>");
    for block in drift::collapse(&plan.drift) {
        let drift = block.first;
        html.markup("<details class=b><summary><code>")
            .text(&drift::heading(&block, PLAIN));
        html.markup("</code></summary>");
        if drift.changes.is_empty() {
            html.markup("<p class=m>No attributes to compare.</p></details>");
            continue;
        }
        html.markup(
            "<table class=c><thead><tr><th scope=col>Attribute<th scope=col>Recorded\
             <th scope=col>Observed<tbody>",
        );
        for change in &drift.changes {
            html.markup("<tr><th scope=row>").text(&change.path);
            attributes::two_sides(
                change.recorded.as_ref(),
                change.observed.as_ref(),
                false,
                html,
            );
        }
        html.markup("</table></details>");
    }
    html.markup("</section>");
}

/// The images that the plan was made with.
fn images(plan: &Plan, html: &mut Html) {
    if plan.images.is_empty() {
        return;
    }
    html.markup("<section id=images aria-labelledby=images-title><h2 id=images-title>Images</h2>");
    html.markup(
        "<table class=g><thead><tr><th scope=col>Image<th scope=col>Id<th scope=col>Source<tbody>",
    );
    for (name, image) in &plan.images {
        html.markup("<tr><th scope=row>")
            .text(name)
            .markup("<td><code>")
            .text(&image.id);
        html.markup("</code><td>")
            .text(&notes::image_source(plan, image));
    }
    html.markup("</table></section>");
}
