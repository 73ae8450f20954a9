//! Renders a template file with data from a JSON file, to standard output:
//!
//! ```text
//! cargo run --example render_file -- benches/templates/control_flow.{tmpl,json}
//! ```

use std::error::Error;
use std::io::Write;

use nstance_gotemplate::{Environment, Template, Value};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(template), Some(data)) = (arguments.next(), arguments.next()) else {
        return Err("usage: render_file TEMPLATE DATA".into());
    };
    let text = std::fs::read_to_string(&template)?;
    let json: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(data)?)?;

    // An error says where: `control_flow.tmpl:3:9: …`.
    let template = Template::parse(&template, &text, &Environment::new())?;
    let rendered = template.render(&Value::from(json))?;
    std::io::stdout().write_all(&rendered.output)?;
    Ok(())
}
