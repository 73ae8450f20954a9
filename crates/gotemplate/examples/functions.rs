//! Functions of one's own: how many arguments they take is checked before they are called, of which
//! types while the template is executed.

use std::error::Error;
use std::io::Write;
use std::sync::Arc;

use nstance_gotemplate::{Environment, Function, FunctionError, Kind, Map, Template, Value};

/// `repeat COUNT TEXT`: the text comes last, so that it can be piped.
fn repeat() -> Function {
    let body = |arguments: &[Value]| match arguments {
        [Value::Int(count), text] => {
            let count = usize::try_from(*count)
                .map_err(|_| FunctionError::new(format!("can't repeat {count} times")))?;
            let text = text.as_bytes().unwrap_or_default();
            Ok(Value::Str(text.repeat(count).into()))
        }
        _ => Err(FunctionError::new("takes a number and a text")),
    };
    Function::typed(&[Kind::Int, Kind::Str], None, Arc::new(body))
}

fn main() -> Result<(), Box<dyn Error>> {
    let environment = Environment::new().with_function("repeat", repeat());
    let data = Value::from(Map::from_iter([("Name", "chorus"), ("Line", "la ")]));
    let mut out = std::io::stdout();

    let template = Template::parse("song", "{{.Line | repeat 3}}\n", &environment)?;
    out.write_all(&template.render(&data)?.output)?;

    let typo = Template::parse("song", "{{.Line | repaet 3}}", &environment);
    if let Err(error) = typo {
        writeln!(out, "{error}")?;
    }
    let wrong = Template::parse("song", "{{.Line | repeat -1}}", &environment)?;
    if let Err(error) = wrong.render(&data) {
        writeln!(out, "{error}")?;
    }
    Ok(())
}
