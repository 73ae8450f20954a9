//! What holds for any layers.
#![allow(clippy::unwrap_used, missing_docs)]

use nstance_cloudinit::layers::{Layer, LayerPart, Mode, join, merge_natively};
use nstance_cloudinit::mime_write::{Outgoing, write};
use nstance_cloudinit::userdata::{Machine, explode, process};
use nstance_cloudinit::value::{Data, Map, Value};
use nstance_cloudinit::yaml::{emit, load};
use proptest::prelude::*;
use serde_json::{Value as Json, json};

fn of_json(json: &Json) -> Value {
    load(&json.to_string(), 0).unwrap()
}

fn shown(value: &Value) -> String {
    emit(value, 1 << 24).unwrap()
}

fn scalars() -> impl Strategy<Value = Json> {
    prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::from),
        (-2_i64..3).prop_map(Json::from),
        proptest::sample::select(&["a", "b", "1", "yes", "0644", "two\nlines\n", " x", "é"][..])
            .prop_map(Json::from),
    ]
}

fn keys() -> impl Strategy<Value = String> {
    proptest::sample::select(&["a", "b", "c", "name", "path"][..]).prop_map(ToOwned::to_owned)
}

fn maps(lists: bool) -> impl Strategy<Value = Json> {
    let values = scalars().prop_recursive(4, 24, 4, move |inner| {
        let maps = proptest::collection::btree_map(keys(), inner.clone(), 0..4)
            .prop_map(|map| Json::Object(map.into_iter().collect()));
        let list = proptest::collection::vec(inner, 0..4).prop_map(Json::from);
        if lists {
            prop_oneof![maps, list].boxed()
        } else {
            maps.boxed()
        }
    });
    proptest::collection::btree_map(keys(), values, 0..4)
        .prop_map(|map| Json::Object(map.into_iter().collect()))
}

/// Users and files, each name and each path once.
fn with_named() -> impl Strategy<Value = Json> {
    let user = (
        proptest::option::of(scalars()),
        proptest::option::of(maps(true)),
    );
    let users =
        proptest::collection::btree_map(proptest::sample::select(&["u", "v", "w"][..]), user, 0..3);
    let files = proptest::collection::btree_map(
        proptest::sample::select(&["/f", "/g"][..]),
        (any::<bool>(), any::<bool>(), any::<bool>()),
        0..3,
    );
    (maps(true), users, files).prop_map(|(mut map, users, files)| {
        let users = users.into_iter().map(|(name, (shell, more))| {
            let mut user = json!({"name": name});
            if let Some(shell) = shell {
                user["shell"] = shell;
            }
            if let Some(more) = more {
                user["more"] = more;
            }
            user
        });
        map["users"] = users.collect();
        let files = files.into_iter().map(|(path, (content, encoding, owner))| {
            let mut file = json!({"path": path});
            if content {
                file["content"] = format!("{encoding} {owner}").into();
            }
            if encoding {
                file["encoding"] = "b64".into();
            }
            if owner {
                file["owner"] = "root".into();
            }
            file
        });
        map["write_files"] = files.collect();
        map
    })
}

/// The planner's deep merge, as slow and plain as can be.
fn deep(base: &Json, new: &Json) -> Json {
    let (Json::Object(base), Json::Object(new)) = (base, new) else {
        return new.clone();
    };
    let mut merged = base.clone();
    for (key, value) in new {
        let value = merged
            .get(key)
            .map_or_else(|| value.clone(), |old| deep(old, value));
        merged.insert(key.clone(), value);
    }
    Json::Object(merged)
}

fn merged(base: &Value, new: &Value) -> Value {
    merge_natively(base, new).unwrap()
}

/// A cloud-config with mergers, good and bad ones.
fn config() -> impl Strategy<Value = String> {
    let mergers = prop_oneof![
        3 => Just(""),
        1 => Just("list(append)+dict(recurse_list)+str()"),
        1 => Just("dict(recurse_str,recurse_list)+str(append)+list(prepend)"),
        1 => Just("dict(allow_delete)+list(replace,recurse_dict)"),
        1 => Just("dict(no_replace)"),
        1 => Just("list(append)"),
        1 => Just("lists()"),
    ];
    (mergers, maps(true)).prop_map(|(mergers, map)| {
        let how = if mergers.is_empty() {
            String::new()
        } else {
            format!("merge_how: {mergers}\n")
        };
        let body = if map.as_object().unwrap().is_empty() {
            String::new()
        } else {
            shown(&of_json(&map))
        };
        format!("#cloud-config\n{how}{body}")
    })
}

fn layers_of(mode: Mode, texts: &[String]) -> Vec<Layer> {
    let layers = texts.iter().map(|text| Layer {
        name: String::new(),
        mode,
        parts: vec![LayerPart::new(text.as_str())],
        ..Layer::default()
    });
    layers.collect()
}

/// What cloud-init makes of parts that stand one behind the other.
fn on_a_machine(texts: &[String]) -> Option<String> {
    let parts: Vec<Outgoing<'_>> = texts
        .iter()
        .map(|text| Outgoing {
            content_type: "text/cloud-config",
            filename: "",
            headers: &[],
            content: text.as_bytes(),
        })
        .collect();
    let message = write(&parts).unwrap().bytes;
    let outcome = process(&message, &Machine::default()).unwrap();
    outcome.merged.map(|value| shown(&value))
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 512,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn maps_without_lists_merge_as_the_planner_merges(
        base in maps(false),
        new in maps(false),
    ) {
        let expected = of_json(&deep(&base, &new));
        prop_assert_eq!(merged(&of_json(&base), &of_json(&new)), expected);
    }

    #[test]
    fn a_layer_twice_is_the_layer(map in with_named()) {
        let value = of_json(&map);
        prop_assert_eq!(shown(&merged(&value, &value)), shown(&value));
    }

    #[test]
    fn it_does_not_matter_which_two_of_three_are_merged_first(
        one in with_named(),
        two in with_named(),
        three in with_named(),
    ) {
        let (one, two, three) = (of_json(&one), of_json(&two), of_json(&three));
        let left = merged(&merged(&one, &two), &three);
        let right = merged(&one, &merged(&two, &three));
        // A scalar in between ends what was there, from either side.
        if kinds_agree(&one, &two) && kinds_agree(&two, &three) && kinds_agree(&one, &three) {
            // The order of keys may matter, and does nothing.
            prop_assert_eq!(&left, &right, "{}\n{}", shown(&left), shown(&right));
        }
    }

    #[test]
    fn nothing_is_merged_into_nothing(map in with_named()) {
        let value = of_json(&map);
        let nothing = Value::from(Map::default());
        prop_assert_eq!(shown(&merged(&nothing, &value)), shown(&value));
        prop_assert_eq!(shown(&merged(&value, &nothing)), shown(&value));
    }

    #[test]
    fn what_is_merged_here_is_what_the_machine_would_merge(
        texts in proptest::collection::vec(config(), 1..5),
    ) {
        let expected = on_a_machine(&texts);
        for mode in [Mode::Append, Mode::CloudInit] {
            let joined = join(&layers_of(mode, &texts));
            let outcome = process(&joined.bytes, &Machine::default()).unwrap();
            let found = outcome.merged.map(|value| shown(&value));
            prop_assert_eq!(&found, &expected, "{}", mode);
            let said = joined.config.as_ref().map(shown);
            prop_assert_eq!(&said, &expected, "{}", mode);
            prop_assert_eq!(joined.shares.iter().sum::<usize>(), joined.bytes.len());
        }
    }

    #[test]
    fn every_value_of_the_result_was_written_somewhere(
        texts in proptest::collection::vec(config(), 1..4),
        mode in prop_oneof![Just(Mode::CloudInit), Just(Mode::Nstance)],
    ) {
        let layers = layers_of(mode, &texts);
        let joined = join(&layers);
        let Some(config) = &joined.config else { return Ok(()) };
        let mut leaves = Vec::new();
        collect(config, &mut leaves);
        for leaf in leaves {
            let place = joined.place(leaf.origin).unwrap();
            let lines: Vec<&str> = texts[place.layer].split('\n').collect();
            let line = lines[place.line.unwrap() as usize - 1];
            let said = shown(leaf);
            let first = said.lines().next().unwrap();
            // A text that others were appended to is where the last one was written.
            let appends = texts.iter().any(|text| text.contains("str(append)"));
            prop_assert!(appends || line.contains(first), "{line:?} has no {first:?}");
        }
    }

    #[test]
    fn any_content_is_read_back_from_a_message(
        contents in proptest::collection::vec(
            proptest::collection::vec(prop_oneof![
                6 => proptest::sample::select(&b"ab-=.\n \r\t"[..]),
                1 => any::<u8>(),
            ], 0..200),
            1..5,
        ),
    ) {
        let parts: Vec<Outgoing<'_>> = contents
            .iter()
            .map(|content| Outgoing {
                content_type: "text/x-shellscript-per-once",
                filename: "name",
                headers: &[],
                content,
            })
            .collect();
        let message = write(&parts).unwrap().bytes;
        let read = explode(&message, &Machine::default()).unwrap();
        let read: Vec<Vec<u8>> = read.into_iter().map(|part| part.content).collect();
        prop_assert_eq!(read, contents);
    }
}

fn collect<'v>(value: &'v Value, leaves: &mut Vec<&'v Value>) {
    match &value.data {
        Data::List(items) => items.iter().for_each(|item| collect(item, leaves)),
        Data::Map(map) => map.iter().for_each(|(_, value)| collect(value, leaves)),
        _ => leaves.push(value),
    }
}

/// Whether no mapping or list of one stands where the other has something else.
fn kinds_agree(one: &Value, two: &Value) -> bool {
    match (&one.data, &two.data) {
        (Data::Map(one), Data::Map(two)) => one
            .iter()
            .all(|(key, value)| two.get(key).is_none_or(|other| kinds_agree(value, other))),
        (Data::List(one), Data::List(two)) => one
            .iter()
            .all(|value| two.iter().all(|other| kinds_agree(value, other))),
        (Data::Map(_) | Data::List(_), _) | (_, Data::Map(_) | Data::List(_)) => false,
        _ => true,
    }
}
