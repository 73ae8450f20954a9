//! The planner's own speed: merging, rendering, and plans that find nothing to do.
//!
//! Run with `cargo bench --bench planner`; `cargo xtask bench` writes the table of
//! `docs/performance.md`.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use divan::{Bencher, black_box};
use nstance::address::{Address, GroupName};
use nstance::apply::driver::{World, drive};
use nstance::apply::engine::{Limits, Starts};
use nstance::apply::export::Exporter;
use nstance::check::Purpose;
use nstance::clock::{Clock, FixedClock, Timestamp};
use nstance::config::load::Loaded;
use nstance::config::model::ProviderKind;
use nstance::config::variables::Given;
use nstance::load::load_text;
use nstance::merge::group::merge_group;
use nstance::merge::zones::Seat;
use nstance::pipeline::{self, Request};
use nstance::plan::change::Plan;
use nstance::plan::inputs::Options;
use nstance::provider::rules::Rules;
use nstance::provider::sim::{SimCloud, SimOptions};
use nstance::render::data::InstanceFacts;
use nstance::render::instance::Report;
use nstance::render::userdata::Bodies;
use nstance_state::{Backend as _, Identity, Key, SqliteFile, Store};

fn main() {
    divan::main();
}

const NOW: &str = "2026-11-21T12:00:00Z";

/// A fleet in one group: userdata of about 1 KB that names its instance, args and a file.
fn configuration(size: usize) -> Loaded {
    let mut lines = String::new();
    for line in 0..20 {
        lines.push_str(&format!(
            "echo 'line {line} of {{{{ .Vars.role }}}} in {{{{ .Cluster.ID }}}}'\\n"
        ));
    }
    let text = format!(
        r##"{{
  "cluster": {{"id": "bench"}},
  "shard": {{"id": "one", "infra": {{"provider": "sim", "region": "r", "zone": "z"}}}},
  "images": {{"debian": {{"provider": "sim", "filters": [{{"name": "name", "values": ["debian-13-amd64-*"]}}]}}}},
  "defaults": {{"vars": {{"role": "none", "nested": {{"a": 1, "b": [1, 2, 3]}}}}, "args": {{"Monitoring": {{"Enabled": true}}}}}},
  "templates": {{"web": {{
    "kind": "web", "arch": "amd64", "instance_type": "small",
    "args": {{"ImageId": "{{{{ .Image.debian }}}}", "Monitoring": {{"Enabled": false}}}},
    "vars": {{"role": "web"}},
    "userdata": "#!/bin/sh\n{lines}echo {{{{ .Instance.ID }}}}\n",
    "files": {{"instance.env": {{"kind": "env", "template": {{"ID": "{{{{ .Instance.ID }}}}"}}}}}}
  }}}},
  "groups": {{"default": {{"web": {{"template": "web", "size": {size}}}}}}}
}}"##
    );
    let loaded = load_text(Purpose::Plan, "bench.jsonc", &text, &Given::default());
    assert!(!loaded.findings.has_errors(), "{:?}", loaded.findings);
    loaded
}

fn clock() -> Arc<dyn Clock> {
    Arc::new(FixedClock::new(
        Timestamp::parse(NOW).expect("a constant that is a time"),
    ))
}

fn identity() -> Identity {
    Identity {
        cluster: "bench".into(),
        shard: "one".into(),
        provider: "sim".into(),
    }
}

fn cloud(folder: &Path) -> SimCloud {
    let options = SimOptions::default();
    SimCloud::open(&folder.join("sim.db"), &options, ProviderKind::Sim, clock())
        .expect("the folder can be written")
}

/// Plans as `nstance plan` does, state and cloud opened anew.
fn plan(loaded: &Loaded, folder: &Path) -> Plan {
    let cloud = cloud(folder);
    let mut store = state(folder).open_to_read(None).ok();
    make(loaded, folder, store.as_deref_mut(), &cloud)
}

fn state(folder: &Path) -> SqliteFile {
    SqliteFile::new(folder.join("state.db"), Some(Arc::new(key())))
}

fn make(
    loaded: &Loaded,
    folder: &Path,
    store: Option<&mut (dyn Store + 'static)>,
    cloud: &SimCloud,
) -> Plan {
    let identity = identity();
    let clock = clock();
    let config = loaded.config.as_ref().expect("it loaded");
    let prepared = pipeline::prepare(config, &loaded.sources, folder, false, |_| None, false);
    let made = pipeline::plan(Request {
        config,
        sources: &loaded.sources,
        document: None,
        manifest: None,
        prepared: prepared.unwrap_or_else(|found| panic!("{found:?}")),
        store: store.map(|store| store as &mut dyn Store),
        cloud: Some(cloud),
        observe: true,
        running: None,
        provider_name: "sim",
        identity: &identity,
        rules: Rules::of(ProviderKind::Sim),
        clock: &*clock,
        refresh_images: false,
        options: &Options::default(),
        progress: &mut |_| {},
    });
    match made {
        Ok(made) => made.plan,
        Err(error) => panic!("no plan: {error}"),
    }
}

/// Creates a fleet on the embedded cloud; kept under `target/` between runs.
fn fleet(size: usize) -> (Loaded, PathBuf) {
    let loaded = configuration(size);
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("sealed-{size}"));
    let ready = folder.join("ready");
    if !ready.exists() {
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).expect("the target folder can be written");
        apply(&loaded, &folder);
        std::fs::write(ready, "").expect("the target folder can be written");
    }
    (loaded, folder)
}

fn apply(loaded: &Loaded, folder: &Path) {
    let cloud = cloud(folder);
    let plan = make(loaded, folder, None, &cloud);
    let clock = clock();
    let (identity, now, key) = (identity(), clock.now().into(), key().into());
    let mut store = state(folder)
        .create(&identity, &plan.lineage, now, Some(&key))
        .expect("the folder can be written");
    let outcome = drive(
        &plan,
        Limits {
            parallelism: 32,
            ..Limits::default()
        },
        1,
        &Starts::default(),
        &mut World {
            store: &mut *store,
            cloud: &cloud,
            clock: &*clock,
            exporter: &Exporter::new(&folder.join("files")),
            signals: &AtomicUsize::new(0),
            apply: None,
            nonce_command: &[],
            rollout: None,
        },
        &mut |_| {},
    );
    assert!(outcome.expect("the store can be written").is_complete());
}

/// The key of fleets that are kept between runs.
fn key() -> Key {
    let text = format!("nstance-key-1-{}", "5e".repeat(32));
    text.parse().expect("it is a key")
}

/// A plan that finds nothing to do, refreshed from the embedded cloud.
#[divan::bench(args = [1_000, 10_000, 100_000], sample_count = 10, sample_size = 1)]
fn no_change_plan(bencher: Bencher, size: usize) {
    let (loaded, folder) = fleet(size);
    bencher.bench_local(|| {
        let plan = plan(&loaded, &folder);
        assert_eq!(plan.summary.no_op, size);
        assert!(!plan.summary.has_changes());
    });
}

/// An apply of creations, journal and all; the embedded cloud takes no time.
#[divan::bench(args = [1_000], sample_count = 3, sample_size = 1)]
fn apply_creations(bencher: Bencher, size: usize) {
    let loaded = configuration(size);
    bencher
        .with_inputs(|| tempfile::tempdir().expect("there is a temporary folder"))
        .bench_local_values(|folder| apply(&loaded, folder.path()));
}

/// All layers of one group.
#[divan::bench]
fn merge_one_group(bencher: Bencher) {
    let loaded = configuration(1);
    let config = loaded.config.as_ref().expect("it loaded");
    bencher.bench_local(|| merge_group(black_box(config), &config.groups[0]));
}

/// One instance's args, userdata and file.
#[divan::bench]
fn render_one_instance(bencher: Bencher) {
    let loaded = configuration(1);
    let config = loaded.config.as_ref().expect("it loaded");
    let mut findings = nstance::diagnostic::Diagnostics::default();
    let compiled = pipeline::compile_all(config, &loaded.sources, &Bodies::new(), &mut findings);
    let ids = [(Arc::from("debian"), Some(Arc::from("ami-1")))]
        .into_iter()
        .collect();
    let renderers = pipeline::renderers(config, &compiled, &ids, Rules::of(ProviderKind::Sim), "");
    let address = Address::new(GroupName::new("default", "web"), 0);
    let facts = InstanceFacts {
        id: "web06gzvnezg9x31e2xz7tp45h1v4".into(),
        kind: "web".into(),
        arch: "amd64".into(),
        instance_type: "small".into(),
        slot: 0,
        index: None,
        seat: Seat::default(),
        zone: "z".into(),
        short_id: "tp45h1v4".into(),
        ip4: None,
        ip6: None,
        trial_nonce: None,
    };
    let kept = std::collections::BTreeMap::new();
    bencher.bench_local(|| {
        let mut report = Report::default();
        renderers[0].render(black_box(&address), &facts, &kept, &mut report)
    });
}

/// Reading and checking 1 MB of configuration.
#[divan::bench(sample_count = 20)]
fn validate_one_megabyte(bencher: Bencher) {
    let group = r#"{"template": "web", "size": 3, "vars": {"some_name": "some value", "more": [1, 2, 3]}, "args": {"Tags": {"a": "b"}}}"#;
    let mut groups = String::new();
    let mut count = 0;
    while groups.len() < 1_000_000 {
        groups.push_str(&format!("\"g{count}\": {group},\n"));
        count += 1;
    }
    let text = format!(
        r#"{{"cluster": {{"id": "bench"}},
"shard": {{"id": "one", "infra": {{"provider": "sim", "region": "r", "zone": "z"}}}},
"templates": {{"web": {{"kind": "web", "arch": "amd64", "instance_type": "small", "userdata": "{{{{ .Vars.more }}}}"}}}},
"groups": {{"default": {{{groups}}}}}}}"#
    );
    bencher.bench_local(|| {
        let loaded = load_text(Purpose::Plan, "bench.jsonc", &text, &Given::default());
        assert!(!loaded.findings.has_errors());
    });
}
