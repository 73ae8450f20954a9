//! Renders files, and the descriptions of files that the server delivers.
//!
//! In: configured files. Out: templates, and rendered [`File`](crate::spec::File)s. Must not: write
//! to disk. A file that depends on the instance's addresses may be unknown.

use std::collections::BTreeMap;
use std::sync::Arc;

use nstance_gotemplate::{Sensitive, Value as TemplateValue};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::args::{Tree, is_template};
use super::cache::{Compiled, Place, TemplateCache};
use super::data::{GroupData, GroupFacts, InstanceFacts, ShardData, labels_value};
use super::erb::{CompiledErb, Erb, Question, Subject};
use super::instance::{Execution, Report, Timing};
use super::library::{SnippetTexts, Snippets};
use super::links::{LinkSet, Unknown};
use crate::address::Address;
use crate::config::model::{Deliver, ErbContent, File as Source, FileContent, Functions};
use crate::config::node::{Node, NodeValue, Sensitivity};
use crate::config::source::{SourceId, SourceMap, Span, Spanned};
use crate::diagnostic::{Diagnostics, Reported, all};
use crate::sensitivity::{Mark, TextMark};
use crate::spec::{File, Files};

/// A file with parsed templates.
#[derive(Debug, Clone)]
pub struct CompiledFile {
    /// Its name.
    pub name: Arc<str>,
    /// How it is delivered to its instance.
    pub deliver: Deliver,
    kind: &'static str,
    content: Content,
    source: FileSource,
    /// Whether the whole file is sensitive, rather than parts of its content.
    pub(super) is_sensitive: bool,
}

#[derive(Debug, Clone)]
enum Content {
    Env(Vec<(Arc<str>, Text)>),
    /// A document, and its sensitive parts as written.
    Json(Tree, Mark),
    String(Text),
    Erb(Box<CompiledErb>),
    /// A file that the server delivers: the rendered parts of its description.
    Server(Vec<Text>),
}

#[derive(Debug, Clone)]
enum Text {
    Constant(Arc<str>, Sensitivity),
    Template(Compiled),
}

impl Text {
    fn compile(
        text: &Arc<str>,
        span: Span,
        sensitivity: &Sensitivity,
        cache: &mut TemplateCache<'_>,
        findings: &mut Diagnostics,
    ) -> Result<Self, Reported> {
        if !is_template(text) {
            return Ok(Self::Constant(Arc::clone(text), sensitivity.clone()));
        }
        cache
            .compile(text, Place::Literal(span), sensitivity, findings)
            .map(Self::Template)
    }

    fn render(&self, execution: &mut Execution<'_>) -> Option<String> {
        match self {
            Self::Constant(text, _) => Some(text.to_string()),
            Self::Template(compiled) => execution.string(compiled),
        }
    }

    fn is_sensitive(&self, data: &Sensitive) -> bool {
        match self {
            Self::Constant(_, sensitivity) => !sensitivity.is_open(),
            Self::Template(compiled) => compiled.trace(data).is_some(),
        }
    }
}

impl CompiledFile {
    /// Parses a file's templates.
    ///
    /// Fails if a template has an error.
    pub fn compile(
        name: &Arc<str>,
        file: &Source,
        cache: &mut TemplateCache<'_>,
        findings: &mut Diagnostics,
    ) -> Result<Self, Reported> {
        // If one of these is sensitive, so is the whole file.
        let open = &Sensitivity::Open;
        let content = match &file.content {
            FileContent::Env(node) => Content::Env(env_entries(node, cache, findings)?),
            FileContent::Json(node) => {
                Content::Json(Tree::from_node(node, cache, findings)?, Mark::of_node(node))
            }
            FileContent::String(text) => {
                let sensitivity = &file.sensitivity;
                let text = Text::compile(&text.value, text.span, sensitivity, cache, findings)?;
                Content::String(text)
            }
            FileContent::Erb(erb) => {
                Content::Erb(Box::new(CompiledErb::compile(erb, cache, findings)?))
            }
            FileContent::Secret(source) | FileContent::Storage(source) => {
                Content::Server(vec![Text::compile(
                    &source.value,
                    source.span,
                    open,
                    cache,
                    findings,
                )?])
            }
            FileContent::Certificate { template, key } => {
                let name = |key: &Node| key.get("name").unwrap_or(key).as_str().map(Arc::from);
                let key = key.as_ref().and_then(name);
                let texts = [Some(Arc::clone(&template.value)), key];
                let texts = texts.into_iter().flatten();
                Content::Server(
                    texts
                        .map(|text| Text::Constant(text, open.clone()))
                        .collect(),
                )
            }
        };
        Ok(Self {
            name: Arc::clone(name),
            deliver: file.deliver.clone(),
            kind: file.content.kind(),
            content,
            source: FileSource::new(&file.content),
            is_sensitive: match &file.content {
                FileContent::String(_) => false,
                // The keys of an env file are part of its text.
                FileContent::Env(node) => !node.sensitivity.is_open(),
                _ => !file.sensitivity.is_open(),
            },
        })
    }

    /// Whether it is embedded in the userdata, if it fits.
    pub fn is_carried(&self) -> bool {
        matches!(self.deliver, Deliver::Userdata { .. })
    }

    /// Whether it is exported if the userdata is too large.
    pub(super) fn may_be_exported(&self) -> bool {
        matches!(
            self.deliver,
            Deliver::Userdata {
                or_export: true,
                ..
            }
        )
    }

    /// The template's source for one instance, kept to render it again once addresses are known.
    pub fn source_of(&self, index: u32) -> FileSource {
        match (&self.source, self.erb()) {
            (
                FileSource::Erb {
                    text,
                    properties,
                    context,
                    instances,
                },
                Some(erb),
            ) => {
                let own = instances.as_ref().and_then(|all| all.get(index as usize));
                // The list keeps the instance's place; what others have isn't needed.
                let others = std::iter::repeat_n(Value::Null, index as usize);
                FileSource::Erb {
                    text: Arc::clone(text),
                    properties: properties.clone(),
                    context: context.as_ref().map(|context| erb.read_of(context)),
                    instances: own.map(|own| others.chain([erb.read_of(own)]).collect()),
                }
            }
            (source, _) => source.clone(),
        }
    }

    /// Its ERB, if it is of kind `erb`.
    pub(super) fn erb(&self) -> Option<&CompiledErb> {
        match &self.content {
            Content::Erb(erb) => Some(erb),
            _ => None,
        }
    }

    /// Calls `visit` with every Go template.
    pub fn templates<'a>(&'a self, visit: &mut dyn FnMut(&'a Compiled)) {
        let mut text = |text: &'a Text| {
            if let Text::Template(compiled) = text {
                visit(compiled);
            }
        };
        match &self.content {
            Content::Env(entries) => entries.iter().for_each(|(_, value)| text(value)),
            Content::Json(tree, _) => tree.templates(visit),
            Content::String(value) => text(value),
            Content::Erb(erb) => erb.templates(visit),
            Content::Server(values) => values.iter().for_each(text),
        }
    }

    /// Whether any part of it is built from sensitive data.
    pub(super) fn is_sensitive(&self, data: &Sensitive) -> bool {
        self.is_sensitive
            || match &self.content {
                Content::Env(entries) => entries.iter().any(|(_, text)| text.is_sensitive(data)),
                Content::Json(tree, mark) => !mark.is_open() || !tree.mark(data).is_open(),
                Content::String(text) => text.is_sensitive(data),
                Content::Erb(erb) => erb.is_sensitive(data),
                Content::Server(texts) => texts.iter().any(|text| text.is_sensitive(data)),
            }
    }

    /// The sensitive lines of its rendered content.
    pub(super) fn mark(&self, content: Option<&str>, execution: &mut Execution<'_>) -> TextMark {
        let data = execution.sensitive;
        let Some(content) = content.filter(|_| !self.is_sensitive) else {
            return TextMark::whole_if(self.is_sensitive(data));
        };
        match &self.content {
            Content::Env(entries) => {
                let hidden: Vec<bool> = entries
                    .iter()
                    .map(|(_, text)| text.is_sensitive(data))
                    .collect();
                TextMark::of_hidden(content, &hidden)
            }
            Content::Json(tree, mark) => {
                let mark = mark.or(&tree.mark(data));
                match serde_json::from_str(content) {
                    Ok(value) => TextMark::of_json(&value, &mark),
                    Err(_) => TextMark::whole_if(!mark.is_open()),
                }
            }
            Content::String(Text::Constant(_, sensitivity)) => {
                TextMark::of_bytes(content, &sensitivity.bytes(content))
            }
            Content::String(Text::Template(compiled)) => {
                TextMark::of_bytes(content, &execution.sensitive_bytes(compiled))
            }
            Content::Erb(_) | Content::Server(_) => TextMark::whole_if(self.is_sensitive(data)),
        }
    }

    /// Renders it, or says what Ruby has to evaluate.
    fn render(&self, subject: &Subject<'_>, execution: &mut Execution<'_>) -> Rendered {
        execution.unknown = false;
        let content = match &self.content {
            Content::Env(entries) => render_env(entries, execution),
            Content::Json(tree, _) => tree.render(execution).map(|value| {
                let mut text = serde_json::to_string_pretty(&value).expect("keys are strings");
                text.push('\n');
                text
            }),
            Content::String(text) => text.render(execution),
            Content::Erb(erb) => match erb.question(&self.name, subject, execution) {
                Some(question) if !execution.unknown => return Rendered::Question(question),
                _ => None,
            },
            Content::Server(texts) => {
                let rendered: Vec<_> = texts.iter().map(|text| text.render(execution)).collect();
                rendered
                    .into_iter()
                    .collect::<Option<Vec<_>>>()
                    .map(|texts| texts.join(" "))
            }
        };
        match content {
            _ if std::mem::take(&mut execution.unknown) => Rendered::Unknown,
            Some(text) => Rendered::Text(text),
            None => Rendered::Failed,
        }
    }

    /// The rendered file.
    fn made(&self, content: Option<String>) -> File {
        File {
            kind: self.kind.into(),
            content,
            by_server: matches!(self.content, Content::Server(_)),
            in_userdata: self.is_carried(),
        }
    }
}

/// The result of a file's Go templates.
enum Rendered {
    Text(String),
    /// What is left is ERB.
    Question(Question),
    /// It depends on unknown data.
    Unknown,
    Failed,
}

/// What files of an instance are rendered with.
pub(super) struct FileData<'a> {
    /// The data of files in userdata.
    pub(super) carried: &'a TemplateValue,
    /// The data of exported files.
    pub(super) exported: &'a TemplateValue,
    pub(super) subject: Subject<'a>,
    pub(super) erb: &'a Erb,
    pub(super) address: &'a Address,
    pub(super) sensitive: &'a Sensitive,
}

impl FileData<'_> {
    fn execution<'r>(&'r self, file: &CompiledFile, report: &'r mut Report) -> Execution<'r> {
        let (timing, root) = if file.is_carried() {
            (Timing::BeforeCreation, self.carried)
        } else {
            (Timing::AfterCreation, self.exported)
        };
        Execution {
            root,
            address: self.address,
            timing,
            report,
            sensitive: self.sensitive,
            unknown: false,
        }
    }
}

/// Renders the files of an instance, the ERB of all of them together; `None` if one failed, with the
/// error in the report. A file that depends on unknown data has no content.
pub(super) fn render_all(
    files: &[CompiledFile],
    data: &FileData<'_>,
    report: &mut Report,
) -> Option<Files> {
    let mut rendered = Files::new();
    let mut sound = true;
    let mut asking = Vec::new();
    let mut questions = Vec::new();
    for file in files {
        let content = match file.render(&data.subject, &mut data.execution(file, report)) {
            Rendered::Text(text) => Some(text),
            Rendered::Unknown => None,
            Rendered::Question(question) => {
                asking.push(file);
                questions.push(question);
                continue;
            }
            Rendered::Failed => {
                sound = false;
                continue;
            }
        };
        rendered.insert(Arc::clone(&file.name), file.made(content));
    }
    for (file, answer) in asking.into_iter().zip(data.erb.answer(&questions)) {
        let is_sensitive = file.is_sensitive(data.sensitive);
        let mut execution = data.execution(file, report);
        let text = file.erb().and_then(|compiled| {
            compiled.text(&answer, data.erb, &file.name, is_sensitive, &mut execution)
        });
        match text {
            Some(text) => {
                rendered.insert(Arc::clone(&file.name), file.made(Some(text)));
            }
            None => sound = false,
        }
    }
    sound.then_some(rendered)
}

fn env_entries(
    node: &Node,
    cache: &mut TemplateCache<'_>,
    findings: &mut Diagnostics,
) -> Result<Vec<(Arc<str>, Text)>, Reported> {
    let texts = node
        .entries()
        .iter()
        .filter_map(|entry| match &entry.value.value {
            NodeValue::String(text) => Some((&entry.key, &entry.value, text)),
            _ => None,
        });
    all(texts.map(|(key, node, text)| {
        let text = Text::compile(text, node.span, &node.sensitivity, cache, findings)?;
        Ok((Arc::clone(key), text))
    }))
}

fn render_env(entries: &[(Arc<str>, Text)], execution: &mut Execution<'_>) -> Option<String> {
    let mut text = String::new();
    let mut sound = true;
    for (key, value) in entries {
        let Some(value) = value.render(execution) else {
            sound = false;
            continue;
        };
        text.push_str(key);
        text.push('=');
        text.push_str(&value);
        text.push('\n');
    }
    sound.then_some(text)
}

/// A file's template as stored in plan files.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", content = "template", rename_all = "snake_case")]
pub enum FileSource {
    /// An object of strings.
    Env(Value),
    /// An object.
    Json(Value),
    /// A text.
    String(Arc<str>),
    /// ERB.
    Erb {
        /// Its text.
        text: Arc<str>,
        /// Its properties, an object.
        properties: Option<Value>,
        /// What replaces members of its context, an object.
        context: Option<Value>,
        /// What replaces them in single instances, a list of objects.
        #[serde(default)]
        instances: Option<Value>,
    },
    /// A file of the server, which never depends on an instance's addresses.
    Server,
}

impl FileSource {
    fn new(content: &FileContent) -> Self {
        match content {
            FileContent::Env(node) => Self::Env(node.to_json()),
            FileContent::Json(node) => Self::Json(node.to_json()),
            FileContent::String(text) => Self::String(Arc::clone(&text.value)),
            FileContent::Erb(erb) => Self::Erb {
                text: Arc::clone(&erb.template.value),
                properties: erb.properties.as_ref().map(Node::to_json),
                context: erb.context.as_ref().map(Node::to_json),
                instances: erb.instances.as_ref().map(Node::to_json),
            },
            FileContent::Secret(_) | FileContent::Storage(_) | FileContent::Certificate { .. } => {
                Self::Server
            }
        }
    }
}

/// Files that can only be rendered once their instance exists, with all their data.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Deferred {
    /// The group's facts.
    pub group: Arc<GroupFacts>,
    /// The instance's facts, without addresses.
    pub instance: InstanceFacts,
    /// The files.
    pub files: Vec<(Arc<str>, FileSource)>,
    /// The snippets, if the files call any.
    #[serde(default, skip_serializing_if = "no_snippets")]
    pub snippets: Arc<SnippetTexts>,
    /// The functions that the files' templates can call.
    #[serde(default, skip_serializing_if = "Functions::is_go")]
    pub functions: Functions,
    /// The instance's labels, if they are its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub labels: Option<BTreeMap<Arc<str>, Arc<str>>>,
    /// The links that the files read.
    #[serde(default, skip_serializing_if = "LinkSet::is_empty")]
    pub links: LinkSet,
}

fn no_snippets(snippets: &Arc<SnippetTexts>) -> bool {
    snippets.is_empty()
}

impl Deferred {
    /// Renders the files with the addresses that the cloud assigned.
    ///
    /// Fails with a message if a template fails.
    pub fn render(
        &self,
        address: &Address,
        ip4: Option<&str>,
        ip6: Option<&str>,
    ) -> Result<Vec<(Arc<str>, String)>, String> {
        let mut sources = SourceMap::default();
        let nowhere = Span::new(sources.add("", ""), 0, 0);
        let images = self.group.images.keys().map(|name| &**name).collect();
        let place = Place::Behind(nowhere);
        let snippets = Snippets::of_texts(&self.snippets, self.functions, place);
        let mut cache = TemplateCache::new(&sources, images, Arc::new(snippets));
        let mut instance = self.instance.clone();
        // An address that the cloud didn't assign becomes empty, since none will follow.
        instance.ip4 = Some(ip4.unwrap_or("").into());
        instance.ip6 = Some(ip6.unwrap_or("").into());
        let root = GroupData::new(
            &self.group,
            &ShardData::new(Arc::clone(&self.group.of_shard)),
        )
        .with_links(&self.links, Unknown::Unknown)
        .root(&instance, None, self.labels.as_ref().map(labels_value));
        let mut findings = Diagnostics::default();
        let files = self.files.iter().filter_map(|(name, source)| {
            let content = match source {
                FileSource::Env(value) => FileContent::Env(from_json(value, nowhere)),
                FileSource::Json(value) => FileContent::Json(from_json(value, nowhere)),
                FileSource::String(text) => {
                    FileContent::String(Spanned::new(Arc::clone(text), nowhere))
                }
                FileSource::Erb {
                    text,
                    properties,
                    context,
                    instances,
                } => {
                    let node = |value: &Value| from_json(value, nowhere);
                    FileContent::Erb(ErbContent {
                        template: Spanned::new(Arc::clone(text), nowhere),
                        properties: properties.as_ref().map(node),
                        context: context.as_ref().map(node),
                        instances: instances.as_ref().map(node),
                    })
                }
                FileSource::Server => return None,
            };
            let source = Source {
                content,
                deliver: Deliver::Export,
                sensitivity: Sensitivity::Open,
            };
            Some(CompiledFile::compile(
                name,
                &source,
                &mut cache,
                &mut findings,
            ))
        });
        let files = all(files).map_err(|_| "a file can't be read from the plan".to_owned())?;
        let sensitive = Sensitive::default();
        let erb = Erb::default();
        let mut report = Report::default();
        let data = FileData {
            carried: &root,
            exported: &root,
            subject: Subject {
                group: &self.group,
                instance: &instance,
                links: &self.links,
            },
            erb: &erb,
            address,
            sensitive: &sensitive,
        };
        let rendered = render_all(&files, &data, &mut report);
        let rendered = rendered.ok_or_else(|| {
            let missing = erb.finding(&sources).map(|finding| finding.summary);
            let why = missing.as_deref().or(report.message()).unwrap_or_default();
            format!("a file could not be rendered: {why}")
        })?;
        // A file without content waits for addresses of the group's other instances.
        let rendered = rendered.into_iter();
        Ok(rendered
            .filter_map(|(name, file)| Some((name, file.content?)))
            .collect())
    }
}

fn from_json(value: &Value, span: Span) -> Node {
    debug_assert_eq!(span.source, SourceId(0));
    let value = match value {
        Value::Null => NodeValue::Null,
        Value::Bool(value) => NodeValue::Bool(*value),
        Value::Number(value) => NodeValue::Number(value.clone()),
        Value::String(text) => NodeValue::String(text.as_str().into()),
        Value::Array(items) => {
            NodeValue::Array(items.iter().map(|item| from_json(item, span)).collect())
        }
        Value::Object(entries) => NodeValue::Object(
            entries
                .iter()
                .map(|(key, value)| crate::config::node::Entry {
                    key: key.as_str().into(),
                    key_span: span,
                    value: from_json(value, span),
                })
                .collect(),
        ),
    };
    Node::new(span, value)
}
