//! Reads and writes YAML as BOSH's programs do: mostly YAML 1.1, where `yes` is a boolean and `010` is eight.
//!
//! In: a text and the number of its file. Out: the value of its first document, or the error that
//! makes it unreadable; and the text of a value. Merge keys are merged, aliases are replaced by copies. Dates and Ruby's
//! symbols are strings. Of a duplicate key the last value counts.

use nstance_yaml::{Kind, Node, Reader, Scalar, Style, core_tag};

use crate::error::Error;
use crate::value::{Data, Entry, MapBuilder, Place, Value};

/// The levels of lists and maps that a text may have.
pub(crate) const DEPTH: usize = 100;

/// Reads a text as Ruby's Psych does, which is how the Director reads manifests and job specs.
pub fn read(text: &str, file: u32) -> Result<Value, Error> {
    read_with(text, file, ruby_scalar)
}

/// Reads a text as Go's yaml.v2 does, which is how bosh-cli reads manifests and ops files before it
/// interpolates them.
pub fn read_as_cli(text: &str, file: u32) -> Result<Value, Error> {
    read_with(text, file, go_scalar)
}

/// Reads a vars file as bosh-cli does: like other files, except that names are strings as they are
/// written. The name `n` is not a boolean.
pub fn read_vars(text: &str, file: u32) -> Result<Value, Error> {
    let mut vars = read_as_cli(text, file)?;
    if let Data::Map(entries) = &mut vars.data {
        for Entry { key, .. } in entries {
            let written = text.get(key.place.start..key.place.end);
            if let Some(written) = written.filter(|_| key.as_str().is_none()) {
                key.data = Data::String(written.into());
            }
        }
    }
    Ok(vars)
}

/// Writes a value as Ruby does, which is how the Director writes manifests.
pub fn write(value: &Value) -> String {
    let mut text = crate::dump::lines(value).join("\n");
    text.push('\n');
    text
}

fn read_with(text: &str, file: u32, plain: fn(&str) -> Data) -> Result<Value, Error> {
    let resolve = |scalar: &Scalar<'_>| match scalar.tag.as_deref().and_then(core_tag) {
        Some("int" | "float" | "bool" | "null") => plain(&scalar.text),
        None if scalar.style == Style::Plain && scalar.tag.is_none() => plain(&scalar.text),
        _ => Data::String(scalar.text.as_ref().into()),
    };
    let document = Reader::new(text, DEPTH, resolve).document();
    let place = |range: &std::ops::Range<usize>| Place {
        file,
        start: range.start,
        end: range.end,
    };
    match document {
        Ok(Some(document)) => Ok(value(&document.root, file)),
        Ok(None) => Ok(Value::null(place(&(0..0)))),
        Err(error) => Err(Error::at(place(&error.range), error.kind.to_string())),
    }
}

fn value(node: &Node<Data>, file: u32) -> Value {
    let range = node.place();
    let data = match &node.kind {
        Kind::Scalar(data) => data.clone(),
        Kind::Sequence(items) => Data::List(items.iter().map(|item| value(item, file)).collect()),
        Kind::Mapping(entries) => map(entries, file),
    };
    Value {
        place: Place {
            file,
            start: range.start,
            end: range.end,
        },
        data,
    }
}

/// Sets the keys of a map one after another. A merge key sets those of its maps where it stands, so
/// they replace values that are written before it; both programs do that.
fn map(written: &[(Node<Data>, Node<Data>)], file: u32) -> Data {
    let mut map = MapBuilder::default();
    for (key, node) in written {
        let key = value(key, file);
        match node.merged().filter(|_| key.as_str() == Some("<<")) {
            None => map.set(key, value(node, file)),
            Some(sources) => {
                for source in sources.into_iter().rev() {
                    let Data::Map(entries) = self::map(source, file) else {
                        continue;
                    };
                    for entry in entries {
                        map.set(entry.key, entry.value);
                    }
                }
            }
        }
    }
    map.finish()
}

/// The value of a plain scalar in Psych (its `ScalarScanner`).
pub(crate) fn ruby_scalar(text: &str) -> Data {
    let string = || Data::String(text.into());
    let is_any = |words: &[&str]| words.iter().any(|word| text.eq_ignore_ascii_case(word));
    if is_any(&["", "~", "null"]) {
        return Data::Null;
    }
    if is_any(&["yes", "true", "on"]) {
        return Data::Bool(true);
    }
    if is_any(&["no", "false", "off"]) {
        return Data::Bool(false);
    }
    if is_any(&[".inf", "+.inf"]) {
        return Data::Float(f64::INFINITY);
    }
    if is_any(&["-.inf"]) {
        return Data::Float(f64::NEG_INFINITY);
    }
    if is_any(&[".nan"]) {
        return Data::Float(f64::NAN);
    }
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    if !unsigned.starts_with(|first: char| first.is_ascii_digit() || first == '.') {
        return string();
    }
    if unsigned.contains(':') {
        return sexagesimal(text).map_or_else(string, Data::Integer);
    }
    if is_ruby_float(unsigned) {
        let digits = text.replace([',', '_'], "");
        return digits.parse().map_or_else(|_| string(), Data::Float);
    }
    if is_ruby_integer(unsigned) {
        return integer(&text.replace([',', '_'], "")).unwrap_or_else(string);
    }
    string()
}

/// `1:20`, `10:00:00`. Psych takes the first of two parts for hours too.
fn sexagesimal(text: &str) -> Option<i128> {
    let parts: Vec<&str> = text.split(':').collect();
    let (first, others) = parts.split_first()?;
    let is_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let is_minutes = |part: &&str| match part.len() {
        1 => is_digits(part),
        2 => is_digits(part) && part.as_bytes()[0] < b'6',
        _ => false,
    };
    if others.len() > 2 || !others.iter().all(is_minutes) {
        return None;
    }
    let mut sum = i128::from(first.replace('_', "").parse::<i64>().ok()?) * 3600;
    for (part, factor) in others.iter().zip([60, 1]) {
        sum += part.parse::<i128>().ok()? * factor;
    }
    Some(sum)
}

/// `1.5`, `1_000.`, `.5e+3`: a dot is required, and in an exponent a sign.
fn is_ruby_float(unsigned: &str) -> bool {
    let Some((whole, rest)) = unsigned.split_once('.') else {
        return false;
    };
    let (fraction, exponent) = match rest.split_once(['e', 'E']) {
        Some((fraction, exponent)) => (fraction, Some(exponent)),
        None => (rest, None),
    };
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let is_exponent = |exponent: &str| {
        let digits = exponent.strip_prefix(['+', '-']).unwrap_or_default();
        !digits.is_empty() && is_digits(digits)
    };
    !whole.starts_with([',', '_'])
        && is_digits(&whole.replace([',', '_'], ""))
        && is_digits(fraction)
        && !(whole.is_empty() && fraction.is_empty())
        && exponent.is_none_or(is_exponent)
}

fn is_ruby_integer(unsigned: &str) -> bool {
    let digits = unsigned.replace([',', '_'], "");
    if let Some(digits) = digits.strip_prefix("0b") {
        return !digits.is_empty() && digits.bytes().all(|digit| matches!(digit, b'0' | b'1'));
    }
    if let Some(digits) = digits.strip_prefix("0x") {
        return !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    }
    if digits.len() > 1 && digits.starts_with('0') {
        return digits.bytes().all(|digit| matches!(digit, b'0'..=b'7'));
    }
    // In a decimal, single separators stand between digits.
    digits.bytes().all(|digit| digit.is_ascii_digit())
        && unsigned.split([',', '_']).all(|group| !group.is_empty())
}

/// The value of a plain scalar in Go's yaml.v2.
fn go_scalar(text: &str) -> Data {
    let string = || Data::String(text.into());
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Data::Null,
        "true" | "True" | "TRUE" | "y" | "Y" | "yes" | "Yes" | "YES" | "on" | "On" | "ON" => {
            return Data::Bool(true);
        }
        "false" | "False" | "FALSE" | "n" | "N" | "no" | "No" | "NO" | "off" | "Off" | "OFF" => {
            return Data::Bool(false);
        }
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => {
            return Data::Float(f64::INFINITY);
        }
        "-.inf" | "-.Inf" | "-.INF" => return Data::Float(f64::NEG_INFINITY),
        ".nan" | ".NaN" | ".NAN" => return Data::Float(f64::NAN),
        _ => {}
    }
    let digits = text.replace('_', "");
    match integer(&digits) {
        // Integers take 64 bits at most; larger ones are floats.
        Some(Data::Integer(value))
            if i64::try_from(value).is_ok() || u64::try_from(value).is_ok() =>
        {
            Data::Integer(value)
        }
        _ => {
            let unsigned = digits.strip_prefix(['+', '-']).unwrap_or(&digits);
            if !nstance_yaml::plain::is_decimal(unsigned) {
                return string();
            }
            digits.parse().map_or_else(|_| string(), Data::Float)
        }
    }
}

/// An integer with a base prefix: `12`, `-0x1f`, `017`, `0o17`, `0b101`.
fn integer(text: &str) -> Option<Data> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let prefixes = [("0x", 16), ("0X", 16), ("0b", 2), ("0o", 8), ("0", 8)];
    let (digits, radix) = prefixes
        .iter()
        .filter(|_| unsigned.len() > 1)
        .find_map(|(prefix, radix)| Some((unsigned.strip_prefix(prefix)?, *radix)))
        .unwrap_or((unsigned, 10));
    // A sign behind the prefix is not a digit.
    if !digits.chars().all(|digit| digit.is_digit(radix)) || digits.is_empty() {
        return None;
    }
    let Ok(value) = i128::from_str_radix(digits, radix) else {
        return text.parse().ok().map(Data::Float);
    };
    let sign = if text.starts_with('-') { -1 } else { 1 };
    Some(Data::Integer(value * sign))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scalars_mean_what_they_mean_to_each_program() {
        for (text, ruby, go) in [
            ("", "nil", "nil"),
            ("~", "nil", "nil"),
            ("NULL", "nil", "nil"),
            ("nUll", "nil", "\"nUll\""),
            ("'null'", "\"null\"", "\"null\""),
            ("yes", "true", "true"),
            ("Off", "false", "false"),
            ("oN", "true", "\"oN\""),
            ("y", "\"y\"", "true"),
            ("N", "\"N\"", "false"),
            ("1", "1", "1"),
            ("+1", "1", "1"),
            ("-12", "-12", "-12"),
            ("010", "8", "8"),
            ("-010", "-8", "-8"),
            ("0o10", "\"0o10\"", "8"),
            ("0899", "\"0899\"", "899.0"),
            ("0x1f", "31", "31"),
            ("0x-1", "\"0x-1\"", "\"0x-1\""),
            ("0b101", "5", "5"),
            ("0b", "\"0b\"", "\"0b\""),
            ("1_000", "1000", "1000"),
            ("1,000", "1000", "\"1,000\""),
            ("1__0", "\"1__0\"", "10"),
            ("1:20", "4800", "\"1:20\""),
            ("10:00:01", "36001", "\"10:00:01\""),
            ("1:99", "\"1:99\"", "\"1:99\""),
            ("::1", "\"::1\"", "\"::1\""),
            ("1.5", "1.5", "1.5"),
            ("-.5", "-0.5", "-0.5"),
            ("1.", "1.0", "1.0"),
            ("1e3", "\"1e3\"", "1000.0"),
            ("1.0e+3", "1000.0", "1000.0"),
            ("1.0e3", "\"1.0e3\"", "1000.0"),
            (".", "\".\"", "\".\""),
            ("1.2.3", "\"1.2.3\"", "\"1.2.3\""),
            ("10.0.0.0/8", "\"10.0.0.0/8\"", "\"10.0.0.0/8\""),
            (".inf", "Infinity", "Infinity"),
            ("-.INF", "-Infinity", "-Infinity"),
            (".NaN", "NaN", "NaN"),
            ("2026-01-31", "\"2026-01-31\"", "\"2026-01-31\""),
            (":symbol", "\":symbol\"", "\":symbol\""),
            (
                "18446744073709551615",
                "18446744073709551615",
                "18446744073709551615",
            ),
            (
                "18446744073709551616",
                "18446744073709551616",
                "1.8446744073709552e+19",
            ),
            ("!!str 1", "\"1\"", "\"1\""),
            ("!!int '1'", "1", "1"),
            ("((a))", "\"((a))\"", "\"((a))\""),
        ] {
            let text = format!("- {text}\n");
            assert_eq!(read(&text, 0).unwrap().inspect(), format!("[{ruby}]"));
            assert_eq!(read_as_cli(&text, 0).unwrap().inspect(), format!("[{go}]"));
        }
    }

    #[test]
    fn maps_are_set_key_by_key() {
        for (text, expected) in [
            ("", "nil"),
            ("a: 1\nb: 2\na: 3\n", r#"{"a"=>3, "b"=>2}"#),
            (
                "1: a\n'1': b\ntrue: c\n",
                r#"{1=>"a", "1"=>"b", true=>"c"}"#,
            ),
            (
                "- &x {a: 1}\n- {<<: *x, b: 2}\n",
                r#"[{"a"=>1}, {"a"=>1, "b"=>2}]"#,
            ),
            ("{a: 2, <<: {a: 1, b: 3}}", r#"{"a"=>1, "b"=>3}"#),
            (
                "{<<: [{a: 1}, {a: 2, b: 3}], c: 4}",
                r#"{"a"=>1, "b"=>3, "c"=>4}"#,
            ),
            ("{<<: 1}", r#"{"<<"=>1}"#),
            ("--- a\n--- b\n", "\"a\""),
        ] {
            assert_eq!(read(text, 0).unwrap().inspect(), expected, "{text}");
        }
    }

    #[test]
    fn names_of_variables_are_strings() {
        let vars = read_vars("n: n\n1: {1: 010}\n'2': ~\n", 0).unwrap();
        assert_eq!(vars.inspect(), r#"{"n"=>false, "1"=>{1=>8}, "2"=>nil}"#);
    }

    #[test]
    fn written_values_are_read_again() {
        for text in [
            "{}",
            "[]",
            "~",
            "''",
            "a: ~\nb: [~, [1, [2, {c: []}]], {}]\n",
            "a: 'yes'\nb: '010'\nc: '1:20'\nd: \"x\\ny\"\ne: ' - '\nf: '((x))'\n",
            "'yes': 1\n'a: b': {'#': '# no'}\n1: 2.5\n",
            "a: \"\\n\\n x\\n\"\nb: |\n  #!/bin/sh\n\n  echo\n",
            "- \"text \\t with tab\"\n- \"é€ \\u0007\"\n- '&a'\n- '*a'\n- '!b'\n- '@'\n",
        ] {
            let value = read(text, 0).unwrap();
            let written = write(&value);
            let again = read(&written, 0).unwrap();
            assert_eq!(again.inspect(), value.inspect(), "{written}");
            let by_cli = read_as_cli(&written, 0).unwrap();
            assert_eq!(by_cli.inspect(), value.inspect(), "{written}");
        }
    }

    #[test]
    fn values_know_their_places() {
        let text = "a: &x [1]\nb: *x\n";
        let value = read(text, 7).unwrap();
        let b = value.entry("b").unwrap();
        assert_eq!(b.value.place.file, 7);
        assert_eq!(&text[b.value.place.start..b.value.place.end], "*x");
        assert_eq!(&text[b.key.place.start..b.key.place.end], "b");
        let error = read("a: [", 3).unwrap_err();
        assert_eq!(error.place.unwrap().file, 3);
    }
}
