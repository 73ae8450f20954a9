//! Evaluation, on any expression, under tight limits: no panic, the same twice, errors that tell no
//! secret. That it ends soon and with little memory is for `-timeout` and `-rss_limit_mb` to see.

#![no_main]

use libfuzzer_sys::fuzz_target;
use nstance_hcl::{Context, Entries, Error, Evaluator, NoFiles, Value, format, parse_expression};

const SECRET: &str = "q7Zr!unguessable";

fuzz_target!(|text: &str| {
    // Who knows it can write it.
    if text.contains("q7Zr") {
        return;
    }
    let Ok(expression) = parse_expression(text, 0) else {
        return;
    };
    let list = Value::tuple([Value::from(1), Value::from("a"), Value::null()]);
    let scope = Entries::from([
        ("a".into(), Value::from("text é")),
        ("n".into(), Value::from(7)),
        ("l".into(), list.clone()),
        (
            "o".into(),
            Value::object(Entries::from([("a".into(), list)])),
        ),
        ("s".into(), Value::from(SECRET).or_sensitive(true)),
    ]);
    let evaluated = || {
        let mut context = Context::new(&NoFiles);
        context.limits.steps = 20_000;
        context.limits.bytes = 1 << 20;
        Evaluator::new(&scope, &context).evaluate(&expression)
    };
    let first = evaluated();
    if let Err(errors) = &first {
        assert!(!errors.is_empty());
        assert!(
            errors
                .iter()
                .all(|error| told(error).all(|said| !said.contains(SECRET)))
        );
    }
    let shown = first.as_ref().map(format::console);
    // `nonsensitive` is there to show what was hidden.
    assert!(
        text.contains("nonsensitive") || !shown.as_ref().is_ok_and(|shown| shown.contains(SECRET))
    );
    assert_eq!(shown, evaluated().as_ref().map(format::console));
});

fn told(error: &Error) -> impl Iterator<Item = String> {
    let related = error.related.iter().map(|(_, what)| what.clone());
    related.chain([error.to_string()])
}
