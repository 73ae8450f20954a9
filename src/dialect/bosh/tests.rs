//! Deployments that are correct, and the messages for those that aren't.

use std::path::{Path, PathBuf};

use insta::assert_snapshot;
use nstance_bosh::instances::Profile;
use nstance_bosh::interpolate::Options;
use nstance_bosh::render::{Failure, TemplateError, render_instance};

use super::*;
use crate::config::source::SourceMap;
use crate::diagnostic::{Diagnostics, Reported};
use crate::report::diagnostic::render;

const MANIFEST: &str = "\
name: shop
releases:
- {name: db, version: 1}
- {name: web, version: 2}
instance_groups:
- name: db
  instances: 1
  jobs:
  - {name: postgres, release: db, properties: {port: ((port))}}
- name: web
  instances: 2
  jobs:
  - {name: server, release: web}
";

const POSTGRES: &str = "\
name: postgres
templates:
  conf.erb: config/conf
  certs/ca.pem: config/ca.pem
provides:
- {name: db, type: postgres, properties: [port]}
properties:
  port: {default: 5432}
";

const SERVER: &str = "\
name: server
templates: {start.erb: bin/start}
consumes:
- {name: db, type: postgres}
";

/// Files of a deployment, in a folder of their own.
struct Files {
    folder: tempfile::TempDir,
    inputs: Inputs,
    sources: SourceMap,
    findings: Diagnostics,
}

impl Files {
    /// A deployment that is correct.
    fn shop() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let files = Self {
            inputs: Inputs {
                working_dir: folder.path().to_owned(),
                manifest: "shop.yml".into(),
                releases: Some("releases".into()),
                vars: vec![("port".to_owned(), "5433".to_owned())],
                ..Inputs::default()
            },
            folder,
            sources: SourceMap::default(),
            findings: Diagnostics::default(),
        };
        files.write("shop.yml", MANIFEST);
        files.write("releases/db/jobs/postgres/spec", POSTGRES);
        files.write("releases/db/jobs/postgres/templates/conf.erb", "<%= 1 %>\n");
        files.write("releases/db/jobs/postgres/templates/certs/ca.pem", "ca\n");
        files.write("releases/db/jobs/postgres/monit", "check\n");
        files.write("releases/web/jobs/server/job.MF", SERVER);
        files.write("releases/web/jobs/server/templates/start.erb", "a\n<%= 1");
        files
    }

    fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    #[track_caller]
    fn edit(&self, name: &str, from: &str, to: &str) {
        let text = std::fs::read_to_string(self.folder.path().join(name)).unwrap();
        assert_eq!(text.matches(from).count(), 1, "`{from}` is in {name} once");
        self.write(name, text.replacen(from, to, 1));
    }

    fn remove(&self, name: &str) {
        let path = self.folder.path().join(name);
        if path.is_dir() {
            std::fs::remove_dir_all(path).unwrap();
        } else {
            std::fs::remove_file(path).unwrap();
        }
    }

    fn load(&mut self) -> Result<Deployment, Reported> {
        load(&self.inputs, &mut self.sources, &mut self.findings)
    }

    /// The findings as the user sees them.
    fn shown(&self) -> String {
        render(&self.findings, &self.sources, false)
    }
}

#[test]
fn a_deployment_is_read_with_the_jobs_that_it_names() {
    let mut files = Files::shop();
    files.write("releases/db/jobs/unused/spec", "[");
    let deployment = files.load().unwrap();
    assert_eq!(deployment.manifest.name, "shop");
    let jobs: Vec<(&String, Vec<&String>)> = deployment
        .releases
        .iter()
        .map(|(release, jobs)| (release, jobs.keys().collect()))
        .collect();
    assert_eq!(
        format!("{jobs:?}"),
        r#"[("db", ["postgres"]), ("web", ["server"])]"#
    );
    let postgres = &deployment.releases["db"]["postgres"];
    assert_eq!(postgres.templates["certs/ca.pem"], "ca\n");
    assert_eq!(postgres.monit.as_deref(), Some("check\n"));
    let web = deployment.resolved.group("web").unwrap();
    let link = web.jobs[0].links["db"].as_ref().unwrap();
    assert_eq!(link.properties.to_string(), r#"{"port":5433}"#);
    let source = deployment
        .template("db", "postgres", "certs/ca.pem")
        .unwrap();
    let name = Path::new("releases/db/jobs/postgres/templates/certs/ca.pem");
    assert_eq!(Path::new(&files.sources.get(source).name), name);
    assert_snapshot!(files.shown(), @r"
    warning: unterminated ERB tag
      ┌─ releases/web/jobs/server/templates/start.erb:2:1
    2 │ <%= 1
      │ ^^ no `%>` closes it
    hint: BOSH takes the rest of the file as text; close the tag with `%>`
    ");
}

#[test]
fn a_folder_may_be_the_only_release() {
    let mut files = Files::shop();
    files.write(
        "shop.yml",
        "name: shop\nreleases: [{name: db, version: 1}]\ninstance_groups:\n\
         - {name: db, instances: 1, jobs: [{name: postgres, release: db}]}\n",
    );
    files.inputs.releases = Some("releases/db".into());
    files.inputs.vars.clear();
    let deployment = files.load().unwrap();
    assert!(deployment.releases["db"].contains_key("postgres"));
}

#[test]
fn ops_files_and_variables_are_applied_in_their_order() {
    let mut files = Files::shop();
    files.write("a.yml", "- {type: replace, path: /name, value: ((name))}");
    files.write(
        "b.yml",
        "- {type: replace, path: /tags?/of, value: ((tag))}",
    );
    files.write("one.yml", "name: one\ntag: 010\n");
    files.write("two.yml", "name: two\n");
    files.inputs.ops_files = vec!["a.yml".into(), "b.yml".into()];
    files.inputs.vars_files = vec!["one.yml".into(), "two.yml".into()];
    let vars = [("port", "'1'"), ("tag", "{a: 1}")];
    files.inputs.vars = vars.map(|(name, text)| (name.into(), text.into())).into();
    let document = interpolated(&files.inputs, &mut files.sources, &mut files.findings).unwrap();
    assert_eq!(document.get("name").unwrap().inspect(), "\"two\"");
    assert_eq!(
        document.get("tags").unwrap().inspect(),
        r#"{"of"=>{"a"=>1}}"#
    );
    let groups = document.get("instance_groups").unwrap().inspect();
    assert!(groups.contains(r#""port"=>"'1'""#), "{groups}");
}

#[test]
fn links_may_come_from_other_deployments() {
    let mut files = Files::shop();
    files.edit(
        "shop.yml",
        "{name: server, release: web}",
        "{name: server, release: web, consumes: {db: {from: db, deployment: other}}}",
    );
    files.write(
        "other.yml",
        "name: other\nreleases: [{name: db, version: 1}]\ninstance_groups:\n\
         - {name: db, instances: 1, jobs: [{name: postgres, release: db, provides: \
         {db: {shared: true}}}]}\n",
    );
    files.inputs.others = vec![PathBuf::from("other.yml")];
    let deployment = files.load().unwrap();
    let web = deployment.resolved.group("web").unwrap();
    let link = web.jobs[0].links["db"].as_ref().unwrap();
    assert_eq!(link.properties.to_string(), r#"{"port":5432}"#);
}

/// A change of the shop that has errors.
type Case = (&'static str, fn(&mut Files));

#[test]
fn the_errors_of_a_step_are_reported_together_with_their_places() {
    let cases: [Case; 17] = [
        ("nothing to read", |files| {
            files.inputs.manifest = "missing.yml".into();
            files.inputs.ops_files = vec!["none.yml".into()];
            files.inputs.vars_files = vec!["releases".into()];
        }),
        ("syntax errors", |files| {
            files.write("shop.yml", "name: [a\n");
            files.write("ops.yml", "- a: b: c\n");
            files.write("vars.yml", "db_password: [hunter2secret\n");
            files.inputs.ops_files = vec!["ops.yml".into()];
            files.inputs.vars_files = vec!["vars.yml".into()];
        }),
        ("invalid operations", |files| {
            files.write(
                "ops.yml",
                "- {type: replace, path: name}\n- {type: x, path: /a}\n",
            );
            files.inputs.ops_files = vec!["ops.yml".into()];
        }),
        ("an operation without a target", |files| {
            files.write(
                "ops.yml",
                "- type: remove\n  path: /instance_groups/name=app\n",
            );
            files.inputs.ops_files = vec!["ops.yml".into()];
        }),
        ("missing and unused variables", |files| {
            files.inputs.vars = vec![("prot".to_owned(), "5433".to_owned())];
            files.inputs.interpolation = Options {
                var_errs: true,
                var_errs_unused: true,
            };
        }),
        ("a vars file that isn't a map", |files| {
            files.write("vars.yml", "- hunter2secret\n");
            files.inputs.vars_files = vec!["vars.yml".into()];
        }),
        ("invalid manifest", |files| {
            files.edit("shop.yml", "instances: 2", "instances: two");
            files.edit("shop.yml", "release: web}", "release: wbe}");
        }),
        ("no folder of releases", |files| {
            files.inputs.releases = None;
        }),
        ("missing folder of releases", |files| {
            files.inputs.releases = Some("elsewhere".into());
        }),
        ("missing releases", |files| {
            files.remove("releases/web");
            files.remove("releases/db");
        }),
        (
            "missing job, invalid spec, template that isn't text",
            |files| {
                files.remove("releases/web/jobs/server");
                files.write("releases/db/jobs/postgres/templates/conf.erb", b"\xff");
            },
        ),
        ("invalid specs", |files| {
            files.write("releases/db/jobs/postgres/spec", "a: [\n");
            files.write("releases/web/jobs/server/job.MF", "b: [\n");
        }),
        ("a template outside of its job", |files| {
            files.edit(
                "releases/web/jobs/server/job.MF",
                "start.erb: bin/start",
                "../../../a: /etc/passwd",
            );
        }),
        ("names that lead elsewhere", |files| {
            files.edit("shop.yml", "{name: server,", "{name: ../server,");
        }),
        ("no provider of a link", |files| {
            files.edit(
                "releases/db/jobs/postgres/spec",
                "type: postgres",
                "type: pg",
            );
        }),
        ("a profile is missing", |files| {
            files.edit(
                "shop.yml",
                "  instances: 2\n",
                "  instances: 2\n  azs: [a, b]\n",
            );
        }),
        ("no networks", |files| {
            files.inputs.resolution.profile = Some(Profile::Bosh);
        }),
    ];
    let mut shown = String::new();
    for (name, change) in cases {
        let mut files = Files::shop();
        files.remove("releases/web/jobs/server/templates/start.erb");
        change(&mut files);
        assert_eq!(files.load().map(|_| ()), Err(Reported), "{name}");
        shown.push_str(&format!("# {name}\n{}\n", files.shown()));
    }
    assert!(!shown.contains("hunter2secret"), "{shown}");
    assert_snapshot!(shown);
}

#[test]
fn errors_of_templates_are_reported_once_and_have_places() {
    let mut files = Files::shop();
    let deployment = files.load().unwrap();
    let group = deployment.resolved.group("db").unwrap();
    let lines = [
        ("conf.erb", Some(1)),
        ("conf.erb", Some(7)),
        ("gone", Some(1)),
        ("monit", Some(1)),
        ("monit", None),
        ("conf.erb", Some(1)),
    ];
    let mut failures = lines.map(|(template, line)| Failure::Template {
        job: "postgres".to_owned(),
        template: template.to_owned(),
        error: TemplateError {
            class: "UnknownProperty".to_owned(),
            message: "Can't find property '[\"a\"]'".to_owned(),
            line,
        },
    });
    let finding = render_finding(&deployment, group, &failures, &files.sources);
    let other = Failure::Other {
        job: "postgres".to_owned(),
        message: "Template 'x' of job 'postgres' not found in release 'db'".to_owned(),
    };
    failures[0] = other;
    let without_place = render_finding(&deployment, group, &failures[..1], &files.sources);
    let findings = [finding, without_place].into_iter();
    let mut all = Diagnostics::default();
    all.extend(findings);
    assert_snapshot!(render(&all, &files.sources, false));
}

#[test]
fn without_ruby_only_files_without_tags_are_rendered() {
    let mut files = Files::shop();
    let deployment = files.load().unwrap();
    let ruby = Ruby::new(Some("/nonexistent/ruby".into()));
    let groups: Vec<_> = deployment.resolved.groups.iter().collect();
    let finding = ruby.check(&groups).unwrap_err();
    assert_snapshot!(render(&(*finding).into(), &files.sources, false), @r"
    error: Ruby is missing: /nonexistent/ruby
    These jobs have ERB templates: db/postgres, web/server
    hint: install Ruby 3; on Debian and Ubuntu: apt-get install ruby
    hint: or name a Ruby: --ruby PATH
    ");
    let (db, left_out) = without_tags(groups[0]);
    assert_eq!(left_out, ["postgres/config/conf"]);
    ruby.check(&[&db]).unwrap();
    let instance = &db.instances[0];
    let rendered = render_instance(&deployment.resolved, &db, instance, None, &ruby).unwrap();
    let paths: Vec<&str> = rendered.iter().map(|file| file.path.as_str()).collect();
    assert_eq!(paths, ["postgres/monit", "postgres/config/ca.pem"]);
}
