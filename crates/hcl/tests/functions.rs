//! Functions whose answers the corpus doesn't have: what came after Terraform 1.0.3, what it has no
//! cases of, and what is bounded.
use std::io::Read;
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use nstance_hcl::{Context, Entries, Evaluator, Folder, Value, format, parse_expression};

/// What the console prints, or the errors.
fn shown(expression: &str) -> String {
    let files = Folder(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data"));
    let context = Context::new(&files);
    let secret = Value::from("s3cret").or_sensitive(true);
    let scope = Entries::from([("secret".into(), secret)]);
    let value = parse_expression(expression, 0)
        .map_err(|error| vec![error])
        .and_then(|parsed| Evaluator::new(&scope, &context).evaluate(&parsed));
    match value {
        Ok(value) => format::console(&value),
        Err(errors) => {
            let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
            errors.join("; ")
        }
    }
}

#[test]
fn a_key_decrypts_what_openssl_encrypted() {
    for key in ["pkcs1.pem", "pkcs8.pem"] {
        let call = format!("rsadecrypt(file(\"encrypted.txt\"), file(\"{key}\"))");
        assert_eq!(shown(&call), "\"sésame\"");
    }
    assert!(shown("rsadecrypt(\"AAAA\", file(\"pkcs1.pem\"))").contains("wasn't encrypted"));
    assert!(shown("rsadecrypt(\"AAAA\", \"key\")").contains("This isn't an RSA key"));
}

/// An update of the library that packs otherwise would replace instances.
#[test]
fn gzip_gives_the_same_bytes_for_ever() {
    let call = "base64gzip(join(\",\", range(200)))";
    let packed = shown(call).trim_matches('"').to_owned();
    let bytes = STANDARD.decode(&packed).unwrap();
    let mut text = String::new();
    let mut reader = flate2::read::GzDecoder::new(&bytes[..]);
    reader.read_to_string(&mut text).unwrap();
    assert!(text.starts_with("0,1,2,3") && text.ends_with("198,199"));
    assert_eq!(bytes[..10], [31, 139, 8, 0, 0, 0, 0, 0, 0, 255]);
    assert_eq!(
        shown(&format!("md5({call})")),
        "\"81b8b09920db54771311734e84c89673\""
    );
}

#[test]
fn functions_have_these_answers() {
    for (call, want) in [
        (
            "timecmp(\"2020-01-01T00:00:00Z\", \"2020-01-01T01:00:00+01:00\")",
            "0",
        ),
        (
            "timecmp(\"2020-01-01T00:00:00Z\", \"2020-01-01T00:00:00.1Z\")",
            "-1",
        ),
        (
            "timeadd(\"2020-02-28T23:59:59Z\", \"-0.5s\")",
            "\"2020-02-28T23:59:58Z\"",
        ),
        (
            "timeadd(\"1600-03-01T00:00:00Z\", \"-24h\")",
            "\"1600-02-29T00:00:00Z\"",
        ),
        ("textencodebase64(\"ğ\", \"latin5\")", "\"8A==\""),
        ("textencodebase64(\"€\", \"IBM00858\")", "\"1Q==\""),
        ("textdecodebase64(\"1Q==\", \"cp858\")", "\"€\""),
        ("format(\"%.0f %.0f %.0f\", 0.5, 1.5, 2.5)", "\"0 2 2\""),
        ("format(\"%.3e|%g|%g\", 0, 0, -0.1)", "\"0.000e+00|0|-0.1\""),
        ("format(\"%.0f %.2f\", 99.5, 0.999)", "\"100 1.00\""),
        ("format(\"%.5d|%+x|%#o\", 42, 255, 8)", "\"00042|+ff|010\""),
        ("formatlist(\"%s-%s\", [\"a\", \"b\"], \"c\")[1]", "\"b-c\""),
        ("yamldecode(\"a: |-\\n  5\").a", "5"),
        ("yamldecode(\"|\\n  a\\n  b\")", "<<EOT\na\nb\nEOT"),
        (
            "jsondecode(\"\\\"\\\\ud83c\\\\udf89\\\\ud83cx\\\"\")",
            "\"🎉\u{fffd}x\"",
        ),
        (
            "fileset(\".\", \"{pkcs?,x}.[o-q]em\")",
            "toset([\n  \"pkcs1.pem\",\n  \"pkcs8.pem\",\n])",
        ),
        ("pow(2, 0.5) * pow(-2, 3) < 0", "true"),
        ("[pow(10, 308), pow(2, -1074) > 0, pow(7, 0)][1]", "true"),
    ] {
        assert_eq!(shown(call), want, "{call}");
    }
}

#[test]
fn what_is_wrong_is_said() {
    for (call, part) in [
        ("format(\"%d\", \"x\")", "`%d`: a number is required"),
        ("format(\"%y\")", "There is no verb `%y`"),
        (
            "format(\"%s\")",
            "There is no argument 1 for `%s`: 0 follow",
        ),
        ("format(\"a\", 1)", "The format uses 0 of 1 arguments"),
        ("format(\"%[0]s\", 1)", "isn't the start of a verb"),
        (
            "formatlist(\"%s%s\", [1], [1, 2])",
            "argument 1 has 1 elements",
        ),
        (
            "jsondecode(\"{\\n\\\"a\\\" 1}\")",
            "line 2, column 5: a colon is wanted; here is '1'",
        ),
        (
            "csvdecode(\"a,b\\n1\")",
            "line 2: there are 1 fields, not 2",
        ),
        ("yamldecode(\"a: [1\")", "This YAML can't be read: line"),
        ("yamldecode(\"a: *b\")", "This YAML can't be read: line 1"),
        (
            "yamldecode(\"\\ta: 1\")",
            "line 1, column 1: tabs are not allowed in indentation",
        ),
        (
            "timeadd(\"2020-01-01\", \"1h\")",
            "This isn't a time as RFC 3339",
        ),
        (
            "timeadd(\"2020-01-01T00:00:00Z\", \"1d\")",
            "This isn't a duration",
        ),
        (
            "formatdate(\"YYY\", \"2020-01-01T00:00:00Z\")",
            "a year is `YYYY` or `YY`",
        ),
        ("file(\"~/x\")", "There is no home folder here"),
        ("pathexpand(\"~root/x\")", "home folder of another user"),
        ("file(\"nope.txt\")", "The file can't be read:"),
        ("fileset(\".\", \"[\")", "a `[` that isn't closed"),
        (
            "textencodebase64(\"é\", \"us-ascii\")",
            "characters that the encoding doesn't have",
        ),
        (
            "textencodebase64(\"é\", \"ebcdic\")",
            "has no encoding \"ebcdic\"",
        ),
    ] {
        let shown = shown(call);
        assert!(shown.contains(part), "{call}: {shown}");
    }
}

#[test]
fn what_is_wrong_tells_no_secret() {
    for call in [
        "file(secret)",
        "format(\"%d\", secret)",
        "format(\"%t\", secret)",
        "jsondecode(secret)",
        "parseint(secret, 10)",
        "cidrhost(secret, 1)",
        "timeadd(secret, secret)",
        "templatefile(secret, {})",
        "textencodebase64(\"a\", secret)",
        "regex(secret, \"x\")",
        "[{}][secret]",
        "{a = 1}[secret]",
        "tonumber(secret)",
        "try(tonumber(secret))",
        "join(sensitive({s3cret = 1}), [])",
        "sort(sensitive({s3cret = 1}))",
        "transpose(sensitive({s3cret = [[]]}))",
        "true ? sensitive({s3cret = 1}) : []",
    ] {
        let shown = shown(call);
        assert!(!shown.contains("s3cret"), "{call}: {shown}");
    }
}

#[test]
fn what_grows_is_bounded() {
    let levels: Vec<String> = (1..40)
        .map(|n| format!("a{n}: &a{n} [*a{0}, *a{0}]", n - 1))
        .collect();
    let levels = levels.join("\\n");
    let deep: String = (1..9).fold("&a0 [0]".to_owned(), |inner, n| format!("&a{n} [{inner}]"));
    for (call, part) in [
        (
            format!("yamldecode(\"a0: &a0 [0]\\n{levels}\")"),
            "aliases stand for too many values",
        ),
        (
            format!("jsondecode(\"{}\")", "[".repeat(100_000)),
            "More than 200 lists",
        ),
        (
            format!("yamldecode(\"{}\")", "[".repeat(100_000)),
            "This YAML can't be read",
        ),
        (format!("length(yamldecode(\"{deep}\"))"), "1"),
        (
            format!("yamldecode(\"{}\")", "- ".repeat(10_000)),
            "More than 200 lists",
        ),
        ("format(\"%1000001d\", 1)".to_owned(), "the largest width"),
        (
            "format(join(\"\", [for i in range(100): \"%1000000d\"]), [for i in range(100): i]...)"
                .to_owned(),
            "more than 64 MB",
        ),
        (
            "fileset(\".\", join(\"\", [for i in range(20): \"{a,b}\"]))".to_owned(),
            "more than 1024 patterns",
        ),
        ("range(100000)".to_owned(), "1024"),
    ] {
        let shown = shown(&call);
        assert!(
            shown.contains(part),
            "{}: {}",
            &call[..call.len().min(80)],
            &shown[..shown.len().min(200)]
        );
    }
}

#[test]
fn strings_that_are_numbers_are_added_up() {
    for (call, want) in [
        ("sum([\"1\", \"2\"])", "3"),
        ("sum([\"1.5\", 2])", "3.5"),
        ("sum(toset([\"1\", \"2\"]))", "3"),
    ] {
        assert_eq!(shown(call), want, "{call}");
    }
    for call in [
        "sum([\"1\", \"x\"])",
        "sum([1, null])",
        "sum([1, true])",
        "sum([\" 1\"])",
        "sum([[1]])",
    ] {
        assert!(
            shown(call).contains("Only numbers can be added up"),
            "{call}"
        );
    }
}
