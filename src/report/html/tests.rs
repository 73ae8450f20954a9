use serde_json::{Value, json};

use super::live::{Group, Live, State};
use super::*;
use crate::plan::change::{Change, DriftKind, InstanceView, LeftOut, Plan, Reason};
use crate::plan::rollout::Rollout;
use crate::provider::rules::Effect;
use crate::redact;
use crate::report::testing::{
    attribute, careful, create, delete, drift, image, new, now, plan_of, replace, side, update,
    with_rollout,
};

fn page(plan: &Plan) -> String {
    Page::of(plan, &Value::Null, None).text(None)
}

/// The page without head, style and script.
fn body(page: &str) -> &str {
    let start = page.find("<header>").unwrap();
    &page[start..page.find("\n<script>").unwrap()]
}

fn count(page: &str, what: &str) -> usize {
    page.matches(what).count()
}

#[test]
fn a_small_page() {
    let mut changes = vec![
        create("default/edge", 0),
        delete("default/old", 1, Reason::GroupShrank),
        update("default/web", 0),
    ];
    changes.extend((1..6).map(|slot| replace("default/web", slot)));
    let mut plan = plan_of(changes);
    plan.held_back = vec![Change {
        after: Some(Box::new(InstanceView {
            protected: true,
            ..new(9, 2)
        })),
        ..replace("default/zoo", 9)
    }];
    plan.summary.held_back = 1;
    plan.drift = vec![drift("default/web", 7, DriftKind::Changed)];
    plan.images
        .insert("debian".to_owned(), image("ami-0b2", "lookup", 3_600));
    plan.left_out.push(LeftOut {
        address: "default/broken".to_owned(),
        count: 2,
        why: "its image can't be resolved".to_owned(),
    });
    let plan = with_rollout(plan, "default/web", careful(6));
    let findings = json!([{
        "severity": "warning", "summary": "the image is old", "detail": "a\nb", "hint": "Build one",
        "range": {"filename": "a.hcl", "start": {"line": 3, "column": 7}},
    }]);
    let page = Page::of(&plan, &findings, Some("b")).text(None);
    // A line for each element.
    let body = body(&page).replace("><", ">\n<");
    let body = body.replace(env!("CARGO_PKG_VERSION"), "[VERSION]");
    insta::assert_snapshot!(body);
}

#[test]
fn no_changes_are_said() {
    let page = page(&plan_of(Vec::new()));
    assert!(
        page.contains("No changes. Your infrastructure matches"),
        "{page}"
    );
    assert!(!page.contains("<svg"), "there is nothing to draw");
}

#[test]
fn values_stay_texts() {
    const EVIL: &str = "\"'><script>alert(1)</script>--><!--\u{0}\u{1b}[31m\u{202e}&lt;";
    let mut body = crate::report::testing::body(3, 2);
    body.tags.insert(EVIL.to_owned(), EVIL.to_owned());
    body.head.template = Some(EVIL.into());
    body.head.instance_type = EVIL.into();
    body.args.insert(EVIL.to_owned(), json!({EVIL: [EVIL]}));
    let text = format!("#cloud-config\n{EVIL}\nb\n");
    body.userdata = Some(crate::spec::Userdata {
        content: crate::spec::Content::Text(text.clone()),
        gzip: false,
    });
    let mut side = side(3, 2, body);
    side.zone = EVIL.into();
    side.images.insert(EVIL.into(), EVIL.into());
    let created = Change {
        after: Some(Box::new(side.clone())),
        ..create("default/new", 3)
    };
    let changed = Change {
        after: Some(Box::new(side)),
        reasons: vec![
            Reason::NewerImage {
                name: EVIL.into(),
                from: EVIL.to_owned(),
                to: EVIL.to_owned(),
            },
            Reason::Moved {
                from: EVIL.to_owned(),
            },
        ],
        attributes: vec![
            attribute(
                EVIL,
                Some(json!(EVIL)),
                Some(json!({EVIL: EVIL})),
                Effect::Replace,
            ),
            attribute(
                "userdata",
                Some(json!("a\n")),
                Some(json!(text)),
                Effect::Replace,
            ),
        ],
        deposed: Some(EVIL.to_owned()),
        ..replace("default/web", 3)
    };
    let mut plan = plan_of(vec![created, changed]);
    EVIL.clone_into(&mut plan.cluster);
    plan.read_from = vec![EVIL.to_owned()];
    plan.images.insert(EVIL.to_owned(), image(EVIL, EVIL, 5));
    let mut drifted = drift("default/web", 3, DriftKind::Changed);
    EVIL.clone_into(&mut drifted.address);
    EVIL.clone_into(&mut drifted.provider_id);
    plan.drift = vec![drifted];
    let findings = json!([{"severity": "error", "summary": EVIL, "detail": EVIL, "hint": EVIL}]);
    let mut live = Live::new(
        now(),
        vec![Group {
            name: EVIL.to_owned(),
            ..Group::default()
        }],
    );
    live.event(now(), EVIL.to_owned());
    live.failures.push((EVIL.to_owned(), EVIL.to_owned()));
    let page = Page::of(&plan, &findings, Some(EVIL)).text(Some(&live));
    assert_eq!(count(&page, "<script"), 1, "the page's own");
    assert_eq!(count(&page, "<!--"), 0);
    assert_eq!(count(&page, "alert(1)</script>"), 0);
    let is_odd = |c: char| c.is_control() && c != '\n' && c != '\t' || c == '\u{202e}';
    assert!(!page.contains(is_odd));
    assert!(
        count(&page, "&lt;script&gt;alert(1)&lt;/script&gt;") > 20,
        "{page}"
    );
}

#[test]
fn secrets_are_masked_before_they_are_escaped() {
    const SECRET: &str = "q\"<&page-secret'>z";
    redact::know([SECRET]);
    let mut body = crate::report::testing::body(3, 2);
    body.tags
        .insert("Password".to_owned(), format!("x{SECRET}x"));
    let plan = plan_of(vec![Change {
        after: Some(Box::new(side(3, 2, body))),
        ..create("default/new", 3)
    }]);
    let findings = json!([{"severity": "error", "summary": SECRET}]);
    let page = Page::of(&plan, &findings, None).text(None);
    assert_eq!(count(&page, "page-secret"), 0);
    assert!(page.contains("x(sensitive value)x"), "{page}");
}

#[test]
fn only_the_page_s_script_may_run() {
    let page = page(&plan_of(Vec::new()));
    let start = page.find("<script>").unwrap() + "<script>".len();
    let script = &page[start..page.find("</script>").unwrap()];
    let hash = STANDARD.encode(Sha256::digest(script));
    assert!(page.contains(&format!("script-src 'sha256-{hash}'")));
    for outside in ["http:", "https:", "src=", "url(", "@import", " on"] {
        let found = match outside {
            // A handler in an attribute.
            " on" => page.contains(" onclick") || page.contains(" onload"),
            text => page.contains(text),
        };
        assert!(!found, "`{outside}` loads something");
    }
}

#[test]
fn a_long_page_has_no_details_at_its_end() {
    let changes = (0..2_100).map(|slot| {
        let mut change = update("default/web", slot);
        let text = |version: u32| json!(format!("a\n{}\n", slot * 7_919 + version * 104_729));
        change.attributes.push(attribute(
            "userdata",
            Some(text(1)),
            Some(text(2)),
            Effect::InPlace,
        ));
        change
    });
    let page = page(&plan_of(changes.collect()));
    assert_eq!(count(&page, "<details class=\"b update\""), 2_100);
    assert_eq!(count(&page, "<pre class=d>"), 2_000);
    assert_eq!(count(&page, "The page is too long for the details"), 100);
    assert!(page.len() < 4_000_000, "{}", page.len());
}

#[test]
fn long_values_are_cut_around_their_difference() {
    let long = |end: &str| json!(format!("{}{end}{}", "x".repeat(50_000), "y".repeat(50_000)));
    let mut change = update("default/web", 0);
    change.attributes = vec![
        attribute(
            "tags.Long",
            Some(long("one")),
            Some(long("two")),
            Effect::InPlace,
        ),
        attribute(
            "userdata",
            Some(json!("a\n")),
            Some(json!(format!("a\n{}\n", "z".repeat(50_000)))),
            Effect::InPlace,
        ),
    ];
    let page = page(&plan_of(vec![change]));
    assert!(page.contains("xoney") && page.contains("xtwoy"), "{page}");
    assert!(page.len() < 40_000, "{}", page.len());
}

#[test]
fn equal_changes_are_one_entry() {
    let changes = (0..1_000).map(|slot| replace("default/web", slot));
    let page = page(&plan_of(changes.collect()));
    assert_eq!(count(&page, "<details class=\"b replace\""), 1);
    assert!(page.contains("default/web/[0..999]"));
    assert!(page.len() < 60_000, "{}", page.len());
}

#[test]
fn a_graph_of_many_groups_shows_those_with_most_changes() {
    let groups = (0..60_u32).flat_map(|group| {
        let slots = if group >= 20 { 0..2 } else { 0..1 };
        slots.map(move |slot| create(&format!("default/g{group:02}"), slot))
    });
    let mut plan = plan_of(groups.collect());
    plan.sizes.insert("default/quiet".to_owned(), 3);
    // Nor does a dependency bring them in.
    plan = with_rollout(plan, "default/g20", Rollout::standard(2));
    plan.groups[0].after = vec!["default/g19".to_owned()];
    let page = page(&plan);
    assert_eq!(count(&page, "<g class=\"node changed\""), 40);
    assert!(page.contains("leaves out 20 groups with fewer changes"));
    assert!(page.contains("Without changes, and not shown: 1 group."));
    let svg = &page[page.find("<svg").unwrap()..page.find("</svg>").unwrap()];
    assert!(svg.contains("default/g20") && !svg.contains("default/g19"));
}

#[test]
fn groups_stand_behind_those_they_depend_on() {
    let mut plan = plan_of(vec![create("default/a", 0), create("default/b", 0)]);
    plan = with_rollout(plan, "default/a", Rollout::standard(1));
    plan.groups[0].after = vec!["default/b".to_owned()];
    let page = page(&plan);
    let at = |name: &str| {
        let title = page.find(&format!("<title>group {name}")).unwrap();
        let place = page[..title].rfind("translate(").unwrap();
        let place = &page[place + "translate(".len()..title];
        place.split(' ').next().unwrap().parse::<usize>().unwrap()
    };
    assert_eq!(at("default/a") - at("default/b"), 270, "a column further");
}

#[test]
fn a_page_reloads_until_the_apply_is_over() {
    let plan = plan_of(vec![create("default/web", 0), create("default/web", 1)]);
    let page = Page::of(&plan, &Value::Null, None);
    assert!(
        !page.text(None).contains("id=live"),
        "there is no apply yet"
    );
    let group = Group {
        name: "default/web".to_owned(),
        total: 2,
        done: 1,
        failed: 1,
        status: "rolling: waiting for a check".to_owned(),
    };
    let mut live = Live::new(now(), vec![group]);
    for number in 0..25 {
        live.event(now(), format!("event {number}."));
    }
    live.failures
        .push(("default/web/1".to_owned(), "no capacity".to_owned()));
    for (state, word, reloads) in [
        (State::Running, "running", true),
        (State::RollingBack, "rolling back", true),
        (State::Done, "done", false),
        (State::Waiting, "waiting", false),
        (State::Failed, "failed", false),
        (State::Interrupted, "interrupted", false),
    ] {
        live.state = state;
        let text = page.text(Some(&live));
        assert!(text.contains(&format!("Apply: {word}</h2>")), "{word}");
        assert_eq!(text.contains("http-equiv=refresh"), reloads, "{word}");
        assert_eq!(text.contains("data-final=0"), reloads, "{word}");
        assert!(text.contains("<progress max=2 value=1"));
        assert!(text.contains("<b>1 of 2 changes done</b>, <b class=bad>1 failed</b>"));
        assert!(text.contains("<code>default/web/1</code>: no capacity"));
        assert!(text.contains("event 24.") && !text.contains("event 4."));
    }
}
