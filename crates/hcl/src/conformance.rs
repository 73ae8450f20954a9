//! Cases with Terraform's own answers: reading them, and saying whether this crate answers the same.
//!
//! In: one line of the corpus, a JSON object, and the files that its expression may read. Out: an
//! [`Outcome`]. Of an error only that it is one counts, not its words.

use std::io;
use std::path::PathBuf;

use serde_json::Value as Json;

use crate::{Context, Entries, Error, Evaluator, Files, Folder, Value, format, parse_expression};

/// How a case went.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The case's name.
    pub id: String,
    /// What it is about.
    pub area: String,
    /// None where the answer is Terraform's; else what was expected and what came.
    pub failure: Option<String>,
}

/// Runs the case on one line of the corpus; `folder` is what Terraform stood in. A line that isn't a
/// case is a failure.
pub fn run_case(line: &str, folder: PathBuf) -> Outcome {
    let case: Json = serde_json::from_str(line).unwrap_or_default();
    let text = |name: &str| case[name].as_str();
    let expect = &case["expect"];
    let (Some(id), Some(expression), Some(ok)) =
        (text("id"), text("expression"), expect["ok"].as_bool())
    else {
        return Outcome {
            id: "?".to_owned(),
            area: "?".to_owned(),
            failure: Some("not a case".to_owned()),
        };
    };
    let answer = answer(expression, folder);
    let same = match (&answer, ok) {
        (Ok(output), true) => Some(output.as_str()) == expect["output"].as_str(),
        (answer, ok) => answer.is_ok() == ok,
    };
    let wanted = if ok { "output" } else { "error" };
    let failure = || {
        format!(
            "{expression:?}: Terraform: {}; here: {answer:?}",
            expect[wanted]
        )
    };
    Outcome {
        id: id.to_owned(),
        area: text("area").unwrap_or_default().to_owned(),
        failure: (!same).then(failure),
    }
}

/// What the console says, or what is wrong.
fn answer(expression: &str, folder: PathBuf) -> Result<String, String> {
    let files = Home(Folder(folder));
    let context = Context::new(&files);
    let object = |pairs: &[(&str, &str)]| {
        let pairs = pairs.iter();
        Value::object(
            pairs
                .map(|(name, text)| ((*name).into(), Value::from(*text)))
                .collect(),
        )
    };
    let base = files.base().to_string_lossy().into_owned();
    let path = object(&[("cwd", &base), ("module", "."), ("root", ".")]);
    let scope = Entries::from([
        ("path".into(), path),
        ("terraform".into(), object(&[("workspace", "default")])),
    ]);
    let said = |errors: Vec<Error>| {
        let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
        errors.join("; ")
    };
    let parsed = parse_expression(expression, 0).map_err(|error| error.to_string())?;
    let value = Evaluator::new(&scope, &context).evaluate(&parsed);
    Ok(format::console(&value.map_err(said)?))
}

/// A folder, and the home of those who asked Terraform.
struct Home(Folder);

impl Files for Home {
    fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        self.0.read(path)
    }

    fn exists(&self, path: &str) -> io::Result<bool> {
        self.0.exists(path)
    }

    fn base(&self) -> PathBuf {
        self.0.base()
    }

    fn list(&self, folder: &str) -> io::Result<Vec<String>> {
        self.0.list(folder)
    }

    fn home(&self) -> Option<PathBuf> {
        Some("/home/nstance".into())
    }
}
