//! BPM: the processes of a job, as its `bpm.yml` describes them.

use indexmap::IndexMap;
use serde_json::{Map, Value as Json, json};

use crate::context::{context, dns_tables};
use crate::release::Template;
use crate::render::{Erb, Failure, evaluate, missing};
use crate::resolve::{Resolved, ResolvedGroup, ResolvedJob};
use crate::value::{Data, Value};
use crate::yaml;

/// The processes of a job.
#[derive(Debug, Clone, PartialEq)]
pub struct JobBpm {
    /// Those of the first instance.
    pub processes: Vec<Process>,
    /// Whether other instances have others. Quarks doesn't support that, VMs do.
    pub unsupported_template: bool,
    /// Those of each instance, by ascending index.
    pub instances: Vec<Vec<Process>>,
}

/// A process of a job.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Process {
    /// The process's name.
    pub name: String,
    /// The program.
    pub executable: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Its environment.
    pub env: IndexMap<String, String>,
    /// Its working directory.
    pub workdir: Option<String>,
    /// The program that runs before it.
    pub pre_start: Option<String>,
    /// Linux capabilities, without `CAP_`.
    pub capabilities: Vec<String>,
    /// What it may use.
    pub limits: Limits,
    /// Whether it has a folder on the ephemeral disk; `None` if it isn't set.
    pub ephemeral_disk: Option<bool>,
    /// Whether it has a folder on the persistent disk; `None` if it isn't set.
    pub persistent_disk: Option<bool>,
    /// More folders.
    pub additional_volumes: Vec<Volume>,
    /// What weakens its isolation.
    pub relaxed: Relaxed,
    /// The signal that stops it; TERM if it isn't set.
    pub shutdown_signal: Option<Signal>,
}

/// The limits of a process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Limits {
    /// Memory, as written: `1G`.
    pub memory: Option<String>,
    /// Open files.
    pub open_files: Option<u64>,
    /// Processes.
    pub processes: Option<u64>,
}

/// A folder that a process sees.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Volume {
    /// Its path.
    pub path: String,
    /// Whether it may be written.
    pub writable: bool,
    /// Whether programs in it may be run.
    pub allow_executions: bool,
    /// Whether it isn't created.
    pub mount_only: bool,
}

/// BPM's `unsafe` section.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Relaxed {
    /// Whether it runs as root.
    pub privileged: bool,
    /// Volumes outside the folders that BPM allows.
    pub unrestricted_volumes: Vec<Volume>,
    /// Whether it sees the processes of the host.
    pub host_pid_namespace: bool,
}

/// A signal that stops a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// SIGTERM
    Term,
    /// SIGINT
    Int,
}

/// The processes of every job of a group. `bpm.yml` is rendered for each instance, without an `ip`:
/// it is needed before there is one.
///
/// # Errors
///
/// Every job without a `bpm.yml`, or whose `bpm.yml` can't be rendered or read, with the first
/// instance on which it fails.
pub fn group_bpm(
    resolved: &Resolved,
    group: &ResolvedGroup,
    erb: &dyn Erb,
) -> Result<IndexMap<String, JobBpm>, Vec<Failure>> {
    let mut jobs = IndexMap::new();
    let mut failures: Vec<Failure> = Vec::new();
    for job in &group.jobs {
        match job_bpm(resolved, group, job, erb) {
            Ok(bpm) => {
                jobs.insert(job.name.clone(), bpm);
            }
            Err(failure) => failures.push(failure),
        }
    }
    if failures.is_empty() {
        Ok(jobs)
    } else {
        Err(failures)
    }
}

fn job_bpm(
    resolved: &Resolved,
    group: &ResolvedGroup,
    job: &ResolvedJob,
    erb: &dyn Erb,
) -> Result<JobBpm, Failure> {
    let is_bpm = |template: &&Template| template.destination.rsplit('/').next() == Some("bpm.yml");
    let Some(template) = job.templates.iter().find(is_bpm) else {
        return Err(Failure::Other {
            job: job.name.clone(),
            message: format!("can't find BPM template for job {}", job.name),
        });
    };
    let Some(text) = &template.text else {
        return Err(missing(job, &template.source));
    };
    let templates = [(template.source.as_str(), text.as_str())];
    let dns = dns_tables(resolved);
    let mut instances = Vec::new();
    for instance in &group.instances {
        let context = context(resolved, group, job, instance, None);
        for text in evaluate(job, &context, dns.as_ref(), &templates, erb) {
            let processes = processes(&text?, &job.name).map_err(|message| Failure::Other {
                job: job.name.clone(),
                message,
            })?;
            instances.push(processes);
        }
    }
    let first = instances.first().cloned().unwrap_or_default();
    Ok(JobBpm {
        unsupported_template: instances.iter().any(|processes| *processes != first),
        processes: first,
        instances,
    })
}

/// Reads the text of a `bpm.yml`.
fn processes(text: &str, job: &str) -> Result<Vec<Process>, String> {
    let invalid = |message: String| format!("bpm.yml of job '{job}' is not valid: {message}");
    let value = yaml::read_as_cli(text, 0).map_err(|error| invalid(error.message))?;
    if !value.is_map() && !value.is_null() {
        return Err(invalid("not a hash".to_owned()));
    }
    let mut processes = Vec::new();
    for item in list(&value, "processes").map_err(invalid)? {
        let process = process(item).map_err(invalid)?;
        if process.executable.is_empty() {
            return Err(format!(
                "no executable specified for process {}",
                process.name
            ));
        }
        processes.push(process);
    }
    Ok(processes)
}

fn process(value: &Value) -> Result<Process, String> {
    let hooks = section(value, "hooks")?;
    let limits = section(value, "limits")?;
    let relaxed = section(value, "unsafe")?;
    let name = text(value, "name")?.unwrap_or_default();
    let shutdown_signal = match text(value, "shutdown_signal")?.as_deref() {
        None | Some("") => None,
        Some("TERM") => Some(Signal::Term),
        Some("INT") => Some(Signal::Int),
        Some(other) => {
            return Err(format!(
                "the shutdown_signal '{other}' of process {name} is neither TERM nor INT"
            ));
        }
    };
    let env = section(value, "env")?;
    let env = env.as_map().unwrap_or_default().iter().map(|entry| {
        let key = entry.key.to_s();
        scalar(&entry.value, &key).map(|text| (key, text))
    });
    Ok(Process {
        executable: text(value, "executable")?.unwrap_or_default(),
        args: texts(value, "args")?,
        env: env.collect::<Result<_, _>>()?,
        workdir: text(value, "workdir")?,
        pre_start: text(&hooks, "pre_start")?,
        capabilities: texts(value, "capabilities")?,
        limits: Limits {
            memory: text(&limits, "memory")?,
            open_files: count(&limits, "open_files")?,
            processes: count(&limits, "processes")?,
        },
        ephemeral_disk: given_flag(value, "ephemeral_disk")?,
        persistent_disk: given_flag(value, "persistent_disk")?,
        additional_volumes: volumes(value, "additional_volumes")?,
        relaxed: Relaxed {
            privileged: flag(&relaxed, "privileged")?,
            unrestricted_volumes: volumes(&relaxed, "unrestricted_volumes")?,
            host_pid_namespace: flag(&relaxed, "host_pid_namespace")?,
        },
        shutdown_signal,
        name,
    })
}

fn volumes(value: &Value, key: &str) -> Result<Vec<Volume>, String> {
    let volumes = list(value, key)?.iter().map(|item| {
        Ok(Volume {
            path: text(item, "path")?.unwrap_or_default(),
            writable: flag(item, "writable")?,
            allow_executions: flag(item, "allow_executions")?,
            mount_only: flag(item, "mount_only")?,
        })
    });
    volumes.collect()
}

/// A map, or null if it is absent.
fn section(value: &Value, key: &str) -> Result<Value, String> {
    match value.get(key) {
        Some(found) if found.is_map() => Ok(found.clone()),
        Some(found) if !found.is_null() => Err(format!("'{key}' is not a hash")),
        _ => Ok(Value::null(value.place)),
    }
}

fn list<'v>(value: &'v Value, key: &str) -> Result<&'v [Value], String> {
    match value.get(key) {
        Some(found) if !found.is_null() => found
            .as_list()
            .ok_or_else(|| format!("'{key}' is not an array")),
        _ => Ok(&[]),
    }
}

fn text(value: &Value, key: &str) -> Result<Option<String>, String> {
    let Some(found) = value.get(key).filter(|found| !found.is_null()) else {
        return Ok(None);
    };
    scalar(found, key).map(Some)
}

fn texts(value: &Value, key: &str) -> Result<Vec<String>, String> {
    list(value, key)?
        .iter()
        .map(|item| scalar(item, key))
        .collect()
}

/// The text of a scalar, as Go writes numbers and booleans.
fn scalar(value: &Value, key: &str) -> Result<String, String> {
    match &value.data {
        Data::Float(number) => Ok(number.to_string()),
        Data::List(_) | Data::Map(_) => Err(format!("'{key}' is not a string")),
        _ => Ok(value.to_s()),
    }
}

fn count(value: &Value, key: &str) -> Result<Option<u64>, String> {
    let Some(found) = value.get(key).filter(|found| !found.is_null()) else {
        return Ok(None);
    };
    let number = found.as_i64().and_then(|number| u64::try_from(number).ok());
    number
        .map(Some)
        .ok_or_else(|| format!("'{key}' is not a whole number"))
}

fn flag(value: &Value, key: &str) -> Result<bool, String> {
    Ok(given_flag(value, key)?.unwrap_or(false))
}

fn given_flag(value: &Value, key: &str) -> Result<Option<bool>, String> {
    let Some(found) = value.get(key).filter(|found| !found.is_null()) else {
        return Ok(None);
    };
    let flag = found.as_bool();
    flag.map(Some)
        .ok_or_else(|| format!("'{key}' is not a boolean"))
}

impl JobBpm {
    /// The JSON of the BPM document. What isn't set is left out.
    pub fn to_json(&self) -> Json {
        let processes: Vec<Json> = self.processes.iter().map(Process::to_json).collect();
        json!({"processes": processes, "unsupported_template": self.unsupported_template})
    }
}

impl Process {
    /// The process as in `bpm.yml`. What isn't set is left out.
    pub fn to_json(&self) -> Json {
        let volumes = |volumes: &[Volume]| volumes.iter().map(Volume::to_json).collect::<Json>();
        let signal = self.shutdown_signal.map(|signal| match signal {
            Signal::Term => "TERM",
            Signal::Int => "INT",
        });
        let Self {
            limits, relaxed, ..
        } = self;
        set_only([
            ("name", json!(self.name)),
            ("executable", json!(self.executable)),
            ("args", json!(self.args)),
            (
                "env",
                self.env
                    .iter()
                    .map(|(key, text)| (key.clone(), json!(text)))
                    .collect(),
            ),
            ("workdir", json!(self.workdir)),
            ("hooks", set_only([("pre_start", json!(self.pre_start))])),
            ("capabilities", json!(self.capabilities)),
            (
                "limits",
                set_only([
                    ("memory", json!(limits.memory)),
                    ("open_files", json!(limits.open_files)),
                    ("processes", json!(limits.processes)),
                ]),
            ),
            ("ephemeral_disk", json!(self.ephemeral_disk)),
            ("persistent_disk", json!(self.persistent_disk)),
            ("additional_volumes", volumes(&self.additional_volumes)),
            (
                "unsafe",
                set_only([
                    ("privileged", if_true(relaxed.privileged)),
                    (
                        "unrestricted_volumes",
                        volumes(&relaxed.unrestricted_volumes),
                    ),
                    ("host_pid_namespace", if_true(relaxed.host_pid_namespace)),
                ]),
            ),
            ("shutdown_signal", json!(signal)),
        ])
    }
}

impl Volume {
    fn to_json(&self) -> Json {
        set_only([
            ("path", json!(self.path)),
            ("writable", if_true(self.writable)),
            ("allow_executions", if_true(self.allow_executions)),
            ("mount_only", if_true(self.mount_only)),
        ])
    }
}

fn if_true(flag: bool) -> Json {
    if flag { Json::Bool(true) } else { Json::Null }
}

/// An object of the members that aren't null or empty.
fn set_only<const N: usize>(members: [(&str, Json); N]) -> Json {
    let is_set = |value: &Json| match value {
        Json::Null => false,
        Json::String(text) => !text.is_empty(),
        Json::Array(items) => !items.is_empty(),
        Json::Object(members) => !members.is_empty(),
        Json::Bool(_) | Json::Number(_) => true,
    };
    let members = members.into_iter().filter(|(_, value)| is_set(value));
    let members: Map<String, Json> = members
        .map(|(name, value)| (name.to_owned(), value))
        .collect();
    Json::Object(members)
}
