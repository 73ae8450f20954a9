//! Paths of attributes, such as `args.BlockDeviceMappings[0].Ebs.VolumeSize`.
//!
//! In: a path and its instances. Out: its segments, and instances with values at these. Must not:
//! interpret a path.
//!
//! Keys may contain dots (`tags.team.owner`), so splitting a path requires the instance.

use serde_json::{Map, Value};

use crate::merge::deep::{first_index, first_key};

/// A segment of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Segment {
    /// A key of an object.
    Key(String),
    /// An index of a list.
    Index(usize),
}

impl Segment {
    /// The form of Terraform's `replace_paths`.
    pub(super) fn to_json(&self) -> Value {
        match self {
            Self::Key(key) => Value::from(key.as_str()),
            Self::Index(index) => Value::from(*index),
        }
    }
}

/// The segments of a path. Keys are looked up in `instances` in turn; a key of tags or files is
/// always one segment.
pub(super) fn segments(path: &str, instances: &[&Value]) -> Vec<Segment> {
    let mut found = Vec::new();
    let mut places: Vec<&Value> = instances.to_vec();
    let mut rest = path;
    while !rest.is_empty() {
        if let Some((index, after)) = first_index(rest) {
            places = places.iter().filter_map(|place| place.get(index)).collect();
            found.push(Segment::Index(index));
            rest = after;
            continue;
        }
        let flat =
            matches!(found[..], [Segment::Key(ref root)] if matches!(&**root, "tags" | "files"));
        let length = places
            .iter()
            .filter_map(|place| place.as_object())
            .filter_map(|entries| first_key(rest, entries.keys().map(String::as_str)))
            .map(|(key, _)| key.len())
            .max()
            .unwrap_or_else(|| {
                if flat {
                    rest.len()
                } else {
                    rest.find(['.', '[']).unwrap_or(rest.len())
                }
            });
        // A path that begins with a dot is invalid, so the rest is one key.
        let length = if length == 0 { rest.len() } else { length };
        let (key, after) = rest.split_at(length);
        places = places.iter().filter_map(|place| place.get(key)).collect();
        found.push(Segment::Key(key.to_owned()));
        rest = after.strip_prefix('.').unwrap_or(after);
    }
    found
}

/// Sets or removes the value at a path. Creates objects on the way; ignores an index that doesn't
/// exist.
pub(super) fn put(instance: &mut Value, path: &[Segment], value: Option<Value>) {
    let Some((segment, rest)) = path.split_first() else {
        *instance = value.unwrap_or(Value::Null);
        return;
    };
    match segment {
        Segment::Key(key) => {
            if !instance.is_object() {
                *instance = Value::Object(Map::new());
            }
            let Value::Object(entries) = instance else {
                return;
            };
            if !rest.is_empty() {
                put(entries.entry(key).or_insert(Value::Null), rest, value);
            } else if let Some(value) = value {
                entries.insert(key.clone(), value);
            } else {
                entries.shift_remove(key);
            }
        }
        Segment::Index(index) => {
            if let Some(item) = instance.get_mut(*index) {
                put(item, rest, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn segments_follow_the_keys_there_are() {
        let instance = json!({
            "args": {"A.b": {"c": 1}, "L": [{"x": 1}]},
            "tags": {"team.owner": "a"},
            "userdata": "u",
        });
        for (path, expected) in [
            ("userdata", json!(["userdata"])),
            ("args.A.b.c", json!(["args", "A.b", "c"])),
            ("args.L[0].x", json!(["args", "L", 0, "x"])),
            ("args.New.Key", json!(["args", "New", "Key"])),
            ("tags.team.owner", json!(["tags", "team.owner"])),
            ("tags.new.tag", json!(["tags", "new.tag"])),
            ("files.etc/a.conf", json!(["files", "etc/a.conf"])),
            (".odd", json!([".odd"])),
        ] {
            let found: Value = segments(path, &[&instance])
                .iter()
                .map(Segment::to_json)
                .collect();
            assert_eq!(found, expected, "{path}");
        }
    }

    #[test]
    fn values_are_put_where_a_path_points() {
        let mut instance = json!({"args": {"L": [{"x": 1}]}, "tags": {"a": "b"}});
        let path = |text| segments(text, &[&json!({"args": {"L": []}})]);
        put(&mut instance, &path("args.L[0].x"), Some(json!(2)));
        put(&mut instance, &path("args.L[9].x"), Some(json!(2)));
        put(&mut instance, &path("args.New.Key"), Some(json!(true)));
        put(&mut instance, &path("tags.a"), None);
        assert_eq!(
            instance,
            json!({"args": {"L": [{"x": 2}], "New": {"Key": true}}, "tags": {}})
        );
    }
}
