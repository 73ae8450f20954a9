//! `nstance render`: merged and rendered instances.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use nstance_gotemplate::Template;
use nstance_state::Store;
use serde_json::{Value, json};

use super::console;
use super::failure::Failure;
use super::fleet::{Fleet, Form, Reply};
use super::plan::prepare;
use super::render_userdata;
use super::selection::AddressArgs;
use super::session::Session;
use super::{Ending, Globals, exit, unplaced};
use crate::address::{Address, InShard, Selector};
use crate::check::Purpose;
use crate::config::files::LARGEST_FILE;
use crate::config::model::{Functions, Texts};
use crate::config::source::Span;
use crate::diagnostic::{Diagnostic, Diagnostics, counted};
use crate::limited;
use crate::merge::deep::{Merged, first_index, first_key};
use crate::merge::group::{MergedGroup, merge_group};
use crate::merge::hashes::hashes;
use crate::pipeline::Compiled;
use crate::pipeline::{self, PlanError, Request};
use crate::plan::change::{Action, InstanceView, Plan};
use crate::plan::diff::covers;
use crate::plan::inputs::Options;
use crate::render::cache::environment;
use crate::render::data::to_value;
use crate::render::placeholders;
use crate::render::renderer::GroupRenderer;
use crate::render::substitutions::Substitution;
use crate::report::{diagnostic, text};
use crate::sensitivity::HIDDEN;
use crate::sensitivity::cover::show_unknown;

/// Options of `render`.
#[derive(Debug, Args)]
pub struct Render {
    /// Only this group or slot
    #[arg(value_name = "ADDR")]
    address: Option<InShard<Selector>>,
    /// Say of each value which layer set it, and where
    #[arg(long)]
    explain: bool,
    /// Show only the userdata, as the instance reads it
    ///
    /// With --explain, it shows the source of each value, and dropped values.
    #[arg(long, conflicts_with = "out")]
    userdata: bool,
    /// Write the specs, userdata and files below this folder
    ///
    /// DIR/tenant/group/slot/{spec.json,userdata,files/NAME}; with several shards below DIR/shard.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Show sensitive values, and write them with --out
    #[arg(long)]
    show_sensitive: bool,
    /// Render this template instead of the configuration
    #[arg(long, value_name = "TEMPLATE", conflicts_with_all = ["address", "explain", "userdata", "out", "show_sensitive"])]
    template_string: Option<String>,
    /// Explain only the values at this path and below.
    #[arg(skip)]
    path: Option<String>,
    /// Its data, a JSON file
    #[arg(long, value_name = "FILE", requires = "template_string")]
    data: Option<PathBuf>,
    /// What the text is [default: templates]
    ///
    /// With `placeholders`, the data has the tables `system` and `variables`.
    #[arg(long, value_name = "KIND", value_parser = ["templates", "placeholders"], requires = "template_string")]
    texts: Option<String>,
    /// Its functions: those of the configuration's `functions`
    #[arg(long, value_name = "SET", value_parser = ["go", "sprig"], requires = "template_string")]
    functions: Option<String>,
}

impl Render {
    /// The options of `nstance explain` for the userdata of an address.
    pub(super) fn explaining_userdata(address: InShard<Selector>) -> Self {
        Self {
            address: Some(address),
            explain: true,
            userdata: true,
            out: None,
            show_sensitive: false,
            template_string: None,
            data: None,
            functions: None,
            texts: None,
            path: None,
        }
    }

    /// The options of `nstance explain` for the other values of an address.
    pub(super) fn explaining(address: InShard<Selector>, path: Option<String>) -> Self {
        Self {
            userdata: false,
            path,
            ..Self::explaining_userdata(address)
        }
    }

    /// Whether an explanation shows the value at a path.
    fn shows(&self, path: &str) -> bool {
        self.path
            .as_deref()
            .is_none_or(|wanted| covers(wanted, path))
    }
}

/// Runs `render`.
pub fn run(globals: &Globals, command: &Render) -> Ending {
    if let Some(template) = &command.template_string {
        let functions = match command.functions.as_deref() {
            Some("sprig") => Functions::Sprig,
            _ => Functions::Go,
        };
        let data = command.data.as_deref();
        let tried = match command.texts.as_deref() {
            Some("placeholders") => try_placeholders(template, data),
            _ => try_template(template, data, functions),
        };
        return tried.map_err(unplaced);
    }
    let mut fleet = Fleet::load(globals, Purpose::Render)?;
    if command.show_sensitive {
        console::show_sensitive();
    }
    fleet.select(AddressArgs {
        targets: command.address.as_slice(),
        ..AddressArgs::default()
    })?;
    // Output to files needs no document and no heading.
    let form = match &command.out {
        Some(_) => Form::Plain,
        None => Form::Headed.documents_or(globals.json),
    };
    Ok(fleet.each(form, |_, session| render(session, command)))
}

/// The data of a text that is tried.
fn data_of(data: Option<&Path>) -> Result<Value, Failure> {
    Ok(match data {
        Some(path) => {
            let text = limited::read_text(path, LARGEST_FILE)
                .map_err(|error| Failure::say(format!("{error}: {}", path.display())))?;
            serde_json::from_str(&text).map_err(|error| {
                Failure::say(format!("the data isn't JSON: {error}: {}", path.display()))
            })?
        }
        None => json!({}),
    })
}

fn try_placeholders(text: &str, data: Option<&Path>) -> Result<u8, Failure> {
    let data = data_of(data)?;
    let find = |table: &str, name: &str| {
        let value = data.get(table)?.get(name)?;
        Some(
            value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned),
        )
    };
    let system = |name: &str| find("system", name);
    let variables = |name: &str| find("variables", name);
    let stages: [placeholders::Table<'_>; 2] = [&system, &variables];
    console::print(&placeholders::substitute(text, &stages));
    Ok(exit::SUCCESS)
}

fn try_template(template: &str, data: Option<&Path>, functions: Functions) -> Result<u8, Failure> {
    let value = data_of(data)?;
    let environment = environment(functions);
    let failed = |message: &str, line: usize, column: usize, hint: Option<&String>| {
        let mut finding = Diagnostic::error(format!("the template can't be rendered: {message}"))
            .detail(format!("at line {line}, column {column} of it"));
        finding.hints.extend(hint.cloned());
        Failure::new(finding)
    };
    let parsed = Template::parse("template", template, &environment).map_err(|error| {
        failed(
            &error.message,
            error.line,
            error.column,
            error.hint.as_ref(),
        )
    })?;
    let rendered = parsed.render(&to_value(&value)).map_err(|error| {
        failed(
            &error.message,
            error.line,
            error.column,
            error.hint.as_ref(),
        )
    })?;
    console::print(&String::from_utf8_lossy(&rendered.output));
    Ok(exit::SUCCESS)
}

fn render(session: &Session<'_>, command: &Render) -> Result<Reply, Failure> {
    let selector = command.address.as_ref().map(|asked| &asked.address);
    let mut store = session.open_to_read()?;
    // Without a client for the cloud, images come from the cache.
    let cloud = session.cloud().ok();
    let identity = session.identity();
    let options = Options {
        targets: selector.cloned().into_iter().collect(),
        keep_unchanged: true,
        only_shown: true,
        strict: session.config().strict || session.globals.strict,
        ..Options::default()
    };
    let prepared = prepare(session, store.as_deref()).map_err(PlanError::Findings)?;
    let made = pipeline::plan(Request {
        config: session.config(),
        sources: &session.loaded.sources,
        document: None,
        manifest: None,
        prepared,
        store: store.as_deref_mut().map(|store| store as &mut dyn Store),
        cloud: cloud.as_deref(),
        observe: false,
        running: None,
        provider_name: session.provider_name(),
        identity: &identity,
        rules: session.rules(),
        clock: &*session.clock,
        refresh_images: false,
        options: &options,
        progress: &mut |_| {},
    })?;
    drop(store);
    let mut findings = session.loaded.findings.clone();
    findings.extend(made.findings.into_iter().filter(|finding| {
        // Drop notes about the partial selection, which the user asked for.
        finding.label.is_some()
            || finding.address.is_some()
            || finding.severity == crate::diagnostic::Severity::Error
    }));
    let mut plan = made.plan;
    show_unknown(&mut plan);
    let sides = sides(&plan);
    if sides.is_empty()
        && !findings.has_errors()
        && let Some(selector) = selector
    {
        return Err(Failure::new(
            Diagnostic::error(format!("the configuration has no `{selector}`"))
                .hint("Groups are listed by: nstance graph"),
        ));
    }
    let code = if findings.has_errors() || plan.errored() {
        exit::ERROR
    } else {
        exit::SUCCESS
    };
    if command.userdata {
        let asked = render_userdata::UserdataArgs {
            lineage: &plan.lineage,
            links: &made.links,
            explain: command.explain,
            show_sensitive: command.show_sensitive,
        };
        let reply =
            render_userdata::reply(session, &sides, &made.prepared.compiled, asked, findings);
        return Ok(reply.ending(code));
    }
    let config = session.config();
    let groups: BTreeMap<_, _> = config
        .groups
        .iter()
        .map(|group| (group.name.clone(), merge_group(config, group)))
        .collect();
    let documents: Vec<Value> = sides
        .iter()
        .map(|(address, side)| {
            let group = groups.get(&address.group);
            document(&plan, address, side, group, &findings, session, command)
        })
        .collect();
    let reply = if let Some(folder) = &command.out {
        let folder = match &session.label {
            Some(label) => folder.join(label),
            None => folder.clone(),
        };
        for ((_, side), document) in sides.iter().zip(&documents) {
            let side = if command.show_sensitive {
                Cow::Borrowed(*side)
            } else {
                side.covered()
            };
            write(&folder, &side, document).map_err(|error| {
                Failure::say(format!(
                    "can't write the rendered specs: {error}: {}",
                    folder.display()
                ))
            })?;
        }
        let mut reply = Reply::text("");
        if !session.globals.json {
            reply = reply.telling(findings);
        }
        if !session.globals.quiet {
            let instances = counted(sides.len(), "instance");
            reply.note = format!("Wrote {instances} to {}\n", folder.display());
        }
        reply
    } else if session.globals.json {
        Reply::document(json!({
            "format_version": "1.0",
            "instances": documents,
            "diagnostics": session.findings_json(&findings),
        }))
    } else {
        let mut text = String::new();
        let mut explained = 0;
        for ((address, side), document) in sides.iter().zip(&documents) {
            if command.explain {
                text.push_str(&format!("# {}\n", session.name(address)));
                let before = text.len();
                if let Some(group) = groups.get(&address.group) {
                    let original = *side;
                    let side = if command.show_sensitive {
                        Cow::Borrowed(original)
                    } else {
                        original.covered()
                    };
                    let size = userdata_size(original);
                    text.push_str(&explain(session, group, address, &side, size, command));
                    if group.texts == Texts::Placeholders {
                        let compiled = &made.prepared.compiled;
                        let found = substitutions(session, compiled, address, original, &plan);
                        text.push_str(&placeholder_texts(session, &found, command));
                    }
                }
                explained += text.len() - before;
            } else {
                text.push_str(&text::instance(document, session.style()));
            }
        }
        if let Some(path) = command.path.as_ref().filter(|_| explained == 0) {
            return Err(Failure::new(
                Diagnostic::error(format!("no value is set at `{path}`"))
                    .hint("All values are listed by: nstance explain ADDR"),
            ));
        }
        Reply::text(text).telling(findings)
    };
    Ok(reply.ending(code))
}

/// The planned side of every configured instance.
fn sides(plan: &Plan) -> Vec<(&Address, &InstanceView)> {
    let mut sides: Vec<_> = plan
        .held_back
        .iter()
        .chain(&plan.changes)
        .chain(&plan.unchanged)
        .filter(|change| change.deposed.is_none() && change.action != Action::Adopt)
        .filter_map(|change| Some((&change.address, change.after.as_deref()?)))
        .collect();
    // What is held back comes before what is planned in its place.
    sides.sort_by_key(|(address, _)| *address);
    sides.dedup_by_key(|(address, _)| *address);
    sides
}

fn document(
    plan: &Plan,
    address: &Address,
    side: &InstanceView,
    group: Option<&MergedGroup<'_>>,
    findings: &Diagnostics,
    session: &Session<'_>,
    command: &Render,
) -> Value {
    let mut document = json!({ "address": address.to_string() });
    let view = if command.show_sensitive {
        plan.view_in_clear(address, side)
    } else {
        plan.view(address, side)
    };
    if let (Value::Object(document), Value::Object(view)) = (&mut document, view) {
        document.extend(view);
        if !side.marks.is_empty() && (session.globals.json || command.out.is_some()) {
            document.insert("sensitive_values".to_owned(), side.marks.to_json());
        }
        if let Some(group) = group {
            let hashes = hashes(group, group.overrides.get(&address.slot));
            document.insert(
                "hashes".to_owned(),
                json!({ "infra": hashes.infra, "runtime": hashes.runtime }),
            );
        }
        let mut own = Diagnostics::default();
        let name = address.to_string();
        own.extend(
            findings
                .iter()
                .filter(|f| f.address.as_deref() == Some(&name))
                .cloned(),
        );
        document.insert(
            "warnings".to_owned(),
            diagnostic::to_json(&own, &session.loaded.sources),
        );
    }
    document
}

fn write(folder: &Path, side: &InstanceView, document: &Value) -> std::io::Result<()> {
    let address = document["address"].as_str().unwrap_or_default();
    let folder = folder.join(address);
    std::fs::create_dir_all(folder.join("files"))?;
    let private = !side.marks.is_empty();
    let mut json = serde_json::to_string_pretty(document).expect("its keys are strings");
    json.push('\n');
    write_file(&folder.join("spec.json"), json.as_bytes(), private)?;
    if let Some(userdata) = &side.spec.userdata {
        let bytes = userdata.content.to_bytes();
        write_file(&folder.join("userdata"), &bytes, private)?;
    }
    for (name, file) in &side.spec.files {
        if let Some(content) = file.content.as_deref().filter(|_| !file.by_server) {
            let path = folder.join("files").join(&**name);
            std::fs::create_dir_all(path.parent().unwrap_or(&folder))?;
            write_file(&path, content.as_bytes(), private)?;
        }
    }
    Ok(())
}

/// Writes a file; with `private`, only its owner can access it, even if it existed before.
fn write_file(path: &Path, content: &[u8], private: bool) -> std::io::Result<()> {
    if !private {
        return std::fs::write(path, content);
    }
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    std::io::Write::write_all(&mut file, content)?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

fn userdata_size(side: &InstanceView) -> usize {
    let userdata = side.spec.userdata.as_ref();
    userdata.map_or(0, |userdata| userdata.content.to_bytes().len())
}

/// A line for each value: path, value, layer and place.
fn explain(
    session: &Session<'_>,
    group: &MergedGroup<'_>,
    address: &Address,
    side: &InstanceView,
    userdata_size: usize,
    command: &Render,
) -> String {
    let place = |span| session.loaded.sources.place(span);
    let mut rows: Vec<[String; 4]> = Vec::new();
    let change = group.overrides.get(&address.slot);
    let args = change.map_or(group.args.as_ref(), |change| change.args.as_ref());
    let vars = change.map_or(group.vars.as_ref(), |change| change.vars.as_ref());
    let rendered = Value::Object(side.spec.args.clone());
    let written = vars.filter(|_| group.texts == Texts::Placeholders);
    let own_vars = written.map_or_else(|| side.spec.vars.clone(), Merged::to_json);
    for (root, merged, rendered) in [("args", args, &rendered), ("vars", vars, &own_vars)] {
        let Some(merged) = merged else { continue };
        merged.leaves(&mut String::new(), &mut |path, value| {
            let told = told(rendered, path);
            let shown = match at_path(rendered, told) {
                Some(Value::String(text)) if text == HIDDEN => HIDDEN.to_owned(),
                value => value.map_or_else(String::new, Value::to_string),
            };
            let whole = told.len() == path.len();
            let path = format!("{root}.{told}").trim_end_matches('.').to_owned();
            // Keys below a masked value share one line.
            if !whole && rows.last().is_some_and(|[last, ..]| *last == path) {
                return;
            }
            rows.push([
                path,
                shortened(&shown),
                value.layer.to_string(),
                place(value.span),
            ]);
        });
    }
    if let Some((layer, span)) = group.instance_type_at {
        let value = side.spec.head.instance_type.to_string();
        rows.push([
            "instance_type".into(),
            value,
            layer.to_string(),
            place(span),
        ]);
    }
    if let Some((layer, userdata)) = group.userdata.top() {
        let place = place(userdata.place());
        let layers: Vec<_> = group.userdata.joined().collect();
        let layers = match &layers[..] {
            [_] => layer.to_string(),
            several => {
                let names: Vec<_> = several.iter().map(|(layer, _)| layer.to_string()).collect();
                names.join("+")
            }
        };
        rows.push([
            "userdata".into(),
            format!("{userdata_size} bytes"),
            layers,
            place,
        ]);
    }
    for (name, (layer, file)) in &group.files {
        rows.push([
            format!("files.{name}"),
            file.value.content.kind().to_owned(),
            layer.to_string(),
            place(file.span),
        ]);
    }
    rows.retain(|[path, ..]| command.shows(path));
    if rows.is_empty() {
        return String::new();
    }
    crate::report::table(&["PATH", "VALUE", "SET BY", "WRITTEN AT"], &rows)
}

/// How the placeholder texts of an instance were replaced.
fn substitutions(
    session: &Session<'_>,
    compiled: &Compiled<'_>,
    address: &Address,
    side: &InstanceView,
    plan: &Plan,
) -> Vec<Substitution> {
    let mut groups = compiled.groups.iter();
    let Some(group) = groups.find(|group| group.merged.name == address.group) else {
        return Vec::new();
    };
    let images = side.images.iter();
    let images = images.map(|(name, id)| (Arc::clone(name), Some(Arc::clone(id))));
    let (config, rules) = (session.config(), session.rules());
    let renderer = GroupRenderer::new(
        group,
        config,
        &images.collect(),
        false,
        rules,
        &plan.lineage,
    );
    let facts = renderer.facts(address.slot, &side.instance_id, &side.place());
    renderer.substitutions(address.slot, &facts)
}

/// The placeholder texts as text: each with its names, stage by stage.
fn placeholder_texts(session: &Session<'_>, found: &[Substitution], command: &Render) -> String {
    let mut text = String::new();
    let place = |span: &Option<Span>| match span {
        Some(span) => format!(" # {}", session.loaded.sources.place(*span)),
        None => String::new(),
    };
    let line = |text: &str| text.replace('\n', "\\n");
    for one in found.iter().filter(|one| command.shows(&one.path)) {
        text.push_str(&format!("\n{}{}\n", one.path, place(&one.written_at)));
        text.push_str(&format!("  text:           {}\n", line(&one.text)));
        for (name, value) in &one.system {
            text.push_str(&format!("  system name:    {{{name}}} = {value}\n"));
        }
        if !one.variables.is_empty() && !one.system.is_empty() {
            text.push_str(&format!("  after stage 1:  {}\n", line(&one.after_system)));
        }
        let is_hidden = one.is_sensitive && !command.show_sensitive;
        let shown = |text: &str| {
            if is_hidden {
                HIDDEN.to_owned()
            } else {
                line(text)
            }
        };
        for (name, value, span) in &one.variables {
            let (value, place) = (shown(value), place(span));
            text.push_str(&format!("  variable:       {{{name}}} = {value}{place}\n"));
        }
        text.push_str(&format!("  result:         {}\n", shown(&one.result)));
    }
    text
}

/// The part of a path before anything sensitive.
fn told<'p>(value: &Value, path: &'p str) -> &'p str {
    let ends = path.match_indices(['.', '[']).map(|(at, _)| at);
    let hidden = std::iter::once(0)
        .chain(ends)
        .find(|end| at_path(value, &path[..*end]).and_then(Value::as_str) == Some(HIDDEN));
    &path[..hidden.unwrap_or(path.len())]
}

fn at_path<'v>(value: &'v Value, path: &str) -> Option<&'v Value> {
    if path.is_empty() {
        return Some(value);
    }
    match value {
        Value::Object(entries) => {
            let (key, rest) = first_key(path, entries.keys().map(String::as_str))?;
            at_path(entries.get(key)?, rest)
        }
        Value::Array(items) => {
            let (index, rest) = first_index(path)?;
            at_path(items.get(index)?, rest)
        }
        _ => None,
    }
}

fn shortened(text: &str) -> String {
    const LONGEST: usize = 60;
    if text.chars().count() <= LONGEST {
        text.to_owned()
    } else {
        text.chars().take(LONGEST - 1).chain(['…']).collect()
    }
}
