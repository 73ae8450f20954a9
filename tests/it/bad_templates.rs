//! Templates that are wrong: the message points into the configuration, at the character inside the
//! string, whatever escapes stand before it.

use insta::assert_snapshot;

use crate::harness::Harness;

/// A configuration with a template's members, each on a line of its own.
fn with(template: &str) -> Harness {
    Harness::with(&format!(
        r#"{{
  "cluster": {{ "id": "test" }},
  "shard": {{ "id": "one", "infra": {{ "provider": "aws", "region": "us-west-2", "zone": "us-west-2a" }}, "subnet_pools": {{ "main": ["subnet-1"] }} }},
  "images": {{ "debian": {{ "provider": "aws", "filters": [{{ "name": "name", "values": ["debian-13-arm64-*"] }}] }} }},
  "vars": {{ "GREETING": "Hello" }},
  "templates": {{
    "vm": {{
      "kind": "srv", "arch": "arm64", "instance_type": "m7g.large", "subnet_pool": "main",
      {template}
    }},
  }},
  "groups": {{ "default": {{ "web": {{ "template": "vm", "size": 2 }} }} }},
}}
"#
    ))
}

/// What `validate` says, where it can see it, and else what `plan` says.
fn told(template: &str) -> String {
    let harness = with(template);
    let validated = harness.run("validate");
    let ended = if validated.code == Some(0) {
        harness.run("plan --sim")
    } else {
        validated
    };
    assert_eq!(ended.code, Some(1), "{ended}");
    assert_eq!(harness.files(), ["nstance.jsonc"]);
    ended.to_string()
}

#[test]
fn an_undefined_variable() {
    assert_snapshot!(told(r#""args": { "KeyName": "key-{{ $name }}" },"#));
}

#[test]
fn an_unknown_function_with_the_nearest() {
    assert_snapshot!(told(
        r#""args": { "KeyName": "{{ prinft \"%s\" .Vars.GREETING }}" },"#
    ));
}

#[test]
fn an_action_that_is_not_closed() {
    assert_snapshot!(told(r#""args": { "KeyName": "key-{{ .Vars.GREETING }" },"#));
}

#[test]
fn a_block_that_is_not_closed() {
    assert_snapshot!(told(
        r##""userdata": "#!/bin/sh\n{{ if .Vars.GREETING }}\necho hi\n","##
    ));
}

#[test]
fn too_few_and_too_many_arguments() {
    assert_snapshot!(told(
        r#""args": { "KeyName": "{{ len }}", "KernelId": "{{ len .Vars.GREETING .Vars.GREETING }}" },"#
    ));
}

#[test]
fn a_field_that_an_instance_does_not_have() {
    assert_snapshot!(told(r#""args": { "KeyName": "{{ .Instance.Nope }}" },"#));
}

#[test]
fn a_table_that_does_not_exist() {
    assert_snapshot!(told(r#""args": { "KeyName": "{{ .Instanc.ID }}" },"#));
}

#[test]
fn an_image_that_is_not_configured() {
    assert_snapshot!(told(r#""args": { "ImageId": "{{ .Image.nope }}" },"#));
}

#[test]
fn an_address_before_there_is_one() {
    assert_snapshot!(told(r#""userdata": "ip={{ .Instance.IP4 }}","#));
}

#[test]
fn userdata_that_is_too_large_and_what_took_most() {
    let filler = "0123456789abcdef".repeat(1_200);
    let told = told(&format!(
        r##""userdata": {{ "content": "#!/bin/sh\n# {{{{ .Instance.ID }}}}\n{filler}", "compress": "never" }},"##
    ));
    assert_snapshot!(told.replace(&filler, "[19,200 CHARACTERS]"));
}

#[test]
fn characters_beyond_ascii_before_the_place() {
    assert_snapshot!(told(
        r#""args": { "KeyName": "Grüße aus 東京 🚀 {{ nope }}" },"#
    ));
}

#[test]
fn escapes_before_the_place() {
    assert_snapshot!(told(
        r#""userdata": "a\tb\n\"quoted\" \u00e9 \ud83d\ude80 {{ nope }} rest","#
    ));
}

#[test]
fn userdata_in_base64() {
    // "#!/bin/sh\necho one\necho {{ nope }}\n"
    assert_snapshot!(told(
        r#""userdata": { "source": "inline", "encoding": "base64", "content": "IyEvYmluL3NoCmVjaG8gb25lCmVjaG8ge3sgbm9wZSB9fQo=" },"#
    ));
}

#[test]
fn a_file_of_userdata() {
    let harness = with(r#""userdata": { "source": "url", "content": "file:boot.sh" },"#);
    harness.write("boot.sh", "#!/bin/sh\necho one\necho {{ nope }}\n");
    let ended = harness.run("validate");
    assert_eq!(ended.code, Some(1));
    assert_snapshot!(ended);
    harness.write("boot.sh", "#!/bin/sh\necho one\necho {{ .Vars.NOPE }}\n");
    assert_snapshot!("a_file_with_a_var_that_is_not_set", harness.ok("validate"));
    std::fs::remove_file(harness.path("boot.sh")).unwrap();
    let ended = harness.run("validate");
    assert_eq!(ended.code, Some(1));
    assert_snapshot!(ended);
}

#[test]
fn a_comparison_of_what_cannot_be_compared() {
    assert_snapshot!(told(
        r#""args": { "KeyName": "{{ if eq .Vars.GREETING 1 }}a{{ end }}" },"#
    ));
}

#[test]
fn an_index_out_of_range() {
    assert_snapshot!(told(
        r#""vars": { "LIST": ["a", "b"] }, "args": { "KeyName": "{{ index .Vars.LIST 5 }}" },"#
    ));
}

#[test]
fn deep_inside_the_args() {
    assert_snapshot!(told(
        r#""args": { "NetworkInterfaces": [{ "DeviceIndex": 0 }, { "DeviceIndex": 1, "Description": "x {{ .Vars.GREETING | nope }}" }] },"#
    ));
}

#[test]
fn a_var_that_is_not_set_is_a_warning_and_strictly_an_error() {
    let harness =
        with(r#""userdata": "{{ .Vars.GREETNIG }}{{ if .Vars.OPTIONAL }}x{{ end }} world","#);
    let ended = harness.ok("plan --sim");
    assert!(
        !ended.stderr.contains("`OPTIONAL`"),
        "what is tested may be missing: {ended}"
    );
    assert_snapshot!(ended.stderr);
    let ended = harness.run("plan --sim --strict");
    assert_eq!(ended.code, Some(1));
    assert_snapshot!(ended.stderr);
}

/// A configuration with snippets, each on a line of its own, and a userdata.
fn with_snippets(snippets: &str, userdata: &str) -> Harness {
    Harness::with(&format!(
        r#"{{
  "cluster": {{ "id": "test" }},
  "shard": {{ "id": "one", "infra": {{ "provider": "sim", "region": "r", "zone": "z" }} }},
  "vars": {{ "GREETING": "Hello", "DB_PASSWORD": "hunter2" }},
  "templates_lib": {{
    {snippets}
  }},
  "templates": {{
    "vm": {{
      "kind": "srv", "arch": "arm64", "instance_type": "small",
      "userdata": "{userdata}",
    }},
  }},
  "groups": {{ "default": {{ "web": {{ "template": "vm", "size": 2 }} }} }},
}}
"#
    ))
}

fn told_of_snippets(snippets: &str, userdata: &str) -> String {
    let harness = with_snippets(snippets, userdata);
    let ended = harness.run("validate");
    assert_eq!(ended.code, Some(1), "{ended}");
    ended.to_string()
}

#[test]
fn snippets_that_are_not_templates_all_at_once() {
    assert_snapshot!(told_of_snippets(
        r##""one": "a\tb\n\"é\" {{ prinft \"%s\" . }}",
    "two": "#!/bin/sh\n{{ if .Vars.GREETING }}",
    "three": "{{ $name }}","##,
        r#"{{ template \"one\" . }}{{ template \"nowhere\" }}"#
    ));
}

#[test]
fn a_snippet_that_is_not_there_with_the_nearest() {
    assert_snapshot!(told_of_snippets(
        r#""header": "x",
    "unused": "{{ template \"heder\" . }}","#,
        r#"\n\n{{ template \"haeder\" . }}"#
    ));
}

#[test]
fn a_field_that_is_not_there_within_a_snippet() {
    assert_snapshot!(told_of_snippets(
        r##""header": "# {{ .Instance.Nope }}","##,
        r#"{{ template \"header\" . }}"#
    ));
}

#[test]
fn two_snippets_that_define_the_same() {
    assert_snapshot!(told_of_snippets(
        r#""one": "{{ define \"x\" }}1{{ end }}",
    "two": "\n{{ define \"x\" }}2{{ end }}","#,
        "text"
    ));
}

#[test]
fn a_snippet_that_fails_for_instances() {
    assert_snapshot!(told_of_snippets(
        r#""outer": "{{ template \"inner\" .Vars }}",
    "inner": "\t\"{{ index .GREETING 70 }}\"","#,
        r#"#!/bin/sh\n{{ template \"outer\" . }}"#
    ));
}

#[test]
fn what_may_be_secret_is_not_shown() {
    let told = told_of_snippets(r#""a": "","#, "{{ index .Vars.DB_PASSWORD 70 }}");
    assert!(!told.contains("hunter2"), "{told}");
    assert_snapshot!(told);
}

#[test]
fn a_snippet_in_a_file() {
    let harness = with_snippets(
        r#""a": { "source": "url", "content": "file:a.tpl" },"#,
        r#"{{ template \"a\" . }}"#,
    );
    harness.write("a.tpl", "one\ntwo {{ index .Vars.GREETING 70 }}\n");
    let ended = harness.run("validate");
    assert_eq!(ended.code, Some(1));
    assert_snapshot!(ended);
    std::fs::remove_file(harness.path("a.tpl")).unwrap();
    let ended = harness.run("validate");
    assert_eq!(ended.code, Some(1));
    assert_snapshot!(ended);
}

#[test]
fn what_is_not_there_is_told_with_its_line_in_a_file() {
    let harness = with_snippets(
        r#""a": { "source": "url", "content": "file:a.tpl" },
    "b": { "source": "url", "content": "file:b.tpl" },"#,
        r#"{{ template \"a\" . }}"#,
    );
    harness.write("a.tpl", "one\n é {{ .Instance.Nmae }}\n");
    harness.write("b.tpl", "\n\n{{ template \"c\" . }}");
    assert_snapshot!(harness.run("validate"));
    harness.write("a.tpl", "{{ define \"x\" }}1{{ end }}");
    harness.write("b.tpl", "\n {{ define \"x\" }}2{{ end }}");
    assert_snapshot!(harness.run("validate"));
    let harness = with(r#""userdata": { "source": "url", "content": "file:boot.sh" },"#);
    harness.write(
        "boot.sh",
        "#!/bin/sh\necho {{ .Vrs.A }} {{ .Image.nope }}\n{{ template \"none\" }}\n",
    );
    assert_snapshot!(harness.run("validate"));
}

#[test]
fn a_limit_is_named_with_its_value() {
    let told = |userdata: &str| told_of_snippets(r#""a": "","#, userdata);
    assert_snapshot!(told("{{ range 100000000 }}{{ end }}"));
    assert_snapshot!(told(
        "{{ range 100000 }}0123456789abcdef{{ $.Instance.ID }}{{ end }}"
    ));
    assert_snapshot!(told(
        r#"{{ define \"x\" }}{{ template \"x\" . }}{{ end }}{{ template \"x\" . }}"#
    ));
}

#[test]
fn snippets_are_called_from_everywhere() {
    let harness = with_snippets(
        r#""page": "<{{ template \"name\" . }}{{ template \"greet\" . }}>",
    "name": { "encoding": "base64", "content": "e3sgLkdyb3VwLk5hbWUgfX0=" },
    "helpers": "{{ define \"greet\" }} {{ .Vars.GREETING }}{{ end }}","#,
        r#"#!/bin/sh\n# {{ template \"page\" . }}\n"#,
    );
    let shown = harness.ok("render default/web/1");
    assert!(shown.stdout.contains("# <web Hello>"), "{shown}");
    assert_eq!(shown.stderr, "");
}

#[test]
fn a_file_that_waits_for_its_address_calls_snippets() {
    let harness = Harness::with(
        r#"{
  "cluster": { "id": "test" },
  "shard": { "id": "one", "infra": { "provider": "sim", "region": "r", "zone": "z" } },
  "templates_lib": { "line": "{{ template \"ip\" . }} of {{ .Group.Name }}", "names": "{{ define \"ip\" }}{{ .Instance.IP4 }}{{ end }}" },
  "groups": { "default": { "web": {
    "size": 1, "kind": "srv", "arch": "arm64", "instance_type": "small",
    "files": { "line": { "kind": "string", "template": "{{ template \"line\" . }}" } },
  } } },
}
"#,
    );
    // Through a plan file, which has to bring the snippets along.
    harness.ok("plan --out it.plan");
    harness.ok("apply it.plan");
    let file = std::fs::read_to_string(harness.path(".nstance/test/one/files/default/web/0/line"))
        .unwrap();
    let (address, group) = file.split_once(' ').unwrap();
    assert!(address.parse::<std::net::Ipv4Addr>().is_ok(), "{file}");
    assert_eq!(group, "of web");
}

#[test]
fn what_fails_for_the_last_instance_alone() {
    assert_snapshot!(told(
        r#""args": { "KeyName": "{{ index \"a\" .Instance.Index }}" },"#
    ));
}

#[test]
fn what_is_too_large_for_the_last_instance_alone() {
    // Its number has a digit more than the first one's.
    let text = "x".repeat(16_384 - 1);
    let harness = with(&format!(
        r#""userdata": {{ "source": "inline", "content": "{text}{{{{ .Instance.Index }}}}", "compress": "never" }},"#
    ));
    harness.ok("validate");
    harness.edit("\"size\": 2", "\"size\": 11");
    let ended = harness.run("validate");
    assert_eq!(ended.code, Some(1), "{ended}");
    let told = ["userdata is too large", "16385 bytes"];
    assert!(
        told.iter().all(|told| ended.stderr.contains(told)),
        "{ended}"
    );
}
