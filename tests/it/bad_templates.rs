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
fn an_env_value_with_a_line_break() {
    assert_snapshot!(told(
        r#""files": { "a.env": { "kind": "env", "template": { "ONE": "1", "TWO": "{{ .Vars.GREETING }}\nworld" } } },"#
    ));
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
