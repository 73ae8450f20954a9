//! Files of kind `erb`: what Ruby gets, when it runs, and what is said where it is missing.
//!
//! In: groups with such files on the embedded cloud. Out: exported files, userdata and findings. Must
//! not: check what ERB means; `crates/erb` does.

use insta::assert_snapshot;

use crate::harness::{CANARY, Ended, Harness};

/// A group that consumes another, with these files.
fn with(files: &str) -> Harness {
    Harness::with(&format!(
        r#"{{
  "cluster": {{"id": "shop"}},
  "shard": {{"id": "one", "infra": {{"provider": "sim", "region": "eu-1", "zone": "a"}}}},
  "groups": {{"default": {{
    "db": {{"size": 1, "instance_type": "small", "vars": {{"port": 5432}},
      "provides": {{"db": {{"properties": {{"port": "{{{{ .Vars.port }}}}"}}}}}}}},
    "web": {{"size": 2, "instance_type": "small", "vars": {{"greeting": "hello"}},
      "consumes": {{"db": {{}}}},
      "files": {{
{files}
      }}}}
  }}}}
}}"#
    ))
}

/// Runs a command that finds Ruby.
fn run(harness: &Harness, words: &str) -> Ended {
    let mut command = harness.command(words);
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    harness.end(words, command)
}

#[track_caller]
fn ok(harness: &Harness, words: &str) -> Ended {
    let ended = run(harness, words);
    assert_eq!(ended.code, Some(0), "{ended}");
    ended
}

fn exported(harness: &Harness, file: &str) -> String {
    let path = format!(".nstance/shop/one/files/default/{file}");
    String::from_utf8(harness.read(&path)).unwrap()
}

/// False where Ruby is missing, which CI must not accept.
#[expect(clippy::print_stdout, reason = "says why nothing was tested")]
fn has_ruby() -> bool {
    let found = std::process::Command::new("ruby").arg("-v").output();
    let has_ruby = found.is_ok_and(|output| output.status.success());
    if !has_ruby {
        let in_ci = std::env::var_os("CI").is_some_and(|value| value == "true");
        assert!(!in_ci, "install Ruby 3");
        println!("skipped: there is no Ruby");
    }
    has_ruby
}

#[test]
fn files_have_the_context_of_their_instance() {
    if !has_ruby() {
        return;
    }
    let harness = with(
        r#"        "instance": {"kind": "erb", "template": "<%= name %> <%= index %> <%= spec.id %> <%= spec.az.inspect %> <%= spec.address %> <%= spec.bootstrap %> <%= spec.deployment %> <%= spec.release.inspect %>\n"},
        "vars": {"kind": "erb", "template": "<% if_p('greeting') do |it| -%>\n<%= it %>\n<% end -%>\n"},
        "own": {"kind": "erb", "template": "<%= p('of.index') %>\n", "properties": {"of": {"index": "no. {{ .Instance.Number }}"}}},
        "given": {"kind": "erb", "template": "<%= spec.release.version %> <%= p('text') %>\n", "context": {"release": {"version": 7}, "properties": {"text": "{{ 1 }}"}}},
        "links": {"kind": "erb", "template": "<%= link('db').address %> <%= link('db').p('port') %> <%= link('db').instances.map { |i| [i.name, i.index, i.id, i.az, i.address, i.bootstrap] } %>\n"},
        "plain": {"kind": "erb", "template": "no {{ tag }}\n"},
        "motd": {"kind": "erb", "template": "<%= spec.id %>", "deliver": "userdata", "path": "/etc/motd"}"#,
    );
    ok(&harness, "validate");
    ok(&harness, "apply --auto-approve");
    assert_eq!(
        exported(&harness, "web/1/instance"),
        "web 1 web-1 nil shop-web-1.default.one.internal false shop nil\n"
    );
    let files = ["vars", "own", "given", "links", "plain"];
    let texts = files.map(|file| exported(&harness, &format!("web/0/{file}")));
    assert_snapshot!(texts.concat(), @r#"
    hello
    no. 1
    7 {{ 1 }}
    shop-db.default.one.internal 5432 [["db", 0, "db-0", "a", "shop-db-0.default.one.internal", true]]
    no {{ tag }}
    "#);
    let shown = ok(&harness, "show default/web/1 --json").json();
    assert_snapshot!(shown["instances"][0]["userdata"].as_str().unwrap(), @r#"
    #cloud-config
    write_files:
    - path: "/etc/motd"
      content: "web-1"
    "#);
}

#[test]
fn a_plan_without_changes_needs_no_ruby() {
    if !has_ruby() {
        return;
    }
    let harness = with(
        r#"        "a": {"kind": "erb", "template": "<%= index %>\n"},
        "b": {"kind": "erb", "template": "<%= p('greeting') %>\n"}"#,
    );
    ok(&harness, "apply --auto-approve");
    let unchanged = harness.ok("plan --detailed-exitcode");
    assert!(unchanged.stderr.is_empty(), "{unchanged}");
    // A template with another text and the same output.
    harness.edit("<%= index %>", "<%= 0 + index %>");
    harness.refused(".nstance/shop/one.db", "plan");
    ok(&harness, "plan --detailed-exitcode");
    harness.ok("plan --detailed-exitcode");
    // A plan of a part keeps the outputs of the rest.
    harness.edit("<%= p('greeting') %>", "<%= p('greeting') + '' %>");
    ok(&harness, "plan --target default/web/0");
    ok(&harness, "plan --target default/web/1");
    harness.ok("plan --detailed-exitcode");
    harness.edit("hello", "hi");
    let changed = ok(&harness, "apply --auto-approve");
    assert!(changed.stdout.contains("2 changed"), "{changed}");
    assert_eq!(exported(&harness, "web/1/b"), "hi\n");
    harness.ok("plan --detailed-exitcode");
}

#[test]
fn own_addresses_are_known_once_the_instance_exists() {
    if !has_ruby() {
        return;
    }
    let harness = with(
        r#"        "ip": {"kind": "erb", "template": "<%= spec.ip %> <%= spec.networks.default.ip %> <%= spec.networks.default.dns_record_name %> <%= p('ip') %>\n",
          "properties": {"ip": "{{ .Instance.IP4 }}"}, "context": {"persistent_disk": 1}}"#,
    );
    let plan = ok(&harness, "plan --out p");
    assert!(plan.stdout.contains("(known after apply)"), "{plan}");
    ok(&harness, "apply p");
    let shown = ok(&harness, "show default/web/1 --json").json();
    let ip = shown["instances"][0]["ip4"].as_str().unwrap();
    assert_eq!(
        exported(&harness, "web/1/ip"),
        format!("{ip} {ip} shop-web-1.default.one.internal {ip}\n")
    );
    ok(&harness, "plan --detailed-exitcode");
    harness.ok("plan --detailed-exitcode");
    harness.edit(
        r#""kind": "erb", "#,
        r#""kind": "erb", "deliver": "userdata", "#,
    );
    assert_snapshot!(run(&harness, "plan").stderr, @r#"
    error: a template can't be rendered
       ┌─ nstance.jsonc:10:76
    10 │ …ver": "userdata", "template": "<%= spec.ip %> <%= spec.networks.default.ip %> <%= spec.networks.defa…
       │                                          ^ `spec.ip` is known only once the instance exists
    also affects default/web/0 and 1 more
    hint: Read it in a file instead, or fix the address in args, where it is known when planning
    "#);
}

#[test]
fn addresses_of_linked_groups_come_with_apply() {
    if !has_ruby() {
        return;
    }
    let harness = with(
        r#"        "db": {"kind": "erb", "template": "<%= p('db') %> <%= index %>\n",
          "properties": {"db": "{{ range .Link.db.Instances }}{{ .IP4 }}{{ end }}"}},
        "motd": {"kind": "erb", "template": "<%= p('db') %> <%= index %>", "deliver": "userdata",
          "properties": {"db": "{{ range .Link.db.Instances }}{{ .IP4 }}{{ end }}"}}"#,
    );
    ok(&harness, "apply --auto-approve");
    let shown = ok(&harness, "show default/db/0 --json").json();
    let ip = shown["instances"][0]["ip4"].as_str().unwrap();
    assert_eq!(exported(&harness, "web/1/db"), format!("{ip} 1\n"));
    let shown = ok(&harness, "show default/web/1 --json").json();
    let userdata = shown["instances"][0]["userdata"].as_str().unwrap();
    assert!(userdata.contains(&format!("{ip} 1")), "{userdata}");
    ok(&harness, "plan --detailed-exitcode");
}

#[test]
fn an_error_has_its_place_in_the_template() {
    if !has_ruby() {
        return;
    }
    let harness = with(
        r#"        "a.conf": {"kind": "erb", "template": "one\ntwo\n  <%= p('none.such') %> <%= index %>\n"},
        "b.conf": {"kind": "erb", "template": "<%= raise 'no' %>"},
        "c.conf": {"kind": "erb", "template": "a <%= 1"}"#,
    );
    assert_snapshot!(run(&harness, "plan").stderr, @r#"
    warning: an ERB tag has no end
       ┌─ nstance.jsonc:12:50
    12 │         "c.conf": {"kind": "erb", "template": "a <%= 1"}
       │                                                  ^ no `%>` follows
    hint: Close it with `%>`; ERB takes the rest of the file as text

    error: a template can't be rendered
       ┌─ nstance.jsonc:10:60
    10 │         "a.conf": {"kind": "erb", "template": "one\ntwo\n  <%= p('none.such') %> <%= index %>\n"},
       │                                                            ^ Error filling in template 'a.conf' (line 3: Can't find property '["none.such"]')
    also affects default/web/0 and 1 more

    error: a template can't be rendered
       ┌─ nstance.jsonc:11:48
    11 │         "b.conf": {"kind": "erb", "template": "<%= raise 'no' %>"},
       │                                                ^ Error filling in template 'b.conf' (line 1: no)
    also affects default/web/0 and 1 more
    "#);
    let validated = run(&harness, "validate");
    assert_eq!(validated.code, Some(1), "{validated}");
}

#[test]
fn without_ruby_there_is_one_error() {
    let harness = with(
        r#"        "a": {"kind": "erb", "template": "<%= index %>\n"},
        "b": {"kind": "erb", "template": "<%= p('greeting') %>\n"},
        "plain": {"kind": "erb", "template": "text\n"}"#,
    );
    let plan = harness.run("plan");
    assert_eq!(plan.code, Some(1), "{plan}");
    assert_snapshot!(plan.stderr, @r#"
    error: files of kind `erb` need Ruby, but `ruby` is missing
       ┌─ nstance.jsonc:10:43
    10 │         "a": {"kind": "erb", "template": "<%= index %>\n"},
       │                                           ^ needs Ruby
    not rendered: `a`, `b` of default/web
    hint: Install Ruby 3 (`apt-get install ruby`), or pass --ruby PATH
    "#);
    let validated = harness.ok("validate");
    assert!(
        validated.stderr.starts_with("warning: files of kind `erb`"),
        "{validated}"
    );
}

#[test]
fn what_sees_a_sensitive_value_is_masked() {
    if !has_ruby() {
        return;
    }
    let harness = with(
        r#"        "a": {"kind": "erb", "template": "<%= p('a') %>\n", "properties": {"a": "${var.token}"}},
        "b": {"kind": "erb", "template": "<%= p('a') %>\n", "context": {"properties": {"a": "${var.token}"}}},
        "c": {"kind": "erb", "template": "<%= p('greeting') %>\n"},
        "d": {"kind": "erb", "template": "<%= p('a') %>", "deliver": "userdata", "properties": {"a": "{{ .Vars.greeting }}"}}"#,
    );
    let variables = format!(
        r#""variables": {{"token": {{"type": "string", "sensitive": true, "default": "{CANARY}"}}}}, "cluster""#
    );
    harness.edit("\"cluster\"", &variables);
    harness.edit("hello", "${var.token}");
    // The harness refuses output that has the secret.
    ok(&harness, "plan");
    ok(&harness, "apply --auto-approve");
    for file in ["a", "b", "c"] {
        assert_eq!(
            exported(&harness, &format!("web/0/{file}")),
            format!("{CANARY}\n")
        );
    }
    ok(&harness, "show --json");
    harness.edit("\"<%= p('greeting') %>", "\"<%= Integer(p('greeting')) %>");
    let failed = run(&harness, "plan");
    assert!(
        failed.stderr.contains("why isn't shown"),
        "the error has the value in it: {failed}"
    );
}

#[test]
fn a_rollback_renders_the_last_good_files() {
    if !has_ruby() {
        return;
    }
    let harness = Harness::with(
        r#"{
  "cluster": {"id": "shop"},
  "shard": {"id": "one", "infra": {"provider": "sim", "region": "eu-1", "zone": "a", "options": {
    "boot_time": "5s", "unhealthy": {"bad": 1.0}, "strict_images": true,
    "images": [{"id": "good", "name": "good"}, {"id": "bad", "name": "bad"}]}}},
  "groups": {"default": {"web": {
    "kind": "web", "instance_type": "small", "size": 2, "args": {"ImageId": "good"},
    "files": {"a": {"kind": "erb", "template": "old <%= spec.id %> <%= spec.ip %>\n"}},
    "update": {"on_failure": "rollback", "order": "delete_first", "max_unavailable": 1,
      "health": {"check": "tcp", "port": 80, "interval": "5s", "deadline": "1m"}}
  }}}
}"#,
    );
    ok(&harness, "apply --auto-approve");
    harness.edit("\"ImageId\": \"good\"", "\"ImageId\": \"bad\"");
    harness.edit("old ", "new ");
    let back = run(&harness, "apply --auto-approve");
    assert_eq!(back.code, Some(1), "{back}");
    let shown = ok(&harness, "show --json").json();
    for instance in shown["instances"].as_array().unwrap() {
        assert_eq!(instance["args"]["ImageId"], "good", "{back}");
        let slot = instance["address"].as_str().unwrap().rsplit('/').next();
        let slot = slot.unwrap();
        let ip = instance["ip4"].as_str().unwrap();
        assert_eq!(
            exported(&harness, &format!("web/{slot}/a")),
            format!("old web-{slot} {ip}\n")
        );
    }
}
