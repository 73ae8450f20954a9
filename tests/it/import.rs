//! `import`.

use insta::assert_snapshot;

use crate::harness::{Harness, TWO, TWO_STATE};

fn id_of(harness: &Harness, address: &str) -> String {
    let live = harness.live();
    let found = live.iter().find(|[at, ..]| at == address);
    found.map(|[_, _, id]| id.clone()).expect("it is live")
}

#[test]
fn a_forgotten_instance_is_recorded_again() {
    let harness = Harness::applied(TWO);
    let id = id_of(&harness, "default/web/1");
    harness.ok("state rm default/web/1");
    assert_snapshot!(harness.ok(&format!("import default/web/1 {id}")));
    assert_eq!(harness.agrees(""), 5);
    assert!(
        harness
            .ok("plan --detailed-exitcode")
            .stdout
            .contains("No changes.")
    );
    assert_snapshot!(harness.ok("state history"));
}

#[test]
fn without_a_state_it_makes_one() {
    let harness = Harness::applied(TWO);
    let id = id_of(&harness, "default/web/1");
    std::fs::remove_file(harness.path(TWO_STATE)).unwrap();
    harness.ok(&format!("import default/web/1 {id}"));
    assert_eq!(
        harness.json("state list --json")["records"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
}

#[test]
fn what_cannot_be_imported_is_explained() {
    let harness = Harness::applied(TWO);
    let id = id_of(&harness, "default/web/1");
    for words in [
        "import default/web/1 sim-0000000000000000".to_owned(),
        format!("import default/wbe/1 {id}"),
        format!("import default/web/9 {id}"),
        format!("import default/web {id}"),
    ] {
        assert_snapshot!(harness.refused(TWO_STATE, &words));
    }
    harness.ok("state rm default/web/1");
    let ended = harness.refused(TWO_STATE, &format!("import default/web/0 {id}"));
    assert_snapshot!(ended);
}
