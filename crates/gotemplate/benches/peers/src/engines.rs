//! The engines, each with a template parsed and its data in the engine's own values.

use std::collections::HashMap;
use std::hint::black_box;

use nstance_gotemplate::{Environment, Map, Struct, StructType, Template, Value};
use serde_json::Value as Json;

use crate::Failure;

/// An engine that does its tasks as many times as it is told.
pub struct Engine {
    pub name: &'static str,
    pub parse: Box<dyn Fn(u32)>,
    pub render: Box<dyn Fn(u32)>,
    pub output: String,
}

impl Engine {
    fn new<P: 'static>(
        name: &'static str,
        parse: impl Fn() -> Result<P, Failure> + 'static,
        render: impl Fn() -> Result<String, Failure> + 'static,
    ) -> Result<Self, Failure> {
        parse()?;
        Ok(Self {
            name,
            output: render()?,
            parse: repeated(parse),
            render: repeated(render),
        })
    }
}

/// A task that succeeded once, to be repeated. Dropping what it makes counts.
fn repeated<T>(task: impl Fn() -> Result<T, Failure> + 'static) -> Box<dyn Fn(u32)> {
    Box::new(move |calls| {
        for _ in 0..calls {
            drop(black_box(task()));
        }
    })
}

pub fn all(text: &str, data: &Json) -> Result<Vec<Engine>, Failure> {
    Ok(vec![
        ours(text, data)?,
        gotmpl(text, data)?,
        gtmpl_ng(text, data)?,
        gtmpl(text, data)?,
    ])
}

fn ours(text: &str, data: &Json) -> Result<Engine, Failure> {
    let environment = Environment::new();
    let template = Template::parse("t", text, &environment)?;
    let data = if data.get("Instance").is_some() {
        as_servers_data(data)
    } else {
        data.clone().into()
    };
    let text = text.to_owned();
    Engine::new(
        "this crate",
        move || Ok(Template::parse("t", black_box(&text), &environment)?),
        // The others make strings, too.
        move || {
            Ok(String::from_utf8(
                template.render(black_box(&data))?.output,
            )?)
        },
    )
}

/// Userdata's data as Nstance's server passes them: structs, and maps of strings.
fn as_servers_data(data: &Json) -> Value {
    let structure = |name: &str, fields: Vec<(&String, Value)>| {
        let (names, values): (Vec<_>, Vec<_>) = fields.into_iter().unzip();
        Value::from(Struct::new(StructType::new(name, names), values))
    };
    let parts = data.as_object().into_iter().flatten();
    let parts = parts.map(|(name, part)| {
        let fields = part.as_object().into_iter().flatten();
        let fields = fields.map(|(field, value)| (field, Value::from(value.clone())));
        let part = match name.as_str() {
            "Vars" | "Image" => {
                let entries = fields.map(|(key, value)| (key.as_str(), value));
                entries.collect::<Map>().string_typed().into()
            }
            name => structure(name, fields.collect()),
        };
        (name, part)
    });
    structure("Data", parts.collect())
}

fn gotmpl(text: &str, data: &Json) -> Result<Engine, Failure> {
    let template = gotmpl::Template::new("t").parse(text)?;
    let data = gotmpl::to_value(data)?;
    let text = text.to_owned();
    Engine::new(
        "`gotmpl` 0.6.1",
        move || Ok(gotmpl::Template::new("t").parse(black_box(&text))?),
        move || Ok(template.execute_to_string(black_box(&data))?),
    )
}

fn gtmpl_ng(text: &str, data: &Json) -> Result<Engine, Failure> {
    use gtmpl_ng::{Context, Template, Value};

    fn value(json: &Json) -> Value {
        match json {
            Json::Null => Value::Nil,
            Json::Bool(value) => Value::from(*value),
            Json::Number(number) => Value::from(number.as_f64().unwrap_or_default()),
            Json::String(text) => Value::from(text.as_str()),
            Json::Array(items) => Value::Array(items.iter().map(value).collect()),
            Json::Object(fields) => Value::Object(values(fields, value)),
        }
    }

    let parse = |text: &str| -> Result<Template, Failure> {
        let mut template = Template::default();
        template.parse(text)?;
        Ok(template)
    };
    let template = parse(text)?;
    let context = Context::from(value(data));
    let text = text.to_owned();
    Engine::new(
        "`gtmpl-ng` 1.0.0",
        move || parse(black_box(&text)),
        move || Ok(template.render(black_box(&context))?),
    )
}

fn gtmpl(text: &str, data: &Json) -> Result<Engine, Failure> {
    use gtmpl::{Context, Template};
    use gtmpl_value::Value;

    fn value(json: &Json) -> Value {
        match json {
            Json::Null => Value::Nil,
            Json::Bool(value) => Value::from(*value),
            Json::Number(number) => Value::from(number.as_f64().unwrap_or_default()),
            Json::String(text) => Value::from(text.as_str()),
            Json::Array(items) => Value::Array(items.iter().map(value).collect()),
            Json::Object(fields) => Value::Object(values(fields, value)),
        }
    }

    let parse = |text: &str| -> Result<Template, Failure> {
        let mut template = Template::default();
        template.parse(text)?;
        Ok(template)
    };
    let template = parse(text)?;
    let context = Context::from(value(data));
    let text = text.to_owned();
    Engine::new(
        "`gtmpl` 0.7.1",
        move || parse(black_box(&text)),
        move || Ok(template.render(black_box(&context))?),
    )
}

fn values<V>(
    fields: &serde_json::Map<String, Json>,
    value: impl Fn(&Json) -> V,
) -> HashMap<String, V> {
    let fields = fields.iter();
    fields
        .map(|(key, field)| (key.clone(), value(field)))
        .collect()
}
