use std::fs;

use super::*;
use crate::check::Purpose;
use crate::config::files::LARGEST_FILE;
use crate::config::source::SourceId;
use crate::load::{load, load_text};
use crate::report::diagnostic::render;

const GOOD: &str = r#"{"cluster": {"id": "c"},
        "shard": {"id": "s", "infra": {"provider": "sim", "region": "r", "zone": "z"}}}"#;

fn shown(loaded: &Loaded, folder: &Path) -> String {
    render(&loaded.findings, &loaded.sources, false)
        .replace(&folder.display().to_string(), "FOLDER")
}

#[test]
fn the_only_configuration_of_a_folder_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let inner = folder.path().join("inner");
    fs::create_dir(&inner).unwrap();
    fs::write(inner.join("config.jsonc"), GOOD).unwrap();
    for (path, working_dir, name) in [
        (None, &*inner, "config.jsonc"),
        (Some("config.jsonc"), &inner, "config.jsonc"),
        (Some("inner"), folder.path(), "inner/config.jsonc"),
        (
            Some("inner/config.jsonc"),
            folder.path(),
            "inner/config.jsonc",
        ),
    ] {
        let loaded = load(path.map(Path::new), working_dir, &Given::default());
        assert_eq!(shown(&loaded, folder.path()), "", "{path:?}");
        assert!(loaded.config.is_some());
        assert_eq!(loaded.directory, inner);
        assert_eq!(loaded.sources.get(SourceId(0)).name, name);
    }
}

#[test]
fn what_cannot_be_loaded_is_explained() {
    let folder = tempfile::tempdir().unwrap();
    let at = |path: Option<&str>| {
        let loaded = load(path.map(Path::new), folder.path(), &Given::default());
        assert!(loaded.config.is_none());
        shown(&loaded, folder.path())
    };
    insta::assert_snapshot!(at(None), @"
        error: no configuration in FOLDER
        Looked for *.hcl, *.jsonc, nstance*.json, nstance*.yaml, nstance*.yml
        hint: `nstance init` writes one to start from; `--config PATH` names another file or folder
        ");
    insta::assert_snapshot!(at(Some("missing.jsonc")), @"
        error: can't read the configuration missing.jsonc
        No such file
        hint: `nstance init` writes one to start from
        ");
    fs::write(folder.path().join("nstance.hcl"), "x = 1").unwrap();
    fs::write(
        folder.path().join("nstance.jsonc"),
        b"{\n  \"a\": \"\xff\"}",
    )
    .unwrap();
    insta::assert_snapshot!(at(None), @"
        error: the configuration isn't UTF-8: nstance.jsonc
        Byte 10, on line 2, is 0xff, which can't stand there
        hint: save it as UTF-8
        ");
    insta::assert_snapshot!(at(Some("nstance.jsonc")), @"
        error: the configuration isn't UTF-8: nstance.jsonc
        Byte 10, on line 2, is 0xff, which can't stand there
        hint: save it as UTF-8
        ");
    fs::File::create(folder.path().join("huge.jsonc"))
        .unwrap()
        .set_len(LARGEST_FILE + 1)
        .unwrap();
    insta::assert_snapshot!(at(Some("huge.jsonc")), @"
        error: the configuration is too large: huge.jsonc
        It has 16777217 bytes; 16777216 (16 MiB) are the most that is read
        hint: Split it: several files of a folder, or files included, are one configuration
        ");
}

#[cfg(unix)]
#[test]
fn what_never_ends_is_too_large_and_a_pipe_is_read() {
    use std::io::Write as _;
    use std::os::fd::AsRawFd as _;
    use std::os::unix::fs::symlink;

    let folder = tempfile::tempdir().unwrap();
    for name in ["z.jsonc", "z.tfvars"] {
        symlink("/dev/zero", folder.path().join(name)).unwrap();
    }
    fs::write(folder.path().join("good.jsonc"), GOOD).unwrap();
    let says = "It has at least 16777217 bytes; 16777216 (16 MiB) are the most that is read";
    for (path, var_file, finding) in [
        (
            "/dev/zero",
            None,
            "the configuration is too large: /dev/zero",
        ),
        ("z.jsonc", None, "the configuration is too large: z.jsonc"),
        (
            "good.jsonc",
            Some("z.tfvars"),
            "the var-file is too large: z.tfvars",
        ),
    ] {
        let given = Given {
            files: var_file.into_iter().map(Into::into).collect(),
            ..Given::default()
        };
        let loaded = load(Some(Path::new(path)), folder.path(), &given);
        let found = shown(&loaded, folder.path());
        assert!(
            found.starts_with(&format!("error: {finding}\n{says}\n")),
            "{found}"
        );
    }
    let (reader, mut writer) = std::io::pipe().unwrap();
    writer.write_all(GOOD.as_bytes()).unwrap();
    drop(writer);
    let pipe = format!("/dev/fd/{}", reader.as_raw_fd());
    let loaded = load(Some(Path::new(&pipe)), folder.path(), &Given::default());
    assert_eq!(shown(&loaded, folder.path()), "");
    assert!(loaded.config.is_some());
}

#[test]
fn a_configuration_that_is_too_large_is_refused_once() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["b", "c", "d"] {
        fs::write(folder.path().join(format!("{name}.jsonc")), "{}").unwrap();
    }
    let include = r#"{"include": ["[b-d].jsonc"]}"#;
    fs::write(folder.path().join("a.jsonc"), include).unwrap();
    let mut loaded = Loaded::default();
    let mut reading = Reading::new(folder.path());
    reading.room = include.len() + 3;
    reading.file(Path::new("a.jsonc"), &mut loaded);
    assert!(loaded.findings.has_errors());
    insta::assert_snapshot!(shown(&loaded, folder.path()), @"
        error: the configuration is too large
        With c.jsonc its files have more than 64 MiB
        hint: Make it several shards: each has a configuration of its own
        ");
}

/// Loads `a.jsonc` of a folder with these files, and shows what is wrong.
fn of_files(files: &[(&str, &str)]) -> (Loaded, String) {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let loaded = load(Some(Path::new("a.jsonc")), folder.path(), &Given::default());
    let text = shown(&loaded, folder.path());
    (loaded, text)
}

#[test]
fn files_include_one_another() {
    let main = GOOD.replacen('{', r#"{"include": ["parts/*.jsonc", "b.jsonc"],"#, 1);
    let (loaded, findings) = of_files(&[
        ("a.jsonc", &main),
        ("b.jsonc", r#"{"vars": {"B": 1}}"#),
        // The file that both include is read once.
        (
            "parts/one.jsonc",
            r#"{"include": "../b.jsonc", "vars": {"ONE": 1}}"#,
        ),
        ("parts/two.jsonc", r#"{"vars": {"TWO": 2}}"#),
        ("parts/two_override.jsonc", r#"{"vars": {"TWO": 3}}"#),
        ("parts/notes.md", "not a configuration"),
    ]);
    assert_eq!(findings, "");
    let vars = loaded.config.unwrap().vars.unwrap().to_json();
    assert_eq!(vars, serde_json::json!({"ONE": 1, "B": 1, "TWO": 3}));
    let names: Vec<_> = loaded.sources.iter().map(|(_, s)| s.name.clone()).collect();
    assert_eq!(
        names,
        [
            "a.jsonc",
            "parts/one.jsonc",
            "b.jsonc",
            "parts/two.jsonc",
            "parts/two_override.jsonc"
        ]
    );
}

#[test]
fn what_cannot_be_included_is_explained() {
    let (_, findings) = of_files(&[
        (
            "a.jsonc",
            r#"{"include": ["b.jsonc", "c/", "nope.jsonc", "*.yaml", 7]}"#,
        ),
        ("b.jsonc", r#"{"include": "c/c.jsonc"}"#),
        ("c/c.jsonc", r#"{"include": "../a.jsonc"}"#),
    ]);
    insta::assert_snapshot!(findings);
    // What a broken file defines isn't missed elsewhere.
    let (_, findings) = of_files(&[
        (
            "a.jsonc",
            r#"{"include": "b.jsonc", "groups": {"g": {"template": "t"}}}"#,
        ),
        ("b.jsonc", "{"),
    ]);
    assert_eq!(findings.matches("error").count(), 1, "{findings}");
}

#[test]
fn a_folder_is_one_configuration() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    write("nstance.json", GOOD);
    write("override.jsonc", r#"{"cluster": {"id": "d"}}"#);
    write("z.jsonc", r#"{"cluster": {"slug": "z"}}"#);
    write("package.json", "not ours");
    let loaded = load(Some(Path::new(".")), folder.path(), &Given::default());
    assert_eq!(shown(&loaded, folder.path()), "");
    let cluster = loaded.config.unwrap().cluster;
    assert_eq!((&*cluster.id.value, &*cluster.slug), ("d", "z"));
}

#[test]
fn a_file_that_is_not_there_is_no_file_less() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("nstance.jsonc"), GOOD).unwrap();
    std::os::unix::fs::symlink("gone", folder.path().join("groups.jsonc")).unwrap();
    let whole = load(Some(folder.path()), folder.path(), &Given::default());
    insta::assert_snapshot!(shown(&whole, folder.path()), @"
    error: can't read the configuration FOLDER/groups.jsonc
    It is a link to a file that isn't there
    ");
    let including = GOOD.replacen('{', r#"{"include": "*s.jsonc", "#, 1);
    fs::write(folder.path().join("nstance.jsonc"), including).unwrap();
    let including = load(None, folder.path(), &Given::default());
    assert!(including.findings.has_errors());
}

#[test]
fn a_long_chain_of_files_ends() {
    let folder = tempfile::tempdir().unwrap();
    let include = |next: usize| format!(r#"{{"include": "f{next}.jsonc"}}"#);
    for number in 1..300 {
        let file = folder.path().join(format!("f{number}.jsonc"));
        fs::write(file, include(number % 299 + 1)).unwrap();
    }
    fs::write(folder.path().join("nstance.jsonc"), include(1)).unwrap();
    let file = Path::new("nstance.jsonc");
    let loaded = load(Some(file), folder.path(), &Given::default());
    insta::assert_snapshot!(shown(&loaded, folder.path()), @r#"
    error: more than 100 files include one another
      ┌─ f99.jsonc:1:13
    1 │ {"include": "f100.jsonc"}
      │             ^^^^^^^^^^^^ one file more in a row
    hint: Let one file include the others: a list, or a pattern such as `groups/*.jsonc`
    "#);
}

/// What a file says once and uses often is as large as what it would have to say without.
#[test]
fn copies_are_limited_by_what_they_take() {
    let text = "x".repeat(500_000);
    let head = "cluster: {id: c}\nshard: {id: s, infra: {provider: sim, region: r, zone: z}}\n";
    let hcl = "cluster { id = \"c\" }\nshard {\n  id = \"s\"\n  infra {\n    provider = \"sim\"\n    \
               region = \"r\"\n    zone = \"z\"\n  }\n}\n";
    let numbers = vec!["1"; 50_000].join(",");
    for (name, text) in [
        (
            "c.yaml",
            format!("{head}vars:\n  a: &a {text}\n  b: [{}]\n", ["*a"; 300].join(",")),
        ),
        (
            "c.hcl",
            format!(
                "{hcl}locals {{ a = \"{text}\" }}\nvars = {{ b = [{}] }}\n",
                ["local.a"; 300].join(",")
            ),
        ),
        (
            "c.jsonc",
            GOOD.replacen(
                '{',
                &format!(
                    r#"{{"variables": {{"a": {{"default": [{numbers}]}}}}, "vars": {{"b": [{}]}}, "#,
                    [r#""${var.a}""#; 200].join(",")
                ),
                1,
            ),
        ),
    ] {
        let loaded = load_text(Purpose::Plan, name, &text, &Given::default());
        let summaries: Vec<_> = loaded.findings.iter().map(|found| &*found.summary).collect();
        assert_eq!(summaries, ["the configuration's values are too large"], "{name}");
        let fewer = text
            .replace(&["*a"; 300].join(","), "*a, *a")
            .replace(&["local.a"; 300].join(","), "local.a, local.a")
            .replace(&[r#""${var.a}""#; 200].join(","), r#""${var.a}""#);
        let loaded = load_text(Purpose::Plan, name, &fewer, &Given::default());
        assert!(loaded.findings.is_empty() && loaded.config.is_some(), "{name}");
    }
}
