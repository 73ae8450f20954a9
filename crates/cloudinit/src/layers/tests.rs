//! The modes, on small layers.

use super::*;
use crate::userdata::{Machine, process};
use crate::yaml::emit;

fn layer(mode: Mode, parts: &[&str]) -> Layer {
    Layer {
        name: String::new(),
        mode,
        parts: parts.iter().map(|part| LayerPart::new(*part)).collect(),
        ..Layer::default()
    }
}

fn stack(mode: Mode, layers: &[&str]) -> Vec<Layer> {
    let names = ["defaults", "template", "group"];
    let layers = layers.iter().zip(names);
    layers
        .map(|(content, name)| Layer {
            name: name.to_owned(),
            ..layer(mode, &[content])
        })
        .collect()
}

fn text(joined: &Joined) -> &str {
    std::str::from_utf8(&joined.bytes).unwrap()
}

/// What a machine makes of the result.
fn on_a_machine(joined: &Joined) -> String {
    let outcome = process(&joined.bytes, &Machine::default()).unwrap();
    assert_eq!(outcome.failed, []);
    outcome
        .merged
        .map_or_else(String::new, |value| emit(&value, 1 << 20).unwrap())
}

/// Findings as lines.
fn findings(joined: &Joined) -> String {
    let mut lines = String::new();
    for finding in &joined.findings {
        let place = finding.place.as_ref().map_or_else(String::new, |at| {
            format!("{}:{}", at.layer, at.line.unwrap_or(0))
        });
        let severity = match finding.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        lines.push_str(&format!("{severity} {place} {}\n", finding.summary));
    }
    lines
}

const ONE: &str = "#cloud-config\nruncmd: [one, both] # a comment\nhostname: a\n";
const TWO: &str = "#cloud-config\nruncmd:\n  - both\n  - two\nhostname: b\n";

#[test]
fn each_mode_joins_in_its_way() {
    for (mode, expected) in [
        (Mode::Replace, "runcmd:\n  - both\n  - two\nhostname: b\n"),
        (Mode::Append, "runcmd:\n  - both\n  - two\nhostname: b\n"),
        (Mode::CloudInit, "runcmd:\n  - both\n  - two\nhostname: b\n"),
        (
            Mode::Nstance,
            "runcmd:\n  - one\n  - both\n  - two\nhostname: b\n",
        ),
    ] {
        let joined = join(&stack(mode, &[ONE, TWO]));
        assert_eq!(findings(&joined), "", "{mode}");
        assert_eq!(on_a_machine(&joined), expected, "{mode}");
        let config = emit(joined.config.as_ref().unwrap(), 1 << 20).unwrap();
        assert_eq!(config, expected, "{mode}");
        assert_eq!(joined.shares.iter().sum::<usize>(), joined.bytes.len());
    }
}

#[test]
fn one_part_left_alone_goes_out_as_it_was_written() {
    for content in [
        ONE,
        "#!/bin/sh\necho hi\n",
        "  #cloud-config\na: 1",
        "Content-Type: multipart/mixed; boundary=b\nMIME-Version: 1.0\n\n--b\n\
         Content-Type: text/cloud-config\n\nruncmd: [one]\n--b\n\
         Content-Type: text/x-shellscript\n\n#!/bin/sh\n--b--\n",
    ] {
        for mode in Mode::ALL {
            let joined = join(&[layer(mode, &[]), layer(mode, &[content])]);
            assert_eq!(text(&joined), content, "{mode}");
        }
        let replaced = join(&stack(Mode::Replace, &[TWO, content]));
        assert_eq!(text(&replaced), content);
        assert_eq!(replaced.shares, [0, content.len()]);
        let why = Why::Replaced { by_layer: 1 };
        assert!(replaced.dropped.iter().all(|dropped| dropped.why == why));
        assert!(!replaced.dropped.is_empty());
    }
}

#[test]
fn what_cloud_init_would_pass_over_is_told() {
    let config = "#cloud-config\nruncmd: [a]\n";
    let with = |mergers: &str| format!("#cloud-config\nmerge_how: {mergers}\nruncmd: [b]\n");
    let message = "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n--b\n\
                   Content-Type: text/x-shellscript\n\n#!/bin/sh\necho \u{e9}\n--b--\n";
    for (layers, expected) in [
        (
            [config, &*with("list(append)")],
            "error 1:2 without a merger for `dict` all of this part is lost\n",
        ),
        (
            [config, &with("lists(append)+dict()")],
            "error 1:2 cloud-init would leave this part out: there is no merger `lists`: there are \
             `dict`, `list` and `str`\n",
        ),
        (
            [config, &with("list(apend)+dict()")],
            "error 1:2 the merger `list` has no option `apend`\n",
        ),
        (
            [config, &with("list")],
            "error 1:2 cloud-init would leave this part out: `list` doesn't name a merger: that is a \
             name and options in parentheses, such as `list(append)`\n",
        ),
        (
            [config, &with("[{name: list, settings: append}, [dict]]")],
            "error 1:2 `settings` of the merger `list` are a string\n",
        ),
        (
            [&with("list(append)+dict(recurse_list)"), config],
            "error 0:2 this has no effect: it says how the first part is merged, and nothing is there\n",
        ),
        (
            [&with("dict(recurse_list)+list(append)"), &with("dict()")],
            "",
        ),
        (
            [config, "#cloud-config\na: [1\n"],
            "error 1:3 cloud-init would leave this part out: it can't be read as YAML 1.1: `,` or \
             `]` has to stand here, not the end of the text, in brackets (line 2)\n",
        ),
        (
            [config, "#cloud-config\n- a\n"],
            "error 1:2 cloud-init would leave this part out: a cloud-config is a mapping, and this \
             is a list\n",
        ),
        (
            [config, "runcmd: [b]\n"],
            "error 1:1 cloud-init can't tell what this is, and would leave it out\n",
        ),
        (
            [config, message],
            "error 1:8 a message has text here that isn't ASCII, which cloud-init spoils\n",
        ),
        (
            [
                config,
                "#cloud-config-jsonp\n[{\"op\": \"remove\", \"path\": \"/x\"}]\n",
            ],
            "error 1:0 cloud-init would leave this part out: `/x`: there is no member `x`\n",
        ),
        (
            [config, "#cloud-config\n# nothing\n"],
            "warning 1:0 this cloud-config is empty\n",
        ),
    ] {
        let joined = join(&stack(Mode::CloudInit, &layers));
        assert_eq!(findings(&joined), expected, "{layers:?}");
    }
}

#[test]
fn hints_say_what_would_do() {
    for (layer, expected, hint) in [
        (
            "runcmd: 5\n",
            "error 0:2 `runcmd` is an integer, and has to be a list\n",
            Some("A list stands in brackets, or has each item on a line of its own: `- item`"),
        ),
        (
            "packges: [a]\n",
            "error 0:2 cloud-init knows no key `packges` here\n",
            Some("Did you mean `packages`?"),
        ),
        (
            "write_files: [{path: /x, contnet: y}]\n",
            "error 0:2 cloud-init knows no key `contnet` here\n",
            Some("Did you mean `content`?"),
        ),
        (
            "far_from_all: 1\n",
            "error 0:2 cloud-init knows no key `far_from_all` here\n",
            None,
        ),
    ] {
        let layer = format!("#cloud-config\n{layer}");
        let joined = join(&stack(Mode::Replace, &[&layer]));
        assert_eq!(findings(&joined), expected, "{layer}");
        assert_eq!(joined.findings[0].hint.as_deref(), hint, "{layer}");
    }
}

#[test]
fn surprises_of_yaml_are_told_with_what_was_meant() {
    let layer = "#cloud-config\nwrite_files:\n  - path: /x\n    permissions: 0644\nhostname: 12:30\n\
                 fqdn: on\nlocale: 2026-11-21\nruncmd:\n  - [sleep, 1.10]\n  - echo a: b\n\
                 timezone: UTC\ntimezone: CET\nyes: 1\napt_update: true\n";
    let joined = join(&stack(Mode::Replace, &[layer]));
    let expected = "\
        warning 0:4 `0644` is read as the integer 420\n\
        warning 0:5 `12:30` is read as the integer 750\n\
        warning 0:6 `on` is read as the boolean true\n\
        warning 0:7 `2026-11-21` is read as the date 2026-11-21\n\
        warning 0:9 `1.10` is read as the number 1.1\n\
        error 0:10 `runcmd[1]` is a mapping, and has to be a list or a string or null\n\
        warning 0:12 `timezone` is written twice, and what line 11 says of it is lost\n\
        warning 0:13 the key `yes` is read as the boolean true\n\
        warning 0:14 `apt_update` is deprecated since cloud-init 22.2: Use **package_update** \
        instead\n";
    assert_eq!(findings(&joined), expected);
    let first = &joined.findings[0];
    assert_eq!(first.path, "write_files[0].permissions");
    assert_eq!(first.place.as_ref().unwrap().column, Some(18));
    assert_eq!(
        first.hint.as_deref(),
        Some("If it is meant as written, write \"0644\"")
    );
}

#[test]
fn what_a_later_layer_makes_good_is_no_error() {
    let lacking = "#cloud-config\npower_state:\n  delay: now\n";
    let mode = "#cloud-config\npower_state:\n  mode: reboot\n";
    let missing = "0:3 in `power_state`: `mode` is missing\n";
    for (mode_of, layers, severity) in [
        (Mode::Nstance, &[lacking, mode][..], "warning"),
        (Mode::Nstance, &[lacking], "error"),
        (Mode::Replace, &[lacking, mode], "warning"),
    ] {
        let joined = join(&stack(mode_of, layers));
        assert_eq!(findings(&joined), format!("{severity} {missing}"));
    }
}

#[test]
fn what_only_the_machine_knows_keeps_its_place() {
    let template = "## template: jinja\n#cloud-config\nhostname: {{ v1.region }}\n";
    let index = "#cloud-config\nlaunch-index: 1\nhostname: second\n";
    let script = "#!/bin/sh\n";
    let kinds = |joined: &Joined| -> Vec<(String, Vec<usize>)> {
        let parts = joined.parts.iter();
        parts
            .map(|part| {
                let kind = part.content_type.rsplit('/').next().unwrap();
                (kind.to_owned(), part.layers.clone())
            })
            .collect()
    };
    let kind = |kind: &str, layers: &[usize]| (kind.to_owned(), layers.to_vec());
    for (mode, layers, expected) in [
        (
            Mode::CloudInit,
            [ONE, TWO, template, script, ONE],
            vec![
                kind("cloud-config", &[0, 1]),
                kind("jinja2", &[2]),
                kind("x-shellscript", &[3]),
                kind("cloud-config", &[4]),
            ],
        ),
        (
            Mode::Nstance,
            [ONE, TWO, template, script, ONE],
            vec![
                kind("jinja2", &[2]),
                kind("x-shellscript", &[3]),
                kind("cloud-config", &[0, 1, 4]),
            ],
        ),
        (
            Mode::CloudInit,
            [ONE, index, TWO, script, ONE],
            vec![
                kind("cloud-config", &[0]),
                kind("cloud-config", &[1]),
                kind("cloud-config", &[2]),
                kind("x-shellscript", &[3]),
                kind("cloud-config", &[4]),
            ],
        ),
    ] {
        let stack: Vec<Layer> = layers.iter().map(|one| layer(mode, &[one])).collect();
        let joined = join(&stack);
        assert_eq!(kinds(&joined), expected, "{mode} {layers:?}");
        assert!(findings(&joined).contains("only the machine knows"));
        assert!(!joined.has_errors());
        assert_eq!(joined.shares.iter().sum::<usize>(), joined.bytes.len());
    }
}

#[test]
fn users_and_files_match_by_name_and_path() {
    let one = "#cloud-config\nusers:\n  - default\n  - {name: a, shell: /bin/sh, groups: [x]}\n\
               write_files:\n  - {path: /f, encoding: b64, content: eA==, owner: root}\n  \
               - {path: /f, append: true, content: more}\nother:\n  - {name: a, x: 1}\n";
    let two = "#cloud-config\nusers:\n  - a\n  - {name: a, groups: [x, y]}\n  - b\nwrite_files:\n  \
               - {path: /f, content: text}\n  - {path: /f, append: true, content: more}\n  \
               - {path: /f, append: true, content: most}\nother:\n  - {name: a, y: 2}\n";
    let joined = join(&stack(Mode::Nstance, &[one, two]));
    let expected = "\
users:
  - default
  - name: a
    shell: /bin/sh
    groups:
      - x
      - y
  - b
write_files:
  - path: /f
    content: text
    owner: root
  - path: /f
    append: true
    content: more
  - path: /f
    append: true
    content: most
other:
  - name: a
    x: 1
  - name: a
    y: 2
";
    assert_eq!(on_a_machine(&joined), expected);
}

#[test]
fn what_is_lost_is_told_with_who_won() {
    let joined = join(&stack(Mode::CloudInit, &[ONE, TWO]));
    let place = |layer, line, column| Place {
        layer,
        line: Some(line),
        column: Some(column),
        ..Place::default()
    };
    let lost = |place, path: &str, why| Dropped {
        place,
        path: path.to_owned(),
        why,
    };
    let by = |place| Why::Overridden { by: Some(place) };
    assert_eq!(
        joined.dropped,
        [
            lost(place(0, 2, 1), "runcmd", by(place(1, 3, 3))),
            lost(place(0, 3, 11), "hostname", by(place(1, 5, 11))),
        ]
    );
    for (mergers, expected) in [
        ("list()+dict(recurse_list)", Why::Cut),
        (
            "dict(no_replace)",
            Why::Kept {
                earlier: Some(place(0, 2, 9)),
            },
        ),
    ] {
        let later = format!("#cloud-config\nmerge_how: {mergers}\nruncmd: [x, y, z]\n");
        let joined = join(&stack(Mode::CloudInit, &[ONE, &later]));
        let of_second = joined.dropped.iter().filter(|lost| lost.place.layer == 1);
        let why: Vec<&Why> = of_second.map(|lost| &lost.why).collect();
        assert_eq!(why, [&expected], "{mergers}");
    }
    let later = "#cloud-config\nmerge_how: dict(recurse_str)+str(append)\nhostname: -b\n";
    let appended = join(&stack(Mode::CloudInit, &[ONE, later]));
    assert_eq!(appended.dropped, []);
}

#[test]
fn what_gave_way_is_told_of_once() {
    let mut layers = stack(Mode::CloudInit, &[ONE, TWO, "#cloud-config\nfqdn: c\n"]);
    layers[2].mode = Mode::Replace;
    let joined = join(&layers);
    let lost: Vec<(usize, &Why)> = joined
        .dropped
        .iter()
        .map(|dropped| (dropped.place.layer, &dropped.why))
        .collect();
    let why = Why::Replaced { by_layer: 2 };
    assert_eq!(lost, [(0, &why), (1, &why)]);
}

#[test]
fn lines_are_of_the_layer_even_in_a_message() {
    let message = "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n--b\n\
                   Content-Type: text/cloud-config\n\nhostname: 12:30\n--b\n\
                   Content-Type: text/cloud-config\nContent-Transfer-Encoding: base64\n\n\
                   aG9zdG5hbWU6IG9uCg==\n--b--\n";
    let joined = join(&stack(Mode::Replace, &[message]));
    let places: Vec<&Place> = joined
        .findings
        .iter()
        .filter_map(|finding| finding.place.as_ref())
        .collect();
    assert_eq!(places.len(), 2, "{}", findings(&joined));
    assert_eq!((places[0].line, &places[0].within), (Some(7), &None));
    assert_eq!(
        (places[1].line, places[1].within.as_deref()),
        (Some(1), Some("part-002"))
    );
}

#[test]
fn what_is_taken_for_a_message_is_wrapped_in_one() {
    let mail =
        "#cloud-config\nwrite_files:\n  - path: /mail\n    content: |\n      MIME-Version: 1.0\n";
    let joined = join(&stack(Mode::Nstance, &[ONE, mail]));
    assert!(text(&joined).starts_with("Content-Type: multipart/mixed"));
    assert!(on_a_machine(&joined).contains("MIME-Version: 1.0"));
}

#[test]
fn types_names_and_headers_of_parts_are_kept() {
    let mut layers = stack(Mode::Append, &[ONE, "echo per boot\n"]);
    layers[1].parts[0].content_type = Some("text/x-shellscript-per-boot".to_owned());
    layers[1].parts[0].filename = Some("boot.sh".to_owned());
    let joined = join(&layers);
    assert_eq!(findings(&joined), "");
    let read = crate::userdata::explode(&joined.bytes, &Machine::default()).unwrap();
    assert_eq!(read[1].content_type, "text/x-shellscript-per-boot");
    assert_eq!(read[1].filename, "boot.sh");
    assert_eq!(read[1].content, b"echo per boot\n");
    // Alone too: its type is nothing that its text says.
    let alone = join(&layers[1..]);
    assert!(text(&alone).contains("filename=\"boot.sh\""));
    let mut typed = stack(Mode::Replace, &["hostname: a\n"]);
    typed[0].parts[0].content_type = Some("text/cloud-config".to_owned());
    assert_eq!(text(&join(&typed)), "#cloud-config\nhostname: a\n");
    let mut named = stack(Mode::Append, &[ONE, "#!/bin/sh\n"]);
    named[1].parts[0].filename = Some("\u{e9}.sh".to_owned());
    assert!(
        findings(&join(&named)).starts_with("error 1:0 this part can't be sent: the file name")
    );
}

#[test]
fn merge_type_that_stays_is_data_still() {
    // With both keys cloud-init takes away one of them.
    let both = "#cloud-config\nmerge_how: dict(recurse_list)\nmerge_type: left\nhostname: b\n";
    let joined = join(&stack(Mode::CloudInit, &[ONE, both]));
    let merged = on_a_machine(&joined);
    assert!(merged.contains("merge_type: left"), "{merged}");
    let patch =
        "#cloud-config-jsonp\n[{\"op\": \"add\", \"path\": \"/merge_how\", \"value\": \"x\"}]";
    let joined = join(&stack(Mode::CloudInit, &[ONE, patch]));
    assert!(joined.has_errors());
}

#[test]
fn the_documentation_can_be_taken_by_its_word() {
    let first = "#cloud-config\nmerge_how: list(append)+dict(recurse_list)\nruncmd: [a]\n";
    let second = "#cloud-config\nruncmd: [b]\n";
    let layers = stack(Mode::CloudInit, &[first, second]);
    let documented = join_with(
        &layers,
        Options {
            as_documented: true,
        },
    );
    assert_eq!(findings(&documented), "");
    assert_eq!(on_a_machine(&documented), "runcmd:\n  - a\n  - b\n");
    assert!(join(&layers).has_errors());
}

#[test]
fn one_part_whose_header_matters_keeps_it() {
    let without_dict = "#cloud-config\nmerge_how: list(append)\nhostname: a\n";
    for (content, merge, expected, is_wrapped) in [
        (without_dict, "dict()", "hostname: a\n", true),
        (ONE, "list(append)", "{}\n", true),
        (
            ONE,
            "dict()",
            "runcmd:\n  - one\n  - both\nhostname: a\n",
            false,
        ),
    ] {
        let mut layers = stack(Mode::Replace, &[content]);
        layers[0].parts[0].merge = Some(merge.to_owned());
        let joined = join(&layers);
        assert_eq!(on_a_machine(&joined), expected, "{merge}");
        assert_eq!(text(&joined) != content, is_wrapped, "{merge}");
    }
}

#[test]
fn an_empty_entry_of_an_archive_is_passed_over() {
    let joined = join(&stack(Mode::Nstance, &["#cloud-config-archive\n- {}\n"]));
    assert_eq!(
        findings(&joined),
        "warning 0:0 this cloud-config is empty\n"
    );
    assert_eq!(text(&joined), "#cloud-config-archive\n- {}\n");
}

/// One layer whose text includes what these addresses say.
fn including(text: &str, bodies: &[(&str, &[u8])]) -> Joined {
    let bodies = bodies
        .iter()
        .map(|(url, body)| ((*url).to_owned(), Arc::from(*body)));
    join(&[Layer {
        included: Some(Arc::new(bodies.collect())),
        ..layer(
            Mode::CloudInit,
            &["#cloud-config\npackages: [curl]\n", text],
        )
    }])
}

#[test]
fn what_is_included_takes_the_place_of_what_includes_it() {
    let joined = including(
        "#include\n# nothing\nhttp://a\n\n  http://b  \n",
        &[
            ("http://a", b"#include-once http://c\n"),
            ("http://b", b"#!/bin/sh\necho b\n"),
            (
                "http://c",
                b"#cloud-config\ntimezone: UTC\nmanage_etc_hosts: [a]\n",
            ),
        ],
    );
    let kinds: Vec<&str> = joined
        .parts
        .iter()
        .map(|part| &*part.content_type)
        .collect();
    assert_eq!(
        kinds,
        [
            "text/cloud-config",
            "text/cloud-config",
            "text/x-shellscript"
        ]
    );
    assert!(!text(&joined).contains("#include"), "{}", text(&joined));
    // What is wrong in it is told with its address, and the line of what was fetched.
    let wrong = &joined.findings[0];
    let place = wrong.place.as_ref().unwrap();
    assert_eq!(wrong.path, "manage_etc_hosts");
    assert_eq!(place.within.as_deref(), Some("http://c"));
    assert_eq!((place.part, place.line), (1, Some(3)));
}

#[test]
fn what_is_included_alone_goes_out_as_it_was_fetched() {
    let body = b"#cloud-config\n# a comment\ntimezone: UTC\n";
    let joined = join(&[Layer {
        included: Some(Arc::new([("http://a".to_owned(), body[..].into())].into())),
        ..layer(Mode::Append, &["#include http://a"])
    }]);
    assert_eq!(joined.bytes, body);
    assert_eq!(joined.findings, []);
    // Not asked for, it stays.
    let kept = join(&[layer(Mode::Append, &["#include http://a"])]);
    assert_eq!(kept.bytes, b"#include http://a");
}

#[test]
fn what_cannot_be_included_is_an_error() {
    for (bodies, told) in [
        (&[][..], "http://a can't be fetched"),
        (&[("http://a", &b"#include http://a"[..])], "over 10 times"),
        (
            &[("http://a", b"#include http://b")],
            "http://b can't be fetched",
        ),
        (
            &[("http://a", b"no user data")],
            "cloud-init can't tell what this is",
        ),
    ] {
        let joined = including("#include\nhttp://a\n", bodies);
        assert!(joined.has_errors());
        let first = &joined.findings[0];
        assert!(first.summary.contains(told), "{}", first.summary);
        assert_eq!(first.place.as_ref().map(|place| place.part), Some(1));
    }
    let joined = including("#include\n# nothing\nhttp://a\n", &[]);
    assert_eq!(joined.findings[0].place.as_ref().unwrap().line, Some(3));
}

#[test]
fn a_part_of_what_is_included_says_where_it_is() {
    let message = b"MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=x\n\n--x\n\
        Content-Type: text/cloud-config\n\ntimezone: [UTC]\n--x--\n";
    let joined = including("#include http://a", &[("http://a", message)]);
    let place = joined.findings[0].place.as_ref().unwrap();
    assert_eq!(place.within.as_deref(), Some("http://a"));
    assert_eq!(place.line, Some(7));
}

#[test]
fn what_is_included_is_gathered_once() {
    use crate::userdata::gather;
    let mut asked = Vec::new();
    let mut fetch = |url: &str| {
        asked.push(url.to_owned());
        match url {
            "a" => Some(Arc::from(&b"#include\nb\na\nc\n"[..])),
            "b" => Some(Arc::from(&b"#include-once\nc\n"[..])),
            _ => None,
        }
    };
    let gathered = gather(b"#include\na\nb\n", None, &mut fetch);
    assert_eq!(gathered.bodies.len(), 2);
    assert_eq!(gathered.missing, ["c"]);
    let typed = gather(b"a", Some("text/x-include-url"), &mut fetch);
    assert_eq!(typed.bodies.len(), 2);
    assert_eq!(gather(b"#!/bin/sh\na\n", None, &mut fetch).missing.len(), 0);
    assert_eq!(asked.len(), 6, "{asked:?}");
    let mut endless = |url: &str| Some(format!("#include\n{url}a\n{url}b\n").into_bytes().into());
    assert!(gather(b"#include a", None, &mut endless).bodies.len() <= 1000);
}

#[test]
fn only_what_cloud_init_reads_is_read() {
    for (text, read) in [
        ("#cloud-config\n", true),
        ("#cloud-config-archive\n", true),
        ("#cloud-config-jsonp\n", true),
        ("MIME-Version: 1.0\n\n", true),
        ("#!/bin/sh\n", false),
        ("#include http://a", false),
        ("## template: jinja\n#cloud-config\n", false),
        ("{\"ignition\": {}}", false),
        ("", false),
    ] {
        assert_eq!(is_read(text.as_bytes()), read, "{text}");
    }
}
