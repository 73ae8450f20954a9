//! Writes the processes of a job's BPM as systemd units.
//!
//! In: a job's name and its processes. Out: a [`Unit`] for each process. Must not: know instances.
//!
//! A process sees the whole file system, where BPM shows it a container. It can write to the same
//! folders as in BPM.

use std::fmt::Write as _;

use nstance_bosh::bpm::{Process, Signal, Volume};

/// A systemd unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Unit {
    /// Its name, with `.service`.
    pub name: String,
    /// The content of its file.
    pub text: String,
    /// What has no equal in systemd, as fragments.
    pub ignored: Vec<String>,
}

/// The units of a job's processes, in their order.
pub(super) fn units(job: &str, processes: &[Process]) -> Vec<Unit> {
    processes.iter().map(|process| unit(job, process)).collect()
}

fn unit(job: &str, process: &Process) -> Unit {
    let is_root = process.relaxed.privileged;
    let folders = Folders::of(job, process);
    let mut ignored = Vec::new();
    let mut text = format!(
        "[Unit]\nDescription=Process {} of BOSH job {}\nWants=network-online.target\n\
         After=network-online.target\n\n[Service]\n",
        specifier_free(&process.name),
        specifier_free(job),
    );
    let mut line = |key: &str, value: String| {
        // A string takes every write.
        let _ = writeln!(text, "{key}={value}");
    };
    if !is_root {
        line("User", "vcap".to_owned());
        line("Group", "vcap".to_owned());
    }
    let workdir = process.workdir.clone();
    let workdir = workdir.unwrap_or_else(|| format!("/var/vcap/jobs/{job}"));
    // Hooks may make it, so a missing one isn't fatal.
    line("WorkingDirectory", format!("-{}", specifier_free(&workdir)));
    let defaults = [
        ("HOME", folders.data.clone()),
        ("LANG", "en_US.UTF-8".to_owned()),
        ("TMPDIR", folders.temporary.clone()),
    ];
    let defaults = defaults
        .into_iter()
        .filter(|(key, _)| !process.env.contains_key(*key));
    let own = process.env.iter();
    let own = own.map(|(key, value)| (key.as_str(), value.clone()));
    for (key, value) in defaults.chain(own) {
        line("Environment", quoted(&format!("{key}={value}")));
    }
    let created: Vec<String> = folders.created.iter().map(|path| quoted(path)).collect();
    let owner = if is_root { "root" } else { "vcap" };
    // `+` runs it as root, as BPM runs what comes before a process.
    line(
        "ExecStartPre",
        format!(
            "+/usr/bin/install -d -o {owner} -g {owner} {}",
            created.join(" ")
        ),
    );
    if let Some(hook) = &process.pre_start {
        line("ExecStartPre", format!("+{}", quoted(hook)));
    }
    let words = [&process.executable].into_iter().chain(&process.args);
    let words: Vec<String> = words.map(|word| quoted(word).replace('$', "$$")).collect();
    line("ExecStart", words.join(" "));
    line("Restart", "always".to_owned());
    line("RestartSec", "5".to_owned());
    if process.shutdown_signal == Some(Signal::Int) {
        line("KillSignal", "SIGINT".to_owned());
    }
    if let Some(most) = process.limits.open_files {
        line("LimitNOFILE", most.to_string());
    }
    if let Some(memory) = &process.limits.memory {
        match bytes(memory) {
            Some(bytes) => line("MemoryMax", bytes.to_string()),
            None => ignored.push(format!("`limits.memory` of process `{}`", process.name)),
        }
    }
    if let Some(most) = process.limits.processes {
        line("TasksMax", most.to_string());
    }
    if !is_root {
        let names = process.capabilities.iter().map(|name| {
            let name = name.to_ascii_uppercase();
            format!("CAP_{}", name.strip_prefix("CAP_").unwrap_or(&name))
        });
        let names = names.collect::<Vec<_>>().join(" ");
        if !names.is_empty() {
            line("AmbientCapabilities", names.clone());
        }
        line("CapabilityBoundingSet", names);
        line("NoNewPrivileges", "true".to_owned());
        line("ProtectSystem", "strict".to_owned());
        for (key, paths) in [
            ("ReadWritePaths", &folders.writable),
            ("ReadOnlyPaths", &folders.read_only),
            ("NoExecPaths", &folders.without_programs),
        ] {
            if !paths.is_empty() {
                let paths: Vec<String> = paths.iter().map(|path| quoted(path)).collect();
                line(key, paths.join(" "));
            }
        }
    }
    text.push_str("\n[Install]\nWantedBy=multi-user.target\n");
    Unit {
        name: name(job, &process.name),
        text,
        ignored,
    }
}

/// The folders of a process.
struct Folders {
    data: String,
    temporary: String,
    /// Those that are created before it starts.
    created: Vec<String>,
    writable: Vec<String>,
    read_only: Vec<String>,
    /// Those whose programs it can't run.
    without_programs: Vec<String>,
}

impl Folders {
    fn of(job: &str, process: &Process) -> Self {
        let data = format!("/var/vcap/data/{job}");
        let temporary = format!("{data}/tmp");
        let store = format!("/var/vcap/store/{job}");
        let mut created = vec![
            format!("/var/vcap/sys/log/{job}"),
            format!("/var/vcap/sys/run/{job}"),
        ];
        let mut writable = created.clone();
        created.extend([data.clone(), temporary.clone()]);
        writable.push(if process.ephemeral_disk == Some(true) {
            data.clone()
        } else {
            temporary.clone()
        });
        if process.persistent_disk == Some(true) {
            created.push(store.clone());
            writable.push(store);
        }
        let mut folders = Self {
            data,
            temporary,
            created,
            writable,
            read_only: Vec::new(),
            without_programs: Vec::new(),
        };
        for volume in &process.additional_volumes {
            folders.add(volume, !volume.mount_only);
        }
        for volume in &process.relaxed.unrestricted_volumes {
            folders.add(volume, false);
        }
        folders
    }

    fn add(&mut self, volume: &Volume, is_created: bool) {
        let path = || volume.path.clone();
        if is_created {
            self.created.push(path());
        }
        if volume.writable {
            self.writable.push(path());
        } else {
            self.read_only.push(path());
        }
        if !volume.allow_executions {
            self.without_programs.push(path());
        }
    }
}

/// `JOB-PROCESS.service`, or `JOB.service` if both have one name.
fn name(job: &str, process: &str) -> String {
    let name = if process.is_empty() || process == job {
        job.to_owned()
    } else {
        format!("{job}-{process}")
    };
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, ':' | '-' | '_' | '.');
    let plain = name.replace(|c| !is_plain(c), "-");
    format!("{plain}.service")
}

/// A word by systemd's rules. `$` is for the caller: only some settings expand it.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-=:,+@%$".contains(c);
    let text = specifier_free(word);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text;
    }
    let mut quoted = String::from("\"");
    for character in text.chars() {
        match character {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            '\r' => quoted.push_str("\\r"),
            _ => quoted.push(character),
        }
    }
    quoted.push('"');
    quoted
}

/// A text without specifiers such as `%n`.
fn specifier_free(text: &str) -> String {
    text.replace('%', "%%")
}

/// The bytes of BPM's `512M`, `1.5GB`, `1GiB`.
fn bytes(text: &str) -> Option<u64> {
    let text = text.trim().to_ascii_uppercase();
    let digits = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let number: f64 = number.parse().ok()?;
    let power = match unit.trim_end_matches("IB").trim_end_matches('B') {
        "" if unit == "B" => 0,
        "K" => 1,
        "M" => 2,
        "G" => 3,
        "T" => 4,
        _ => return None,
    };
    let bytes = number * 1024_f64.powi(power);
    (bytes >= 1.0).then_some(bytes as u64)
}

#[cfg(test)]
mod tests {
    use nstance_bosh::bpm::{Limits, Relaxed};

    use super::*;

    fn process() -> Process {
        Process {
            name: "server".to_owned(),
            executable: "/var/vcap/packages/nats/bin/nats".to_owned(),
            ..Process::default()
        }
    }

    fn text(process: &Process) -> String {
        unit("nats", process).text
    }

    /// The values of a setting.
    fn values(text: &str, key: &str) -> Vec<String> {
        let lines = text.lines();
        let values = lines.filter_map(|line| line.strip_prefix(key)?.strip_prefix('='));
        values.map(str::to_owned).collect()
    }

    #[test]
    fn a_unit_has_what_bpm_gives_every_process() {
        insta::assert_snapshot!(text(&process()), @r#"
        [Unit]
        Description=Process server of BOSH job nats
        Wants=network-online.target
        After=network-online.target

        [Service]
        User=vcap
        Group=vcap
        WorkingDirectory=-/var/vcap/jobs/nats
        Environment=HOME=/var/vcap/data/nats
        Environment=LANG=en_US.UTF-8
        Environment=TMPDIR=/var/vcap/data/nats/tmp
        ExecStartPre=+/usr/bin/install -d -o vcap -g vcap /var/vcap/sys/log/nats /var/vcap/sys/run/nats /var/vcap/data/nats /var/vcap/data/nats/tmp
        ExecStart=/var/vcap/packages/nats/bin/nats
        Restart=always
        RestartSec=5
        CapabilityBoundingSet=
        NoNewPrivileges=true
        ProtectSystem=strict
        ReadWritePaths=/var/vcap/sys/log/nats /var/vcap/sys/run/nats /var/vcap/data/nats/tmp

        [Install]
        WantedBy=multi-user.target
        "#);
    }

    #[test]
    fn units_are_named_after_job_and_process() {
        for (process, expected) in [
            ("nats", "nats.service"),
            ("", "nats.service"),
            ("tls proxy", "nats-tls-proxy.service"),
            ("a/../b", "nats-a-..-b.service"),
        ] {
            assert_eq!(name("nats", process), expected);
        }
    }

    #[test]
    fn words_are_quoted_by_systemds_rules() {
        for (word, expected) in [
            ("-c", "-c"),
            ("", "\"\""),
            ("a b", "\"a b\""),
            ("say \"hi\"", "\"say \\\"hi\\\"\""),
            ("a\\b", "\"a\\\\b\""),
            ("a\nb\tc", "\"a\\nb\\tc\""),
            ("100%", "100%%"),
            ("$HOME", "$$HOME"),
            (";", "\";\""),
            ("it's", "\"it's\""),
            ("é", "\"é\""),
        ] {
            let args = vec![word.to_owned()];
            let text = text(&Process { args, ..process() });
            let expected = format!("/var/vcap/packages/nats/bin/nats {expected}");
            assert_eq!(values(&text, "ExecStart"), [expected]);
        }
    }

    #[test]
    fn settings_have_their_equals() {
        let volume = |path: &str, writable, allow_executions, mount_only| Volume {
            path: path.to_owned(),
            writable,
            allow_executions,
            mount_only,
        };
        let text = text(&Process {
            env: [("HOME", "/h"), ("A", "1 $2 %3")]
                .map(|(key, value)| (key.to_owned(), value.to_owned()))
                .into(),
            workdir: Some("/w".to_owned()),
            pre_start: Some("/var/vcap/jobs/nats/bin/pre".to_owned()),
            capabilities: vec!["net_bind_service".to_owned(), "CAP_SYS_TIME".to_owned()],
            limits: Limits {
                memory: Some("1.5G".to_owned()),
                open_files: Some(1000),
                processes: Some(50),
            },
            ephemeral_disk: Some(true),
            persistent_disk: Some(true),
            additional_volumes: vec![
                volume("/var/vcap/data/shared", true, true, false),
                volume("/var/vcap/data/mount", false, false, true),
            ],
            relaxed: Relaxed {
                unrestricted_volumes: vec![volume("/etc/x y", true, false, false)],
                host_pid_namespace: true,
                privileged: false,
            },
            shutdown_signal: Some(Signal::Int),
            ..process()
        });
        let folders = "/var/vcap/sys/log/nats /var/vcap/sys/run/nats";
        for (key, expected) in [
            (
                "Environment",
                vec![
                    "LANG=en_US.UTF-8",
                    "TMPDIR=/var/vcap/data/nats/tmp",
                    "HOME=/h",
                    "\"A=1 $2 %%3\"",
                ],
            ),
            ("WorkingDirectory", vec!["-/w"]),
            (
                "ExecStartPre",
                vec![
                    &*format!(
                        "+/usr/bin/install -d -o vcap -g vcap {folders} /var/vcap/data/nats \
                         /var/vcap/data/nats/tmp /var/vcap/store/nats /var/vcap/data/shared"
                    ),
                    "+/var/vcap/jobs/nats/bin/pre",
                ],
            ),
            (
                "AmbientCapabilities",
                vec!["CAP_NET_BIND_SERVICE CAP_SYS_TIME"],
            ),
            (
                "CapabilityBoundingSet",
                vec!["CAP_NET_BIND_SERVICE CAP_SYS_TIME"],
            ),
            ("MemoryMax", vec!["1610612736"]),
            ("LimitNOFILE", vec!["1000"]),
            ("TasksMax", vec!["50"]),
            ("KillSignal", vec!["SIGINT"]),
            (
                "ReadWritePaths",
                vec![&*format!(
                    "{folders} /var/vcap/data/nats /var/vcap/store/nats /var/vcap/data/shared \
                     \"/etc/x y\""
                )],
            ),
            ("ReadOnlyPaths", vec!["/var/vcap/data/mount"]),
            ("NoExecPaths", vec!["/var/vcap/data/mount \"/etc/x y\""]),
        ] {
            assert_eq!(values(&text, key), expected, "{key}");
        }
    }

    #[test]
    fn a_privileged_process_is_root() {
        let relaxed = Relaxed {
            privileged: true,
            ..Relaxed::default()
        };
        let text = text(&Process {
            relaxed,
            ..process()
        });
        for key in ["User", "CapabilityBoundingSet", "ProtectSystem"] {
            assert!(values(&text, key).is_empty(), "{key}");
        }
        assert!(text.contains("-o root -g root"), "{text}");
    }

    #[test]
    fn memory_is_read_as_bpm_reads_it() {
        for (text, expected) in [
            ("1G", Some(1 << 30)),
            ("512M", Some(512 << 20)),
            ("1.5gb", Some(3 << 29)),
            ("2GiB", Some(2 << 30)),
            ("10KB", Some(10 << 10)),
            ("1T", Some(1 << 40)),
            ("100B", Some(100)),
            ("100", None),
            ("0G", None),
            ("many", None),
        ] {
            assert_eq!(bytes(text), expected, "{text}");
        }
        let limits = Limits {
            memory: Some("lots".to_owned()),
            ..Limits::default()
        };
        let unit = unit(
            "nats",
            &Process {
                limits,
                ..process()
            },
        );
        assert_eq!(unit.ignored, ["`limits.memory` of process `server`"]);
        assert!(values(&unit.text, "MemoryMax").is_empty());
    }
}
