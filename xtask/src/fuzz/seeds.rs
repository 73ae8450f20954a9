//! `cargo xtask fuzz-seeds`: what the coverage-guided fuzzers of `crates/gotemplate/fuzz/` and
//! `tests/fuzz/` begin with.
//!
//! In: the corpora, and the configurations of tests and examples. Out: a file for each case and
//! target under the fuzzers' `corpus/`. May not: take away what they have found by themselves.

use std::fs;
use std::path::Path;

use super::{CORPUS, Case, FOUND, MORE_SEEDS};
use crate::{Failure, process};

pub(crate) fn run() -> Result<(), Failure> {
    let root = process::root();
    let mut count = 0;
    for corpus in [CORPUS, FOUND, MORE_SEEDS] {
        let text = fs::read_to_string(root.join(corpus))?;
        for case in text.lines().filter_map(Case::parse) {
            for (target, input) in inputs(&case) {
                let folder = root.join("crates/gotemplate/fuzz/corpus").join(target);
                fs::create_dir_all(&folder)?;
                fs::write(folder.join(format!("seed-{count:05}")), input)?;
            }
            count += 1;
        }
    }
    println!("{count} seeds for each target of templates");
    let target = root.join("tests/fuzz/corpus");
    let mut count = 0;
    for folder in ["tests/good", "tests/bad", "examples"] {
        count += configurations(&root.join(folder), &target)?;
    }
    println!("{count} seeds for the targets of configurations");
    Ok(())
}

/// Copies the configurations of a folder and those within, each to its language.
fn configurations(folder: &Path, target: &Path) -> Result<u32, Failure> {
    let mut count = 0;
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            count += configurations(&path, target)?;
            continue;
        }
        let language = match path.extension().and_then(|extension| extension.to_str()) {
            Some("jsonc" | "json") => "jsonc",
            Some("yaml" | "yml") => "yaml",
            Some("hcl") => "hcl",
            _ => continue,
        };
        fs::create_dir_all(target.join(language))?;
        let name = path.display().to_string().replace(['/', '.'], "-");
        fs::copy(&path, target.join(language).join(name))?;
        count += 1;
    }
    Ok(count)
}

/// A case as each target takes it.
fn inputs(case: &Case) -> [(&'static str, String); 3] {
    let Case { template, data, .. } = case;
    [
        // Go's delimiters: any number beyond the targets' own.
        ("lex", format!("\x0f{template}")),
        ("parse", template.clone()),
        ("execute", format!("\0{template}\0{data}")),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_follow_the_template() {
        let line = r#"{"template": "{{.}}", "data": [1], "options": ""}"#;
        let inputs = inputs(&Case::parse(line).unwrap());
        assert_eq!(
            inputs.map(|(_, input)| input),
            ["\x0f{{.}}", "{{.}}", "\0{{.}}\0[1]"]
        );
    }
}
