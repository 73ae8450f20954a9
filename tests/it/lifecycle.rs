//! Whole lifetimes of two fleets: each step is a snapshot, and after each the record and the cloud
//! agree.

use insta::assert_snapshot;

use crate::harness::Harness;

/// An example, and how its configuration is edited on the way.
struct Fleet {
    name: &'static str,
    /// Of every command.
    options: &'static str,
    /// What is live at first.
    size: usize,
    /// From one size to two more.
    grow: [&'static str; 2],
    /// To one less.
    shrink: [&'static str; 2],
    vary: [&'static str; 2],
    in_place: [&'static str; 2],
    image: &'static str,
    /// How many keep their image when there is a newer one.
    keep_image: usize,
    /// Slots that are tagged, given another type, stopped, deleted by hand.
    by_hand: [&'static str; 4],
    /// The option that replaces a protected group's instances.
    allow_replace: &'static str,
    /// What keeps the cloud from deleting an instance, and nothing in its place.
    release: Option<[&'static str; 2]>,
    destroy: &'static str,
}

const QUICKSTART: Fleet = Fleet {
    name: "quickstart",
    options: "",
    size: 6,
    grow: ["\"size\": 2,", "\"size\": 4,"],
    shrink: ["\"size\": 4,", "\"size\": 3,"],
    vary: ["\"GREETING\": \"Hello\"", "\"GREETING\": \"Good morning\""],
    in_place: ["\"Enabled\": true", "\"Enabled\": false"],
    image: "debian-13-amd64-20261120-2700",
    keep_image: 0,
    by_hand: [
        "default/web/0",
        "default/web/1",
        "default/web/2",
        "default/workers/0",
    ],
    allow_replace: "--allow-replace database",
    release: None,
    destroy: "destroy --auto-approve --allow-delete database",
};

const KUBERNETES: Fleet = Fleet {
    name: "kubernetes",
    options: "--sim",
    size: 19,
    grow: ["\"size\": 6,", "\"size\": 8,"],
    shrink: ["\"size\": 8,", "\"size\": 7,"],
    vary: [
        "\"ENVIRONMENT\": \"production\"",
        "\"ENVIRONMENT\": \"staging\"",
    ],
    in_place: [
        "{ \"Key\": \"environment\",",
        "{ \"Key\": \"team\", \"Value\": \"core\" }, { \"Key\": \"environment\",",
    ],
    image: "debian-13-arm64-20261120-2700",
    keep_image: 3,
    by_hand: [
        "default/workers/0",
        "default/workers/1",
        "default/ingress/2",
        "default/nat/0",
    ],
    allow_replace: "",
    release: Some([
        "\"DisableApiTermination\": true",
        "\"DisableApiTermination\": false",
    ]),
    destroy: "destroy --auto-approve --allow-delete default/control-plane",
};

impl Fleet {
    /// A command with the fleet's options.
    fn words(&self, words: &str) -> String {
        format!("{words} {}", self.options).trim_end().to_owned()
    }

    /// Applies, checks that all is well, and that the next plan is empty.
    #[track_caller]
    fn apply(&self, harness: &Harness, options: &str) -> String {
        let words = format!("apply --auto-approve {options}");
        let applied = harness.ok(&self.words(words.trim()));
        harness.agrees(self.options);
        self.settled(harness);
        applied.to_string()
    }

    #[track_caller]
    fn settled(&self, harness: &Harness) {
        let plan = harness.ok(&self.words("plan --detailed-exitcode"));
        assert!(plan.stdout.contains("No changes."), "{plan}");
        let again = harness.ok(&self.words("apply --auto-approve"));
        assert!(again.stdout.contains("No changes."), "{again}");
        assert!(
            again.stdout.contains("0 added, 0 changed, 0 destroyed"),
            "{again}"
        );
        let drift = harness.ok(&self.words("drift"));
        assert!(drift.stdout.contains("No drift"), "{drift}");
    }

    fn live(&self) {
        let harness = Harness::example(self.name);
        let snapshot =
            |step: &str, text: String| assert_snapshot!(format!("{}_{step}", self.name), text);
        snapshot(
            "01_validate",
            harness.ok(&self.words("validate")).to_string(),
        );
        let files = harness.files();
        let planned = harness.run(&self.words("plan --detailed-exitcode"));
        assert_eq!(planned.code, Some(2));
        assert_eq!(harness.files(), files, "a plan makes no file");
        snapshot("02_plan", planned.to_string());
        snapshot("03_apply", self.apply(&harness, ""));
        assert_eq!(harness.agrees(self.options), self.size);
        snapshot("04_plan_again", harness.ok(&self.words("plan")).to_string());
        snapshot(
            "05_apply_again",
            harness.ok(&self.words("apply --auto-approve")).to_string(),
        );

        harness.edit(self.grow[0], self.grow[1]);
        let before = harness.live();
        snapshot("06_scale_up", self.apply(&harness, ""));
        let after = harness.live();
        assert!(before.is_subset(&after), "growing leaves the others alone");
        assert_eq!(after.len(), self.size + 2);

        harness.edit(self.shrink[0], self.shrink[1]);
        snapshot("07_scale_down", self.apply(&harness, ""));
        assert!(
            harness.live().is_subset(&after),
            "shrinking leaves the others alone"
        );
        assert_eq!(harness.live().len(), self.size + 1);

        harness.edit(self.vary[0], self.vary[1]);
        snapshot("08_var", self.apply(&harness, self.allow_replace));

        let before = harness.live();
        harness.edit(self.in_place[0], self.in_place[1]);
        snapshot("09_args_in_place", self.apply(&harness, ""));
        assert_eq!(harness.live(), before, "in place is in place");

        harness.ok(&self.words(&format!(
            "sim image publish {} --created 2026-11-20T00:00:00Z",
            self.image
        )));
        let unasked = harness.ok(&self.words("plan --detailed-exitcode"));
        assert!(
            unasked.stdout.contains("No changes."),
            "a young answer is kept"
        );
        let options = format!("--refresh-images {}", self.allow_replace);
        snapshot("10_newer_image", self.apply(&harness, options.trim()));
        let after = harness.live();
        assert_eq!(before.intersection(&after).count(), self.keep_image);
        assert_eq!(before.len(), after.len());

        self.by_hand(&harness, &snapshot);

        if let Some([from, to]) = self.release {
            harness.edit(from, to);
            snapshot("15_release", self.apply(&harness, ""));
        }
        let destroyed = harness.ok(&self.words(self.destroy));
        snapshot("16_destroy", destroyed.to_string());
        assert_eq!(harness.agrees(self.options), 0);
        snapshot(
            "17_history",
            harness.ok(&self.words("state history")).to_string(),
        );
    }

    fn by_hand(&self, harness: &Harness, snapshot: &dyn Fn(&str, String)) {
        let [tagged, retyped, stopped, deleted] = self.by_hand;
        harness.ok(&self.words(&format!("sim set-tag {tagged} Owner=someone")));
        harness.ok(&self.words(&format!("sim set-type {retyped} c9.metal")));
        harness.ok(&self.words(&format!("sim stop {stopped}")));
        harness.ok(&self.words(&format!("sim delete {deleted}")));
        let drift = harness.run(&self.words("drift"));
        assert_eq!(drift.code, Some(2), "{drift}");
        snapshot("11_drift", drift.to_string());
        let document = harness.run(&self.words("drift --json")).json();
        assert_eq!(document["drifted"], true);
        let mut found: Vec<_> = document["resource_drift"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| {
                let paths: Vec<_> = one["changes"].as_array().into_iter().flatten().collect();
                let paths: Vec<_> = paths
                    .iter()
                    .map(|change| change["path"].as_str().unwrap())
                    .collect();
                format!(
                    "{} {} {}",
                    one["address"].as_str().unwrap(),
                    one["kind"].as_str().unwrap(),
                    paths.join(",")
                )
            })
            .collect();
        found.sort();
        snapshot("12_drift_paths", found.join("\n"));
        snapshot(
            "13_plan_repair",
            harness.ok(&self.words("plan")).to_string(),
        );
        snapshot("14_apply_repair", self.apply(harness, ""));
    }
}

#[test]
fn the_quickstart_from_first_plan_to_destroy() {
    QUICKSTART.live();
}

#[test]
fn a_kubernetes_cluster_from_first_plan_to_destroy() {
    KUBERNETES.live();
}
