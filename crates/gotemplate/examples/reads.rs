//! What a template reads, before it is executed; and data that isn't known yet.

use std::error::Error;
use std::io::Write;

use nstance_gotemplate::{Environment, Map, Template, Value};

const TEXT: &str = "\
host: {{.Name}}
{{- with .Vars}}
proxy: {{.PROXY}}
{{- end}}
address: {{.Address}}
";

fn main() -> Result<(), Box<dyn Error>> {
    let template = Template::parse("host", TEXT, &Environment::new())?;
    let mut out = std::io::stdout();
    for read in &template.reads().paths {
        writeln!(out, "reads {} at byte {}", read.path, read.offset)?;
    }

    let vars: Map = [("REGION", "eu-west-1")].into_iter().collect();
    let data: Map = [
        ("Name", Value::from("worker-1")),
        // A key that this map doesn't have is the empty string, and reported.
        ("Vars", vars.lenient().into()),
        ("Address", Value::unknown("known once the host is there")),
    ]
    .into_iter()
    .collect();
    let rendered = template.render(&data.into())?;
    for unset in &rendered.report.unset {
        writeln!(out, "{} isn't set", unset.path)?;
    }
    for unknown in &rendered.report.unknown {
        writeln!(out, "{} isn't known yet", unknown.path)?;
    }
    writeln!(out, "the output is known: {}", rendered.is_known())?;
    Ok(())
}
