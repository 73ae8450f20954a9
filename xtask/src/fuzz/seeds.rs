//! `cargo xtask fuzz-seeds`: what the coverage-guided fuzzers of `gotemplate/fuzz/` begin with.
//!
//! In: the corpora. Out: a file for each case and target under `gotemplate/fuzz/corpus/`. May not:
//! take away what the fuzzers have found by themselves.

use std::fs;

use super::{CORPUS, Case, FOUND, MORE_SEEDS};
use crate::{Failure, process};

pub(crate) fn run() -> Result<(), Failure> {
    let root = process::root();
    let mut count = 0;
    for corpus in [CORPUS, FOUND, MORE_SEEDS] {
        let text = fs::read_to_string(root.join(corpus))?;
        for case in text.lines().filter_map(Case::parse) {
            for (target, input) in inputs(&case) {
                let folder = root.join("gotemplate/fuzz/corpus").join(target);
                fs::create_dir_all(&folder)?;
                fs::write(folder.join(format!("seed-{count:05}")), input)?;
            }
            count += 1;
        }
    }
    println!("{count} seeds for each target");
    Ok(())
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
