//! Whole configurations: good ones read as meant, bad ones explained as the snapshots show.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use std::time::Duration;

use super::model::{
    Compress, Config, Deliver, DestroyBudget, Encoding, ImageOrder, ImageSort, OnNewer,
};
use super::variables::Given;
use crate::address::GroupName;
use crate::check::Purpose;
use crate::load::{load, load_text};
use crate::pipeline::validate;
use crate::report::diagnostic::render;

/// A configuration that has every field.
const EVERYTHING: &str = include_str!("../../tests/good/everything.jsonc");

fn bad_cases() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/bad");
    let mut cases: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    cases.sort();
    cases
}

#[test]
fn every_bad_configuration_is_explained() {
    let cases = bad_cases();
    assert!(cases.len() >= 45, "only {} cases", cases.len());
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/snapshots"));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    let failed: Vec<String> = cases
        .iter()
        .filter_map(|case| {
            let name = case.file_stem().unwrap().to_str().unwrap().to_owned();
            let mut loaded = load(
                Some(Path::new(case.file_name().unwrap())),
                case.parent().unwrap(),
                &Given::default(),
            );
            validate(&mut loaded, false);
            assert!(!loaded.findings.is_empty(), "{name} has no findings");
            let text = render(&loaded.findings, &loaded.sources, false);
            let result = catch_unwind(AssertUnwindSafe(|| {
                settings.bind(|| insta::assert_snapshot!(format!("bad__{name}"), text));
            }));
            result.is_err().then_some(name)
        })
        .collect();
    assert!(failed.is_empty(), "snapshots differ: {failed:?}");
}

/// Loads a text that must be free of findings.
fn good(text: &str) -> Config {
    let loaded = load_text(Purpose::Plan, "good.jsonc", text, &Given::default());
    assert_eq!(render(&loaded.findings, &loaded.sources, false), "");
    loaded.config.unwrap()
}

const HEAD: &str = r#"
    "cluster": {"id": "prod", "storage": {"any": 1}, "secrets": [], "leader_election": null},
    "shard": {"id": "a", "infra": {"provider": "aws", "region": "r", "zone": "za"}},"#;

#[test]
fn defaults_are_those_of_the_specification() {
    let config = good(&format!("{{{HEAD}}}"));
    assert_eq!(&*config.cluster.slug, "prod");
    assert_eq!(&*config.cluster.fqdn, "");
    assert_eq!(config.shard.request_timeout, Duration::from_secs(30));
    assert_eq!(config.shard.create_rate_limit, Duration::ZERO);
    assert_eq!(config.shard.default_drain_timeout, Duration::from_mins(5));
    assert_eq!(config.shard.image_refresh_interval, Duration::from_hours(6));
    assert_eq!(
        config.destroy_budget,
        DestroyBudget {
            count: 10,
            percent: 10
        }
    );
    assert!(!config.strict);
}

#[test]
fn every_field_is_read() {
    let config = good(EVERYTHING);
    let web = config.group(&GroupName::new("default", "web")).unwrap();
    assert_eq!(web.overrides.keys().copied().collect::<Vec<_>>(), [2]);
    assert_eq!(web.zones.len(), 2);
    assert_eq!(web.drain_timeout.unwrap().value, Duration::from_secs(30));
    assert_eq!(
        web.moved_from.as_ref().unwrap().value.as_str(),
        "default/old"
    );
    assert_eq!(web.size.unwrap().value, 3);
    let template = &config.templates["knd"].value.common;
    assert_eq!(template.files.len(), 6);
    assert_eq!(
        template.files["b.json"].value.deliver,
        Deliver::Userdata {
            path: "/opt/nstance-agent/b.json".into(),
            permissions: None,
            owner: None,
            or_export: false,
        }
    );
    let userdata = template.userdata.as_ref().unwrap();
    assert_eq!(userdata.single().unwrap().encoding, Some(Encoding::Gzip));
    assert_eq!(userdata.compress, Some(Compress::Never));
    let image = &config.images["debian_13_arm64"].value;
    assert_eq!(
        (image.sort, image.order),
        (ImageSort::Name, ImageOrder::Ascending)
    );
    assert_eq!(image.on_newer, OnNewer::NewOnly);
    assert_eq!(
        config.shard.expiry.forced_age,
        Some(Duration::from_hours(48))
    );
    assert_eq!(
        config.destroy_budget,
        DestroyBudget {
            count: 3,
            percent: 5
        }
    );
    assert!(config.strict);
}

#[test]
fn the_documented_examples_plan_unmodified() {
    // GCP's example sets a label that is nstance's own: worth a word, no error.
    let gcp = r#"{
  "cluster": {"id": "c"},
  "shard": {"id": "s", "infra": {"provider": "gcp", "region": "us-central1", "zone": "us-central1-a"}},
  "defaults": {"args": {
    "SourceImage": "projects/debian-cloud/global/images/family/debian-13",
    "ServiceAccount": "nstance-agent@my-project.iam.gserviceaccount.com"
  }},
  "templates": {"default": {"kind": "def", "arch": "amd64", "instance_type": "e2-small"}},
  "groups": {"default": {"workers": {
    "template": "default", "size": 3,
    "args": {"NetworkTags": ["nstance-agent-us-central1-a"], "Labels": {"nstance-group": "workers"}}
  }}}
}"#;
    let loaded = load_text(Purpose::Plan, "gcp.jsonc", gcp, &Given::default());
    assert!(!loaded.findings.has_errors());
    assert_eq!(loaded.findings.len(), 1);

    // The example of vars has groups without a tenant, and says nothing of their instances.
    let vars = r#"{
  "cluster": {"id": "c"},
  "shard": {"id": "s", "infra": {"provider": "aws", "region": "r", "zone": "z"}},
  "vars": {"EXAMPLE": "one",},
  "templates": {"default": {"vars": {"EXAMPLE": "two",},},},
  "groups": {
    "blue": {},
    "green": {"template": "default",},
    "red": {"template": "default", "vars": {"EXAMPLE": "three",},},
    "black": {"vars": {"EXAMPLE": "four",},},
  },
}"#;
    let loaded = load_text(Purpose::Render, "vars.jsonc", vars, &Given::default());
    assert!(loaded.findings.is_empty());
    let names: Vec<_> = loaded
        .config
        .unwrap()
        .groups
        .iter()
        .map(|group| group.name.to_string())
        .collect();
    assert_eq!(
        names,
        [
            "default/blue",
            "default/green",
            "default/red",
            "default/black"
        ]
    );
    let loaded = load_text(Purpose::Plan, "vars.jsonc", vars, &Given::default());
    assert_eq!(loaded.findings.errors(), 4);
}

#[test]
fn vars_of_the_command_line_replace_and_join() {
    let text = format!("{{{HEAD} \"vars\": {{\"A\": 1, \"B\": 2}}}}");
    let vars = [("B", "two"), ("C", "{{ 3 }}")].map(|(k, v)| (k.to_owned(), v.to_owned()));
    let loaded = load_text(Purpose::Plan, "v.jsonc", &text, &Given::vars(vars.clone()));
    let node = loaded.config.unwrap().vars.unwrap();
    assert_eq!(
        node.to_json(),
        serde_json::json!({"A": 1, "B": "two", "C": "{{ 3 }}"})
    );
    let place = node.get("C").unwrap().span;
    assert_eq!(loaded.sources.place(place), "--var C:1:1");
    assert_eq!(loaded.sources.text(place), "{{ 3 }}");

    let without = load_text(
        Purpose::Plan,
        "v.jsonc",
        &format!("{{{HEAD}}}"),
        &Given::vars(vars.clone()),
    );
    assert!(without.config.unwrap().vars.unwrap().get("C").is_some());

    let hidden = format!("{{{HEAD} \"defaults\": {{\"vars\": {{\"B\": 2}}}}}}");
    let hidden = load_text(
        Purpose::Plan,
        "v.jsonc",
        &hidden,
        &Given::vars(vars.clone()),
    );
    assert!(render(&hidden.findings, &hidden.sources, false).contains("`--var B` has no effect"));
}

/// The findings of a configuration with this `state`, and the texts that mustn't be shown.
fn of_state(state: &str) -> (String, Vec<String>) {
    let text = format!("{{{HEAD}\n\"state\": {state}}}");
    let loaded = load_text(Purpose::Identity, "a.jsonc", &text, &Given::default());
    assert_eq!(loaded.config.is_none(), loaded.findings.has_errors());
    let shown = render(&loaded.findings, &loaded.sources, false);
    (
        shown,
        loaded.secrets.0.iter().map(ToString::to_string).collect(),
    )
}

#[test]
fn a_state_is_a_url_without_a_password() {
    for url in [
        "sqlite:states/{cluster}/{shard}.db",
        "states/one.db",
        "postgresql://db.example.com/nstance",
        "postgresql://nstance@db.example.com:5432/nstance?sslmode=verify-full",
        "s3://bucket/prefix",
    ] {
        let config = good(&format!("{{{HEAD} \"state\": \"{url}\"}}"));
        assert_eq!(&*config.state.unwrap().value, url);
    }
    let absent = good(&format!("{{{HEAD} \"state\": null}}"));
    assert!(absent.state.is_none());

    for (url, password) in [
        ("postgresql://me:pa55@db/nstance", "pa55"),
        ("postgres://me:p@ss@db,other/nstance", "p@ss"),
        ("postgresql://db/nstance?user=me&password=x", "x"),
        ("postgresql:///nstance?host=/run&Password=pa55", "pa55"),
        ("s3://bucket/prefix?secret_access_key=pa55", "pa55"),
    ] {
        let (shown, secrets) = of_state(&format!("\"{url}\""));
        assert!(
            shown.contains("`state` has a password in its URL"),
            "{shown}"
        );
        assert!(shown.contains("a.jsonc:4:10"), "{shown}");
        for way in ["PGPASSWORD", ".pgpass", "--state or NSTANCE_STATE"] {
            assert!(shown.contains(way), "{shown}");
        }
        assert_eq!(secrets, [password, url]);
    }
    for (state, said) in [
        ("\"\"", "`state` is empty"),
        ("5", "`state` must be a string"),
        ("{\"url\": \"sqlite:a\"}", "`state` must be a string"),
    ] {
        let (shown, _) = of_state(state);
        assert!(shown.contains(said), "{shown}");
        assert!(shown.contains("a.jsonc:4:10"), "{shown}");
    }
}

#[test]
fn a_byte_order_mark_shifts_nothing() {
    let text = format!("\u{feff}{{{HEAD} \"stric\": 1}}");
    let loaded = load_text(Purpose::Plan, "bom.jsonc", &text, &Given::default());
    let span = loaded
        .findings
        .iter()
        .next()
        .unwrap()
        .label
        .as_ref()
        .unwrap()
        .span;
    assert_eq!(loaded.sources.text(span), "\"stric\"");
}

/// What is left when writing stops in the middle, or one character goes astray, is explained too.
#[test]
fn no_broken_text_makes_it_panic() {
    let explain = |text: &str| {
        let loaded = load_text(Purpose::Plan, "broken.jsonc", text, &Given::default());
        let rendered = render(&loaded.findings, &loaded.sources, false);
        assert_eq!(rendered.is_empty(), loaded.findings.is_empty(), "{text}");
        crate::report::diagnostic::to_json(&loaded.findings, &loaded.sources);
        loaded.findings.has_errors()
    };
    let end = EVERYTHING.trim_end().len();
    for cut in (0..end).step_by(7) {
        assert!(explain(&EVERYTHING[..cut]), "cut at {cut}");
    }
    for (index, at) in (0..end).step_by(11).enumerate() {
        let stray = [
            "\"", "{", "]", ",", "\\", "é", "\u{a0}", "\n", "0", "'", "/*",
        ][index % 11];
        explain(&format!(
            "{}{stray}{}",
            &EVERYTHING[..at],
            &EVERYTHING[at..]
        ));
        explain(&format!(
            "{}{stray}{}",
            &EVERYTHING[..at],
            &EVERYTHING[at + 1..]
        ));
    }
}
