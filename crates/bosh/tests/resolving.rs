//! What the corpus lacks: every form of error, profiles, rendering without Ruby, documents.
#![allow(clippy::unwrap_used, missing_docs)]

use indexmap::IndexMap;
use nstance_bosh::bpm::group_bpm;
use nstance_bosh::context::{context, dns_tables};
use nstance_bosh::documents;
use nstance_bosh::instances::Profile;
use nstance_bosh::manifest::Manifest;
use nstance_bosh::release::{JobSource, Releases};
use nstance_bosh::render::{
    Erb, Failure, Request, Selection, TemplateError, ordinal_of_host_name, render_instance, report,
    select,
};
use nstance_bosh::resolve::{Options, Resolved, resolve};
use nstance_bosh::{Error, yaml};
use serde_json::{Value as Json, json};

fn quarks() -> Options {
    Options {
        profile: Some(Profile::Quarks),
        ..Options::default()
    }
}

fn bosh() -> Options {
    Options {
        profile: Some(Profile::Bosh),
        ..Options::default()
    }
}

fn source(spec: &str, templates: &[(&str, &str)]) -> JobSource {
    let templates = templates.iter();
    JobSource {
        spec: yaml::read(spec, 1).unwrap(),
        templates: templates
            .map(|(path, text)| ((*path).to_owned(), (*text).to_owned()))
            .collect(),
        monit: None,
    }
}

/// A database, a job that needs it, and one that can do without.
fn releases() -> Releases {
    let jobs = [
        (
            "db",
            source(
                "provides: [{name: conn, type: db, properties: [port, user.name]}]\n\
                 properties: {port: {default: 5432}, user.name: {}, n: {default: 1}}\n\
                 templates: {bpm.yml.erb: config/bpm.yml, ctl: bin/ctl}",
                &[
                    (
                        "bpm.yml.erb",
                        "processes: [{name: db, executable: /db, args: [$index]}]",
                    ),
                    ("ctl", "run $address"),
                ],
            ),
        ),
        ("web", source("consumes: [{name: db, type: db}]", &[])),
        (
            "opt",
            source("consumes: [{name: db, type: db, optional: true}]", &[]),
        ),
    ];
    let jobs = jobs
        .into_iter()
        .map(|(name, source)| (name.to_owned(), source));
    Releases::from([("r".to_owned(), jobs.collect::<IndexMap<_, _>>())])
}

/// Resolves groups; those that follow the head of a manifest.
fn resolved(groups: &str, options: &Options) -> Result<Resolved, Vec<Error>> {
    let text = format!("name: d\nreleases: [{{name: r, version: 1}}]\n{groups}");
    let manifest = Manifest::read(&yaml::read(&text, 0).map_err(|error| vec![error])?)?;
    resolve(&manifest, &releases(), &[], options)
}

fn errors(groups: &str, options: &Options) -> Vec<String> {
    let errors = resolved(groups, options).unwrap_err();
    assert!(
        errors.iter().all(|error| error.place.is_some()),
        "{errors:?}"
    );
    errors.iter().map(Error::to_string).collect()
}

/// Stands for Ruby: `$x` is a member of the context, `fail` a failure.
struct Substitute;

impl Erb for Substitute {
    fn render(&self, request: &Request) -> Result<Vec<Result<String, TemplateError>>, String> {
        let results = request.templates.iter().map(|(_, text)| {
            if text.contains("fail") {
                return Err(TemplateError {
                    class: "UnknownProperty".to_owned(),
                    message: "Can't find property '[\"a\"]'".to_owned(),
                    line: Some(2),
                });
            }
            let members = request.context.as_object().unwrap().iter();
            Ok(members.fold((*text).to_owned(), |text, (name, value)| {
                let value = value
                    .as_str()
                    .map_or_else(|| value.to_string(), str::to_owned);
                text.replace(&format!("${name}"), &value)
            }))
        });
        Ok(results.collect())
    }
}

struct NoRuby;

impl Erb for NoRuby {
    fn render(&self, _: &Request) -> Result<Vec<Result<String, TemplateError>>, String> {
        Err("ruby isn't installed".to_owned())
    }
}

#[test]
fn manifests_are_checked_whole() {
    for (groups, expected) in [
        (
            "instance_groups: [{name: a, instances: x, jobs: 1}, {jobs: [], instances: 1}, 7]",
            vec![
                "Property 'instances' value (\"x\") did not match the required type 'Integer'",
                "Property 'jobs' value (1) did not match the required type 'Array'",
                "Required property 'name' was not specified in object \
                 ({\"jobs\"=>[], \"instances\"=>1})",
                "Object (7) did not match the required type 'Hash'",
            ],
        ),
        (
            "instance_groups:\n- {name: a, instances: 1, lifecycle: x, jobs: []}\n\
             - {name: A, instances: 1}\n- {name: b, instances: -1, jobs: []}",
            vec![
                "Invalid lifecycle 'x' for 'a', valid lifecycle profiles are: service, errand",
                "Instance group 'A' does not specify jobs key",
                "'instances' value (-1) must be between 0 and 100000",
                "Invalid instance group name 'A', canonical name already taken",
            ],
        ),
        (
            "instance_groups: [{name: a, instances: 1, azs: [], stemcell: s, vm_type: t, \
             vm_resources: {}, persistent_disk: 1, persistent_disk_type: p, jobs: \
             [{name: j, release: q}, {name: k, release: r, properties: null}], \
             migrated_from: [{name: o, az: z}]}]",
            vec![
                "Job 'j' (instance group 'a') references an unknown release 'q'",
                "Property 'properties' value (nil) did not match the required type 'Hash'",
                "Instance group 'a' has empty availability zones",
                "Instance group 'a' specifies more than one of the following keys: \
                 'persistent_disk', 'persistent_disk_type', and 'persistent_disks'. Choose one.",
                "Instance group 'a' can only specify 'vm_type' or 'vm_resources' keys.",
                "Instance group 'a' references an unknown stemcell 's'",
                "Instance group 'o' specified for migration to instance group 'a' refers to \
                 availability zone 'z'. Az 'z' is not in the list of availability zones of \
                 instance group 'a'.",
            ],
        ),
        (
            "stemcells: [{alias: s, os: o, version: 1}, {alias: s, version: 2}]\n\
             addons: [{name: x, jobs: [{name: j, release: q}], include: {deployments: [d]}, \
             exclude: {lifecycle: []}}]",
            vec![
                "Required property 'os' or 'name' was not specified in object \
                 ({\"alias\"=>\"s\", \"version\"=>2})",
                "Duplicate stemcell alias 's'",
                "Manifest specifies job 'j' which is defined in 'q', but 'q' is not listed in \
                 the deployment releases section.",
                "Deployment filter is not allowed for deployment level addons.",
                "Property 'lifecycle' value ([]) did not match the required type 'String'",
            ],
        ),
    ] {
        assert_eq!(errors(groups, &quarks()), expected, "{groups}");
    }
}

#[test]
fn unknown_keys_are_warnings_with_the_nearest_name() {
    let groups = "x-anchors: 1\ninstance_group: []\n\
                  instance_groups: [{name: a, instances: 1, job: 1, jobs: [{release: r, name: db, foo: 1}]}]";
    let warnings = resolved(groups, &quarks()).unwrap().warnings;
    let warnings: Vec<(&str, Option<&str>)> = warnings
        .iter()
        .map(|warning| (warning.message.as_str(), warning.hint.as_deref()))
        .collect();
    let expected = [
        (
            "unknown key 'instance_group'",
            Some("there is a key 'instance_groups'"),
        ),
        ("unknown key 'job'", Some("there is a key 'jobs'")),
        ("unknown key 'foo'", None),
    ];
    assert_eq!(warnings, expected);
}

#[test]
fn specs_with_paths_outside_the_job_are_refused() {
    for path in ["/etc/x", "../x", "a/../x", "", "a//b", "c:\\x", "."] {
        let spec = format!("templates: {{ok: '{path}'}}");
        let jobs = IndexMap::from([("j".to_owned(), source(&spec, &[]))]);
        let releases = Releases::from([("r".to_owned(), jobs)]);
        let text = "name: d\nreleases: [{name: r, version: 1}]\n\
                    instance_groups: [{name: a, instances: 1, jobs: [{release: r, name: j}]}]";
        let manifest = Manifest::read(&yaml::read(text, 0).unwrap()).unwrap();
        let errors = resolve(&manifest, &releases, &[], &quarks()).unwrap_err();
        let expected = format!(
            "Template path '{path}' of job 'j' in release 'r' must be a relative path without '..'"
        );
        assert_eq!(errors[0].message, expected);
    }
}

#[test]
fn links_are_checked_job_by_job() {
    let group = |name: &str, job: &str| {
        format!("- {{name: {name}, instances: 1, jobs: [{{release: r, name: {job}}}]}}\n")
    };
    let db = group("db", "db");
    for (job, expected) in [
        (
            "web, consumes: {db: {from: a, instances: [], properties: {}, type: t}}",
            "Cannot specify both 'instances' and 'from' keys for link 'db' in job 'web' in \
             instance group 'g'.\nCannot specify both 'properties' and 'from' keys for link 'db' \
             in job 'web' in instance group 'g'.\nCannot specify 'name' or 'type' properties in \
             the manifest for link 'db' in job 'web' in instance group 'g'. Please provide these \
             keys in the release only.",
        ),
        (
            "db, custom_provider_definitions: [{name: '', type: 1}, {name: a, type: b}, \
             {name: a, type: c}, {name: a, type: c}]",
            "Name for custom link provider definition in manifest in job 'db' in instance group \
             'g' must be a valid non-empty string.\nType for custom link provider definition in \
             manifest in job 'db' in instance group 'g' must be a valid non-empty string.\n\
             Custom provider 'a' in job 'db' in instance group 'g' is defined multiple times in \
             manifest.",
        ),
        (
            "db, provides: {conn: {as: 1}}",
            "Property 'as' value (1) did not match the required type 'String'",
        ),
        (
            "opt, consumes: {db: {from: other}}",
            "Failed to resolve links from deployment 'd'. See errors below:\n  - Failed to \
             resolve link 'db' with alias 'other' and type 'db' from job 'opt' in instance group \
             'g'. Details below:\n    - No link providers found",
        ),
        (
            "web, consumes: {db: {from: conn, network: n}}",
            "Failed to resolve links from deployment 'd'. See errors below:\n  - Failed to \
             resolve link 'db' with alias 'conn' and type 'db' from job 'web' in instance group \
             'g'. Details below:\n    - Link provider 'conn' from job 'db' in instance group 'db' \
             in deployment 'd' does not belong to network 'n'",
        ),
    ] {
        let groups = format!("instance_groups:\n{db}{}", group("g", job));
        assert_eq!(errors(&groups, &quarks()).join("\n"), expected, "{job}");
    }
}

#[test]
fn a_blocked_link_is_null_and_in_bosh_only_if_it_is_optional() {
    let groups = |job: &str| {
        format!(
            "instance_groups: [{{name: g, instances: 1, networks: [{{name: n}}], \
             jobs: [{{release: r, name: {job}, consumes: {{db: nil}}}}]}}]"
        )
    };
    for options in [Options::default(), quarks()] {
        let resolved = resolved(&groups("web"), &options).unwrap();
        assert_eq!(resolved.groups[0].jobs[0].links["db"], None);
    }
    let optional = resolved(&groups("opt"), &bosh()).unwrap();
    assert_eq!(optional.groups[0].jobs[0].links["db"], None);
    let message = errors(&groups("web"), &bosh()).join("\n");
    assert!(
        message.ends_with("    - No link providers found"),
        "{message}"
    );
}

#[test]
fn an_addon_in_several_groups_makes_its_link_ambiguous() {
    let groups = "instance_groups:\n- {name: a, instances: 1, jobs: []}\n\
                  - {name: b, instances: 1, jobs: [{release: r, name: opt}]}\n\
                  addons: [{name: x, jobs: [{name: db, release: r}]}]";
    let expected = "Failed to resolve links from deployment 'd'. See errors below:\n  - Failed to \
                    resolve link 'db' with type 'db' from job 'opt' in instance group 'b'. \
                    Multiple link providers found:\n    - Link provider 'conn' from job 'db' in \
                    instance group 'a' in deployment 'd'\n    - Link provider 'conn' from job \
                    'db' in instance group 'b' in deployment 'd'";
    assert_eq!(errors(groups, &quarks()), [expected]);
    let twice = "instance_groups: [{name: a, instances: 1, jobs: [{release: r, name: db}]}]\n\
                 addons: [{name: x, jobs: [{name: db, release: r}]}]";
    let expected = "Colocated job 'db' is already added to the instance group 'a'.";
    assert_eq!(errors(twice, &quarks()), [expected]);
}

#[test]
fn several_zones_need_a_profile() {
    let groups = "instance_groups: [{name: db, instances: 3, azs: [b, a], \
                  networks: [{name: n}], jobs: [{release: r, name: db}]}]";
    let message = errors(groups, &Options::default()).join("\n");
    assert!(message.contains("has 2 availability zones"), "{message}");
    let placed = |options: &Options| {
        let resolved = resolved(groups, options).unwrap();
        let instances = resolved.groups[0].instances.iter();
        let placed = instances.map(|instance| {
            let az = instance.az.as_deref().unwrap();
            format!(
                "{} {az}{} {}",
                instance.index, instance.az_index, instance.ordinal
            )
        });
        placed.collect::<Vec<_>>()
    };
    assert_eq!(placed(&bosh()), ["0 a2 0", "1 b1 0", "2 a2 1"]);
    let quarks = placed(&quarks());
    assert_eq!(
        quarks,
        ["0 b1 0", "1 b1 1", "2 b1 2", "3 a2 0", "4 a2 1", "5 a2 2"]
    );
    let one = "instance_groups: [{name: db, instances: 1, jobs: []}]";
    resolved(one, &Options::default()).unwrap();
    let expected = "Instance group 'db' must specify at least one network";
    assert_eq!(errors(one, &bosh()), [expected]);
}

#[test]
fn in_bosh_addresses_belong_to_networks() {
    let groups = "instance_groups:\n\
                  - {name: db, instances: 1, azs: [z], networks: [{name: a, default: [dns]}, \
                  {name: b, default: [gateway]}], jobs: [{release: r, name: db}]}\n\
                  - {name: g, instances: 1, networks: [{name: a}], jobs: [{release: r, name: web, \
                  consumes: {db: {from: conn, network: a}}}, \
                  {release: r, name: opt}]}";
    let resolved = resolved(groups, &bosh()).unwrap();
    let (db, group) = (&resolved.groups[0], &resolved.groups[1]);
    assert!(db.instances[0].address.ends_with(".db.b.d.bosh"), "{db:?}");
    let address = |job: usize| {
        let link = group.jobs[job].links["db"].as_ref().unwrap();
        link.instances[0]["address"].as_str().unwrap().to_owned()
    };
    assert!(address(0).ends_with(".db.a.d.bosh"), "{}", address(0));
    assert_eq!(address(1), db.instances[0].address);
    // Templates ask the encoder, which needs to know the provider.
    let context = context(
        &resolved,
        group,
        &group.jobs[0],
        &group.instances[0],
        Some("10.0.0.1"),
    );
    let link = &context["links"]["db"];
    assert_eq!(link.get("address"), None);
    assert_eq!(link["default_network"], "a");
    assert_eq!(link["instance_group"], "db");
    assert_eq!(dns_tables(&resolved), Some(json!({"azs": {"z": "1"}})));
    assert_eq!(context["networks"]["a"]["ip"], "10.0.0.1");
}

#[test]
fn instances_are_chosen_as_containers_say() {
    let resolved = resolved(
        "instance_groups: [{name: db, instances: 2, azs: [a, b], jobs: []}]",
        &quarks(),
    );
    let resolved = resolved.unwrap();
    let chosen = |group: &str, az_index, pod_ordinal, replicas| {
        let selection = Selection {
            instance_group: group.to_owned(),
            az_index,
            pod_ordinal,
            replicas,
        };
        let chosen = select(&resolved, &selection);
        chosen
            .map(|(_, instance)| instance.index)
            .map_err(|error| error.to_string())
    };
    assert_eq!(chosen("db", 2, 1, Some(2)), Ok(3));
    for (group, az_index, pod_ordinal, replicas, expected) in [
        ("x", 1, 0, None, "instance group 'x' not found"),
        (
            "db",
            1,
            0,
            Some(3),
            "instance group 'db' has 2 replicas, not 3",
        ),
        (
            "db",
            1,
            2,
            None,
            "no instance for az_index 1, pod_ordinal 2 in instance group 'db'",
        ),
    ] {
        let error = chosen(group, az_index, pod_ordinal, replicas).unwrap_err();
        assert_eq!(error, expected);
    }
    for (host, expected) in [("nats-z0-12", Some(12)), ("nats", None), ("n-1-x", None)] {
        assert_eq!(ordinal_of_host_name(host), expected);
    }
}

#[test]
fn jobs_are_rendered_with_their_modes_and_all_failures() {
    let groups = "instance_groups: [{name: db, instances: 2, jobs: [{release: r, name: db}]}]";
    let mut ok = resolved(groups, &quarks()).unwrap();
    ok.groups[0].jobs[0].monit = Some("check $id".to_owned());
    let group = &ok.groups[0];
    let files = render_instance(&ok, group, &group.instances[1], None, &Substitute).unwrap();
    let files: Vec<(&str, &str, u32)> = files
        .iter()
        .map(|file| (file.path.as_str(), file.content.as_str(), file.mode))
        .collect();
    let expected = [
        ("db/monit", "check db-1-db", 0o644),
        (
            "db/config/bpm.yml",
            "processes: [{name: db, executable: /db, args: [1]}]",
            0o644,
        ),
        ("db/bin/ctl", "run d-db-1.default.svc.cluster.local", 0o755),
    ];
    assert_eq!(files, expected);

    let mut wrong = ok.clone();
    wrong.groups[0].jobs[0].monit = Some("fail".to_owned());
    wrong.groups[0].jobs[0].templates[1].text = None;
    let group = &wrong.groups[0];
    let failures = render_instance(&wrong, group, &group.instances[0], None, &Substitute);
    let text = "- Unable to render jobs for instance group 'db'. Errors are:\n  \
                - Unable to render templates for job 'db'. Errors are:\n    \
                - Template 'ctl' of job 'db' not found in release 'r'\n    \
                - Error filling in template 'monit' (line 2: Can't find property '[\"a\"]')";
    assert_eq!(report("db", &failures.unwrap_err()), text);

    let failures = render_instance(&ok, &ok.groups[0], &group.instances[0], None, &NoRuby);
    let messages: Vec<String> = failures.unwrap_err().iter().map(Failure::message).collect();
    assert_eq!(messages, ["ruby isn't installed"]);
}

#[test]
fn bpm_is_read_for_every_instance() {
    let groups = "instance_groups: [{name: db, instances: 2, jobs: [{release: r, name: db}]}]";
    let resolved = resolved(groups, &quarks()).unwrap();
    let bpm = group_bpm(&resolved, &resolved.groups[0], &Substitute).unwrap();
    let expected = json!({
        "processes": [{"name": "db", "executable": "/db", "args": ["0"]}],
        "unsupported_template": true,
    });
    assert_eq!(bpm["db"].to_json(), expected);
    assert_eq!(bpm["db"].instances[1][0].args, ["1"]);

    for (text, expected) in [
        (
            "processes: [{name: p}]",
            "no executable specified for process p",
        ),
        (
            "processes: 1",
            "bpm.yml of job 'db' is not valid: 'processes' is not an array",
        ),
        ("[]", "bpm.yml of job 'db' is not valid: not a hash"),
        (
            "processes: [{name: p, executable: /p, args: [[]]}]",
            "bpm.yml of job 'db' is not valid: 'args' is not a string",
        ),
        (
            "processes: [{name: p, executable: /p, limits: {open_files: -1}}]",
            "bpm.yml of job 'db' is not valid: 'open_files' is not a whole number",
        ),
        (
            "processes: [{name: p, executable: /p, ephemeral_disk: 1}]",
            "bpm.yml of job 'db' is not valid: 'ephemeral_disk' is not a boolean",
        ),
        (
            "processes: [{name: p, executable: /p, shutdown_signal: HUP}]",
            "bpm.yml of job 'db' is not valid: the shutdown_signal 'HUP' of process p is neither \
             TERM nor INT",
        ),
    ] {
        let mut wrong = resolved.clone();
        wrong.groups[0].jobs[0].templates[0].text = Some(text.to_owned());
        let failures = group_bpm(&wrong, &wrong.groups[0], &Substitute).unwrap_err();
        let messages: Vec<String> = failures.iter().map(Failure::message).collect();
        assert_eq!(messages, [expected], "{text}");
    }
}

#[test]
fn documents_have_what_a_group_needs() {
    let groups = "instance_groups:\n\
                  - {name: db, instances: 1, jobs: [{release: r, name: db, properties: {user: {name: u}}}, \
                  {release: r, name: opt}]}\n\
                  - {name: g, instances: 1, jobs: [{release: r, name: web}]}\n\
                  - {name: other, instances: 1, jobs: [{release: r, name: opt}]}";
    let resolved = resolved(groups, &quarks()).unwrap();
    let group = resolved.group("g").unwrap();
    let document = documents::resolved_group(&resolved, group, 3, None);
    assert_eq!(document.name, "dig-resolved.g-v3");
    let instance = |group: &str, job: &str| {
        json!({
            "name": format!("{group}-{job}"),
            "index": 0,
            "id": format!("{group}-0-{job}"),
            "az": null,
            "address": format!("d-{group}-0.default.svc.cluster.local"),
            "bootstrap": true,
        })
    };
    let expected = json!({
        "name": "d",
        "releases": [{"name": "r", "version": "1"}],
        "instance_groups": [
            {"name": "g", "instances": 1, "lifecycle": "service", "networks": [], "jobs": [
                {"name": "web", "release": "r", "properties": {"quarks": {
                    "consumes": {"db": {
                        "address": "d-db.default.svc.cluster.local",
                        "instances": [instance("db", "db")],
                        "properties": {"port": 5432, "user": {"name": "u"}},
                    }},
                    "instances": [instance("g", "web")],
                }}},
            ]},
            {"name": "db", "instances": 1, "lifecycle": "service", "networks": [], "jobs": [
                {"name": "db", "release": "r", "properties": {
                    "port": 5432,
                    "user": {"name": "u"},
                    "n": 1,
                    "quarks": {"instances": [instance("db", "db")]},
                }},
            ]},
        ],
    });
    assert_eq!(document.content, expected);

    let groups = "instance_groups: [{name: db, instances: 1, jobs: [{release: r, name: db}]}]";
    let resolved = self::resolved(groups, &quarks()).unwrap();
    let group = resolved.group("db").unwrap();
    let bpm = group_bpm(&resolved, group, &Substitute).unwrap();
    let document = documents::bpm(&resolved, group, 1, &bpm);
    assert_eq!(document.name, "bpm.db-v1");
    let of_job = |content: &Json| content["instance_groups"][0]["jobs"][0].clone();
    let quarks = json!({"bpm": bpm["db"].to_json()});
    let expected = json!({"name": "db", "release": "r", "properties": {"quarks": quarks}});
    assert_eq!(of_job(&document.content), expected);
    let document = documents::resolved_group(&resolved, group, 1, Some(&bpm));
    let properties = &of_job(&document.content)["properties"];
    assert_eq!(properties["quarks"]["bpm"], bpm["db"].to_json());
}
