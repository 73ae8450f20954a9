//! What the documentation shows is true: its configurations load, its command lines parse, its
//! tour runs.
//!
//! In a Markdown file, a block of `jsonc` is a configuration: whole where it begins with a brace,
//! else some top-level keys of one. A block of `yaml` or `hcl` is a whole
//! one. Every line of an `sh` block that starts with `nstance` is a
//! command line. The lines of an `sh run` block are run one after the other, in a folder with a
//! copy of `examples/`; a line that ends with `# exit N` ends with N, every other one with 0. The lines
//! of an `sh run ruby` block need Ruby too; without it they are skipped, except in CI.
#![expect(clippy::unwrap_used, reason = "tests may panic: that is how they fail")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use nstance::check::Purpose;
use nstance::config::load::Loaded;
use nstance::config::variables::Given;
use nstance::load::{load, load_text};
use nstance::report::diagnostic::render;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// All pages, each with its name from the root.
fn pages() -> Vec<(String, String)> {
    let mut paths = vec![root().join("README.md"), root().join("CONTRIBUTING.md")];
    for folder in [root().join("docs"), root().join("examples")] {
        collect(&folder, "md", &mut paths);
    }
    paths.sort();
    let page = |path: PathBuf| {
        let name = path.strip_prefix(root()).unwrap().display().to_string();
        (name, fs::read_to_string(path).unwrap())
    };
    paths.into_iter().map(page).collect()
}

fn collect(folder: &Path, extension: &str, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        // What someone who tried an example has there is no part of it.
        if path.is_dir() && !path.ends_with(".nstance") {
            collect(&path, extension, found);
        } else if path.extension().is_some_and(|found| found == extension) {
            found.push(path);
        }
    }
}

/// The blocks whose opening fence says `wanted`, each with the line it begins on.
fn blocks(text: &str, wanted: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut open: Option<(bool, usize, String)> = None;
    for (index, line) in text.lines().enumerate() {
        match (&mut open, line.strip_prefix("```")) {
            (None, Some(info)) => open = Some((info.trim() == wanted, index + 2, String::new())),
            (Some(_), Some(_)) => {
                if let Some((true, start, block)) = open.take() {
                    found.push((start, block));
                }
            }
            (Some((_, _, block)), None) => {
                block.push_str(line);
                block.push('\n');
            }
            (None, None) => {}
        }
    }
    assert!(open.is_none(), "a block isn't closed");
    found
}

fn faultless(name: &str, loaded: &Loaded) {
    let findings = render(&loaded.findings, &loaded.sources, false);
    assert!(
        loaded.findings.is_empty() && loaded.config.is_some(),
        "{name}:\n{findings}"
    );
}

/// A block as a whole configuration: keys that a part of one leaves out are added.
fn whole(block: &str) -> String {
    if block.trim_start().starts_with('{') {
        return block.to_owned();
    }
    let mut missing = String::new();
    for (key, value) in [
        ("\"cluster\"", r#"{"id": "example"}"#),
        (
            "\"shard\"",
            r#"{"id": "here", "infra": {"provider": "sim", "region": "r", "zone": "z"}}"#,
        ),
    ] {
        let given = block.lines().any(|line| line.starts_with(key));
        if !given {
            missing.push_str(&format!("{key}: {value}, "));
        }
    }
    format!("{{{missing}{block}}}")
}

#[test]
fn configurations_in_the_documentation_load() {
    let mut count = 0;
    for (page, text) in pages() {
        for (line, block) in blocks(&text, "jsonc") {
            let name = format!("{page}:{line}");
            faultless(
                &name,
                &load_text(
                    Purpose::Plan,
                    "nstance.jsonc",
                    &whole(&block),
                    &Given::default(),
                ),
            );
            count += 1;
        }
        for language in ["yaml", "hcl"] {
            for (line, block) in blocks(&text, language) {
                let name = format!("{page}:{line}");
                let file = format!("nstance.{language}");
                faultless(
                    &name,
                    &load_text(Purpose::Plan, &file, &block, &Given::default()),
                );
                count += 1;
            }
        }
    }
    assert!(count >= 8, "only {count} configurations were found");
}

/// The page that lists Sprig's functions, as the engine's own list makes it.
fn sprig_page() -> String {
    use nstance_gotemplate::sprig;

    let mut page = String::from(
        "# Sprig's functions\n\n\
         What templates have beyond Go's own functions where the configuration says \
         `\"functions\": \"sprig\"`; see [Templates](templates.md#functions). `X…` stands for any \
         number of arguments. This page is made from the engine's list \
         (`UPDATE_DOCS=1 cargo test --test docs`).\n",
    );
    let mut group = "";
    for function in sprig::functions() {
        if function.group != group {
            group = function.group;
            let (initial, rest) = group.split_at(1);
            page += &format!("\n## {}{rest}\n\n", initial.to_uppercase());
            page += "| call | gives |\n| --- | --- |\n";
        }
        let call = format!("{} {}", function.name, function.arguments);
        let summary = function.summary.replace('|', "\\|");
        page += &format!("| `{}` | {summary} |\n", call.trim());
    }
    page += "\n## Left out\n\n| name | why |\n| --- | --- |\n";
    for (name, reason) in sprig::left_out() {
        page += &format!("| `{name}` | {reason} |\n");
    }
    page
}

#[test]
fn sprig_functions_are_documented() {
    let file = root().join("docs/sprig.md");
    let page = sprig_page();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&file, &page).unwrap();
    }
    let written = fs::read_to_string(&file).unwrap_or_default();
    assert!(
        written == page,
        "docs/sprig.md isn't what the engine has: UPDATE_DOCS=1 cargo test --test docs writes it"
    );
}

#[test]
fn examples_load() {
    let mut paths = Vec::new();
    for language in ["jsonc", "yaml", "hcl"] {
        collect(&root().join("examples"), language, &mut paths);
    }
    // Beside configurations there is userdata in YAML.
    paths.retain(|path| path.extension().unwrap() != "yaml" || path.ends_with("nstance.yaml"));
    assert!(paths.len() >= 6, "only {paths:?}");
    for path in paths {
        faultless(
            &path.display().to_string(),
            &load(Some(&path), root(), &Given::default()),
        );
    }
}

#[test]
fn command_lines_in_the_documentation_parse() {
    let mut count = 0;
    for (page, text) in pages() {
        let all = ["sh", "sh run", "sh run ruby"].map(|wanted| blocks(&text, wanted));
        for (start, block) in all.concat() {
            for (index, line) in block.lines().enumerate() {
                let command = line.split(" #").next().unwrap_or(line).trim();
                if !command.starts_with("nstance ") {
                    continue;
                }
                let words = command
                    .split_whitespace()
                    .take_while(|word| !matches!(*word, "|" | ">"));
                if let Err(error) = nstance::cli::Cli::read_from(words) {
                    assert!(!error.use_stderr(), "{page}:{}: {error}", start + index);
                }
                count += 1;
            }
        }
    }
    assert!(count >= 30, "only {count} command lines were found");
}

#[test]
fn the_tours_run() {
    let binary = Path::new(env!("CARGO_BIN_EXE_nstance"));
    let path = format!(
        "{}:/usr/local/bin:/usr/bin:/bin",
        binary.parent().unwrap().display()
    );
    let mut count = 0;
    for (page, text) in pages() {
        let mut blocks = [blocks(&text, "sh run"), blocks(&text, "sh run ruby")];
        if !blocks[1].is_empty() && !has_ruby() {
            println!("{page}: skipped what needs Ruby");
            blocks[1].clear();
        }
        let mut blocks = blocks.concat();
        if blocks.is_empty() {
            continue;
        }
        blocks.sort_by_key(|(start, _)| *start);
        let folder = tempfile::tempdir().unwrap();
        copy(&root().join("examples"), &folder.path().join("examples"));
        for (start, block) in blocks {
            for (index, line) in block.lines().enumerate() {
                let output = Command::new("sh")
                    .args(["-c", line])
                    .current_dir(folder.path())
                    .env_clear()
                    .env("PATH", &path)
                    .output()
                    .unwrap();
                let expected = match line.split_once("# exit ") {
                    Some((_, code)) => code.trim().parse().unwrap(),
                    None => 0,
                };
                assert_eq!(
                    output.status.code(),
                    Some(expected),
                    "{page}:{}: {line}\n{}{}",
                    start + index,
                    String::from_utf8_lossy(&output.stdout),
                    String::from_utf8_lossy(&output.stderr)
                );
                count += 1;
            }
        }
    }
    assert!(count >= 10, "only {count} lines were run");
}

/// Whether there is Ruby. In CI there must be.
fn has_ruby() -> bool {
    let found = Command::new("ruby").arg("--version").output().is_ok();
    let in_ci = std::env::var_os("CI").is_some_and(|value| value == "true");
    assert!(found || !in_ci, "Ruby is missing: apt-get install ruby");
    found
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.ends_with(".nstance") {
            continue;
        }
        if path.is_dir() {
            copy(&path, &target);
        } else {
            fs::copy(&path, &target).unwrap();
        }
    }
}
