//! Renders files of kind `erb`: Ruby evaluates them, with BOSH's context.
//!
//! In: ERB, and the facts of an instance. Out: its texts, cached by digest of all inputs. Must not:
//! start Ruby for what is cached, or know manifests.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, OnceLock, PoisonError};

use nstance_erb::{
    Options, RenderError, Renderer, Request, SCRIPT, Template, TemplateError, needs_ruby, tags,
    unterminated_tag,
};
use nstance_gotemplate::Sensitive;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::args::Tree;
use super::cache::{Compiled, Place, TemplateCache};
use super::data::{GroupFacts, InstanceFacts};
use super::dns::DnsNames;
use super::instance::Execution;
use super::links::{LinkFacts, LinkSet};
use crate::address::Address;
use crate::config::model::ErbContent;
use crate::config::node::Node;
use crate::config::source::SourceMap;
use crate::diagnostic::{Diagnostic, Diagnostics, Reported};
use crate::digest::hex;

/// The `--ruby` of the command line.
static RUBY: OnceLock<PathBuf> = OnceLock::new();

/// The Ruby processes of this process. They live as long as it does, because files that wait for an
/// address are rendered one instance at a time.
static WORKERS: LazyLock<Renderer> = LazyLock::new(|| {
    Renderer::new(Options {
        ruby: RUBY.get().cloned(),
        ..Options::default()
    })
});

/// Sets the Ruby to run, before anything is rendered; without it, that is `ruby` on `PATH`.
pub fn set_ruby(path: PathBuf) {
    // The first path counts, as there is one command line.
    let _ = RUBY.set(path);
}

/// A file of kind `erb` whose properties are parsed.
#[derive(Debug, Clone)]
pub(super) struct CompiledErb {
    text: Arc<str>,
    place: Place,
    /// The properties; `None` for the vars.
    properties: Option<Tree>,
    /// What replaces members of the context.
    context: Map<String, Value>,
    /// What replaces them in single instances, by index.
    instances: Vec<Value>,
    /// Whether one of these has a sensitive part.
    has_secrets: bool,
    mentions: Mentions,
}

/// Whether the messages of an error of ERB have the names of properties and links only.
pub fn has_names_only(class: &str) -> bool {
    matches!(class, "UnknownProperty" | "UnknownLink")
}

/// What a text may read, by the words in its tags. The context has only that, so that a text without the
/// words has one output for all instances, whatever it does.
#[derive(Debug, Clone, Copy)]
struct Mentions {
    /// What differs between instances: `spec` has it, and `index`.
    instance: bool,
    /// The first word for an address that is known once the instance exists, and its offset. They
    /// are members of `spec`.
    address: Option<(&'static str, usize)>,
    links: bool,
}

impl Mentions {
    fn of(text: &str) -> Self {
        let tags = tags(text);
        let word = |wanted: &str| {
            let mut tags = tags.iter();
            tags.find_map(|tag| Some(tag.start + word(&text[tag.clone()], wanted)?))
        };
        let spec = word("spec");
        let first = |name, path| Some((path, word(name)?));
        let address = first("ip", "spec.ip").or_else(|| first("networks", "spec.networks"));
        Self {
            instance: spec.is_some() || word("index").is_some(),
            address: address.filter(|_| spec.is_some()),
            links: tags.iter().any(|tag| text[tag.clone()].contains("link")),
        }
    }
}

/// The offset of a whole word.
fn word(text: &str, word: &str) -> Option<usize> {
    let is_part = |byte: Option<&u8>| byte.is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_');
    let bytes = text.as_bytes();
    let mut found = text.match_indices(word).map(|(at, _)| at);
    found.find(|at| {
        let before = at.checked_sub(1).and_then(|at| bytes.get(at));
        !is_part(before) && !is_part(bytes.get(at + word.len()))
    })
}

/// An instance and its group, as ERB sees them.
pub(super) struct Subject<'a> {
    pub(super) group: &'a GroupFacts,
    pub(super) instance: &'a InstanceFacts,
    pub(super) links: &'a LinkSet,
}

impl CompiledErb {
    /// Parses a file's properties, and warns of a tag without an end.
    ///
    /// Fails if a template in the properties has an error.
    pub(super) fn compile(
        erb: &ErbContent,
        cache: &mut TemplateCache<'_>,
        findings: &mut Diagnostics,
    ) -> Result<Self, Reported> {
        let text = &erb.template.value;
        let place = Place::Literal(erb.template.span);
        if let Some(offset) = unterminated_tag(text) {
            findings.push(
                Diagnostic::warning("an ERB tag has no end")
                    .at(place.at(cache.sources(), offset), "no `%>` follows")
                    .hint("Close it with `%>`; ERB takes the rest of the file as text"),
            );
        }
        let properties = erb.properties.as_ref();
        let properties = properties.map(|node| Tree::from_node(node, cache, findings));
        let context = match erb.context.as_ref().map(Node::to_json) {
            Some(Value::Object(context)) => context,
            _ => Map::new(),
        };
        let instances = match erb.instances.as_ref().map(Node::to_json) {
            Some(Value::Array(instances)) => instances,
            _ => Vec::new(),
        };
        let nodes = [&erb.properties, &erb.context, &erb.instances];
        let mut nodes = nodes.into_iter().flatten();
        Ok(Self {
            has_secrets: nodes.any(Node::is_sensitive_within),
            text: Arc::clone(text),
            place,
            properties: properties.transpose()?,
            context,
            instances,
            mentions: Mentions::of(text),
        })
    }

    /// Calls `visit` with every Go template.
    pub(super) fn templates<'a>(&'a self, visit: &mut dyn FnMut(&'a Compiled)) {
        if let Some(properties) = &self.properties {
            properties.templates(visit);
        }
    }

    /// Whether its ERB may differ between instances; its properties are templates.
    pub(super) fn is_per_instance(&self) -> bool {
        self.mentions.instance
    }

    /// Whether its ERB may read links.
    pub(super) fn reads_links(&self) -> bool {
        self.mentions.links && !self.context.contains_key("links")
    }

    /// Whether it sees sensitive data: an output may have it anywhere.
    pub(super) fn is_sensitive(&self, data: &Sensitive) -> bool {
        let properties = match &self.properties {
            _ if self.context.contains_key("properties") => false,
            Some(properties) => !properties.mark(data).is_open(),
            None => data.holds_part(".Vars"),
        };
        self.has_secrets || properties || self.reads_links() && data.holds_part(".Link")
    }

    /// What is needed to render it; `None` if its properties can't be rendered, or if it isn't known
    /// yet.
    pub(super) fn question(
        &self,
        name: &Arc<str>,
        subject: &Subject<'_>,
        execution: &mut Execution<'_>,
    ) -> Option<Question> {
        if execution.report.is_exhausted(self.place) {
            return None;
        }
        let context = self.context(subject, execution)?;
        Some(Question::new(name, &self.text, context))
    }

    /// What the text may read of a context. Links may have thousands of instances.
    pub(super) fn read_of(&self, context: &Value) -> Value {
        let Value::Object(members) = context else {
            return context.clone();
        };
        let read = members.iter().filter(|(key, _)| self.reads(key));
        Value::Object(
            read.map(|(key, value)| (key.clone(), value.clone()))
                .collect(),
        )
    }

    /// Whether the text may read a member of a given context.
    fn reads(&self, key: &str) -> bool {
        key != "links" || self.mentions.links
    }

    fn context(&self, subject: &Subject<'_>, execution: &mut Execution<'_>) -> Option<String> {
        let Subject {
            group,
            instance,
            links,
        } = subject;
        let mut context = json!({
            "name": group.group,
            "job": {"name": group.group},
            "deployment": group.of_shard.cluster_id,
        });
        if self.mentions.instance {
            let index = instance.index();
            let address = DnsNames::of(group).instance(index);
            context["index"] = index.into();
            context["id"] = format!("{}-{index}", group.group).into();
            context["az"] = group.lists_zones.then_some(&*instance.zone).into();
            context["address"] = address.clone().into();
            context["bootstrap"] = (index == 0).into();
            let replaced = |key| self.context.contains_key(key);
            if let Some((path, offset)) = self.mentions.address
                && !(replaced("ip") && replaced("networks"))
            {
                let addresses = [&instance.ip4, &instance.ip6];
                if addresses.iter().all(|address| address.is_none()) {
                    execution.unknown_read(self.place, offset, path);
                    return None;
                }
                // An address that the cloud didn't assign is empty.
                let mut known = addresses.into_iter().flatten();
                let ip = known.find(|address| !address.is_empty());
                context["ip"] = json!(ip);
                context["networks"] = json!({"default": {"ip": ip, "dns_record_name": address}});
            }
        }
        if !self.context.contains_key("properties") {
            context["properties"] = match &self.properties {
                Some(properties) => properties.render(execution)?,
                None => group.vars.clone(),
            };
        }
        if self.reads_links() {
            let links = links.iter();
            let links = links.filter_map(|(name, link)| Some((name, link_value(link.as_ref()?))));
            context["links"] = links.map(|(name, link)| (name.to_string(), link)).collect();
        }
        for (key, value) in self.context.iter().filter(|(key, _)| self.reads(key)) {
            context[key] = value.clone();
        }
        let own = self.instances.get(instance.index() as usize);
        let own = own.and_then(Value::as_object);
        if let Some(own) = own.filter(|_| self.mentions.instance) {
            for (key, value) in own.iter().filter(|(key, _)| self.reads(key)) {
                context[key] = value.clone();
            }
            add_address(&mut context);
        }
        Some(context.to_string())
    }

    /// The place of a line's first character that isn't a space.
    fn offset_of(&self, line: u32) -> usize {
        let lines = self.text.split_inclusive('\n');
        let before: usize = lines
            .take(line.saturating_sub(1) as usize)
            .map(str::len)
            .sum();
        let rest = &self.text[before..];
        before + rest.len() - rest.trim_start_matches([' ', '\t']).len()
    }

    /// The text of an answer; `None` if it is an error, which goes into the report.
    pub(super) fn text(
        &self,
        answer: &Answer,
        erb: &Erb,
        name: &Arc<str>,
        is_sensitive: bool,
        execution: &mut Execution<'_>,
    ) -> Option<String> {
        match answer {
            Ok(text) => return Some(text.to_string()),
            Err(Failure::Template(error)) => {
                let offset = error.line.map_or(0, |line| self.offset_of(line));
                let is_limit = error.class == "TimeLimitExceeded";
                execution.erb_error(self.place, offset, error, is_limit, is_sensitive);
            }
            Err(Failure::Request(message)) => {
                let message = message.to_string();
                execution
                    .report
                    .error(self.place, 0, message, None, execution.address);
            }
            Err(Failure::NoRuby) => {
                erb.note_missing(self.place, execution.address, name);
                return execution.report.is_trial().then(String::new);
            }
        }
        None
    }
}

/// Adds the instance's address to the network that addresses belong to: the one with the default
/// `addressable`, or else `gateway`, or else the first.
fn add_address(context: &mut Value) {
    let Some(ip) = context.get("ip").cloned() else {
        return;
    };
    let networks = context.get_mut("networks").and_then(Value::as_object_mut);
    let Some(networks) = networks else { return };
    let has_default = |network: &Value, name: &str| {
        let defaults = network["default"].as_array();
        defaults.is_some_and(|defaults| defaults.iter().any(|default| default == name))
    };
    let of_default = |name| {
        networks
            .values()
            .position(|network| has_default(network, name))
    };
    let position = of_default("addressable").or_else(|| of_default("gateway"));
    if let Some(network) = networks.values_mut().nth(position.unwrap_or(0)) {
        network["ip"] = ip;
    }
}

/// Whether a template may read an address of its instance, which is known once it exists.
pub fn reads_address(text: &str) -> bool {
    Mentions::of(text).address.is_some()
}

/// A link, as BOSH gives it to templates. The addresses are names, so all of it is known while
/// planning.
fn link_value(link: &LinkFacts) -> Value {
    let group = link.group.rsplit('/').next().unwrap_or_default();
    let instances = link.members.iter().map(|member| {
        json!({
            "name": group,
            "index": member.index,
            "id": format!("{group}-{}", member.index),
            "az": member.zone,
            "address": member.address,
            "bootstrap": member.index == 0,
        })
    });
    json!({
        "instances": instances.collect::<Value>(),
        "properties": link.properties,
        "address": link.address,
    })
}

/// A file to evaluate.
pub(super) struct Question {
    name: Arc<str>,
    text: Arc<str>,
    context: String,
    key: Key,
}

/// A digest of the script, the file's name, its text and its context.
type Key = String;

impl Question {
    fn new(name: &Arc<str>, text: &Arc<str>, context: String) -> Self {
        let mut hasher = Sha256::new();
        for part in [SCRIPT, name, text, &context] {
            hasher.update((part.len() as u64).to_be_bytes());
            hasher.update(part);
        }
        Self {
            name: Arc::clone(name),
            text: Arc::clone(text),
            context,
            key: hex(&hasher.finalize()),
        }
    }
}

/// A rendered file.
pub(super) type Answer = Result<Arc<str>, Failure>;

/// Why a file wasn't rendered.
#[derive(Debug, Clone)]
pub(super) enum Failure {
    /// The template failed.
    Template(Arc<TemplateError>),
    /// The request failed.
    Request(Arc<str>),
    /// Ruby is missing; [`Erb::finding`] says so.
    NoRuby,
}

/// The outputs of ERB, by digest of their inputs.
#[derive(Debug, Default)]
pub struct Erb {
    outputs: Mutex<Outputs>,
    missing: Mutex<Option<Missing>>,
}

#[derive(Debug, Default)]
struct Outputs {
    /// Those from an earlier run.
    kept: HashMap<Key, Arc<str>>,
    /// Those that this run asked for.
    used: HashMap<Key, Answer>,
    /// Whether one of those is new.
    changed: bool,
}

/// Why Ruby is missing, and what needs it.
#[derive(Debug)]
struct Missing {
    error: RenderError,
    first: Option<Place>,
    /// Files by group.
    files: BTreeMap<String, BTreeSet<Arc<str>>>,
}

impl Erb {
    /// Evaluates files. Those with the same context are one request.
    pub(super) fn answer(&self, questions: &[Question]) -> Vec<Answer> {
        let mut answers: Vec<Option<Answer>> = questions.iter().map(|it| self.known(it)).collect();
        let mut requests: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (index, question) in questions.iter().enumerate() {
            if answers[index].is_none() {
                requests.entry(&question.context).or_default().push(index);
            }
        }
        for (context, indices) in requests {
            let asked: Vec<&Question> = indices.iter().map(|index| &questions[*index]).collect();
            for (index, answer) in indices.iter().zip(self.ask(context, &asked)) {
                answers[*index] = Some(answer);
            }
        }
        answers.into_iter().flatten().collect()
    }

    /// The answer to a question that needs no Ruby.
    fn known(&self, question: &Question) -> Option<Answer> {
        if !needs_ruby(&question.text) {
            return Some(Ok(Arc::clone(&question.text)));
        }
        let mut outputs = lock(&self.outputs);
        if let Some(answer) = outputs.used.get(&question.key) {
            return Some(answer.clone());
        }
        let kept = Ok(outputs.kept.get(&question.key)?.clone());
        outputs.used.insert(question.key.clone(), kept.clone());
        Some(kept)
    }

    fn ask(&self, context: &str, questions: &[&Question]) -> Vec<Answer> {
        let all = |failure: Failure| vec![Err(failure); questions.len()];
        // It isn't looked for again: a Ruby that doesn't start may take a minute to say so.
        if lock(&self.missing).is_some() {
            return all(Failure::NoRuby);
        }
        let templates: Vec<Template<'_>> = questions
            .iter()
            .map(|question| Template {
                name: &question.name,
                text: &question.text,
            })
            .collect();
        let rendered = WORKERS.render(&Request {
            context,
            dns: None,
            templates: &templates,
        });
        match rendered {
            Ok(results) => {
                let mut outputs = lock(&self.outputs);
                let answers = results
                    .into_iter()
                    .zip(questions)
                    .map(|(result, question)| {
                        let answer = result
                            .map(Arc::from)
                            .map_err(|error| Failure::Template(Arc::new(error)));
                        outputs.changed |= answer.is_ok();
                        outputs.used.insert(question.key.clone(), answer.clone());
                        answer
                    });
                answers.collect()
            }
            Err(error @ (RenderError::RubyMissing { .. } | RenderError::RubyFailed { .. })) => {
                lock(&self.missing).get_or_insert(Missing {
                    error,
                    first: None,
                    files: BTreeMap::new(),
                });
                all(Failure::NoRuby)
            }
            Err(error @ (RenderError::RubyEnded | RenderError::NoAnswer { .. })) => {
                all(Failure::Request(error.to_string().into()))
            }
        }
    }

    /// Notes a file that wasn't rendered because Ruby is missing.
    fn note_missing(&self, place: Place, address: &Address, name: &Arc<str>) {
        if let Some(missing) = &mut *lock(&self.missing) {
            missing.first.get_or_insert(place);
            let group = address.group.to_string();
            missing
                .files
                .entry(group)
                .or_default()
                .insert(Arc::clone(name));
        }
    }

    /// The error that Ruby is missing, with the files that need it; `None` if none does.
    pub fn finding(&self, sources: &SourceMap) -> Option<Diagnostic> {
        let missing = lock(&self.missing);
        let missing = missing.as_ref()?;
        let place = missing.first?;
        let files = missing.files.iter().map(|(group, files)| {
            let files: Vec<_> = files.iter().map(|name| format!("`{name}`")).collect();
            format!("{} of {group}", files.join(", "))
        });
        let files: Vec<_> = files.collect();
        let finding = match &missing.error {
            RenderError::RubyMissing { looked_for } => Diagnostic::error(format!(
                "files of kind `erb` need Ruby, but `{}` is missing",
                looked_for.display()
            ))
            .hint("Install Ruby 3 (`apt-get install ruby`), or pass --ruby PATH"),
            error => Diagnostic::error(error.to_string()),
        };
        Some(
            finding
                .at(place.at(sources, 0), "needs Ruby")
                .detail(format!("not rendered: {}", files.join("; "))),
        )
    }

    /// Whether Ruby was needed and is missing.
    pub fn lacks_ruby(&self) -> bool {
        lock(&self.missing).is_some()
    }

    /// Adds the outputs that an earlier run kept; ignores bytes that aren't of this form.
    pub fn load(&self, bytes: &[u8]) {
        let Ok(kept) = serde_json::from_slice(bytes) else {
            return;
        };
        lock(&self.outputs).kept = kept;
    }

    /// The outputs for later runs; `None` if nothing was rendered. What this run didn't ask for is
    /// left out, unless it looked at a part of the groups only.
    pub fn save(&self, is_part: bool) -> Option<Vec<u8>> {
        let outputs = lock(&self.outputs);
        if !outputs.changed {
            return None;
        }
        let used = outputs.used.iter();
        let used = used.filter_map(|(key, answer)| Some((key, answer.as_ref().ok()?)));
        let kept = outputs.kept.iter().filter(|_| is_part);
        let texts: BTreeMap<&Key, &Arc<str>> = kept.chain(used).collect();
        Some(serde_json::to_vec(&texts).expect("its keys are strings"))
    }
}

/// What a mutex holds, which is consistent after each statement here.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_say_what_a_text_may_read() {
        let cases = [
            ("<%= p('a') %>", false, None, false),
            ("<%= index %>", true, None, false),
            ("<% each_with_index %>", false, None, false),
            ("<%= spec.az %>", true, None, false),
            ("<%= spec.ip %>", true, Some(("spec.ip", 9)), false),
            (
                "<%= spec['networks'] %>",
                true,
                Some(("spec.networks", 10)),
                false,
            ),
            ("<%= spec.links %>", true, None, true),
            // Without `spec`, there is no way to an address.
            ("ip <%= p('networks.ip') %>", false, None, false),
            // Only tags count.
            ("# spec\nip route <%= index %> link", true, None, false),
            ("ip route <%= spec.index %>", true, None, false),
            ("<%= spec.id %> zip ip_range", true, None, false),
            ("<% if_link('db') { |l| } %>", false, None, true),
        ];
        for (text, instance, address, links) in cases {
            let found = Mentions::of(text);
            let found = (found.instance, found.address, found.links);
            assert_eq!(found, (instance, address, links), "{text}");
        }
    }

    #[test]
    fn outputs_are_kept_for_later_runs() {
        let question = |text: &str| Question::new(&"a".into(), &text.into(), "{}".to_owned());
        let [old, new, unused] = ["<%= 1 %>", "<%= 2 %>", "<%= 3 %>"].map(question);
        let kept: BTreeMap<_, _> = [(&old.key, "1"), (&unused.key, "3")].into();
        let kept = serde_json::to_vec(&kept).unwrap();
        for (is_part, expected) in [(false, 2), (true, 3)] {
            let erb = Erb::default();
            erb.load(&kept);
            assert_eq!(erb.known(&old).unwrap().unwrap(), "1".into());
            assert!(erb.known(&new).is_none());
            assert_eq!(erb.save(is_part), None, "nothing is new");
            let mut outputs = lock(&erb.outputs);
            outputs.used.insert(new.key.clone(), Ok("2".into()));
            outputs.changed = true;
            drop(outputs);
            let saved = erb.save(is_part).unwrap();
            let saved: BTreeMap<String, String> = serde_json::from_slice(&saved).unwrap();
            assert_eq!(saved.len(), expected);
            assert_eq!(saved[&new.key], "2");
        }
    }

    #[test]
    fn bytes_of_another_form_are_ignored() {
        let erb = Erb::default();
        erb.load(b"[1]");
        assert!(lock(&erb.outputs).kept.is_empty());
    }
}
