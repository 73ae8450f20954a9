//! The page of a plan, as it is written, and in a browser.
//!
//! Chromium is driven without a protocol: a copy of the page gets a script that acts and writes what
//! it found into the page, which Chromium then prints.

use std::process::Command;

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::harness::{CANARY, Harness, TWO, TWO_STATE};
use crate::shards::fleet;

fn page(harness: &Harness, name: &str) -> String {
    String::from_utf8(harness.read(name)).unwrap()
}

/// The last times of a page's live section, which differ from command to command.
fn live_section(page: &str) -> &str {
    let start = page.find("<section id=live").expect("the apply is shown");
    &page[start..start + page[start..].find("</section>").unwrap()]
}

#[test]
fn report_plans_and_writes_nothing_but_the_page() {
    let harness = Harness::with(TWO);
    assert_snapshot!(harness.ok("report --html page.html"), @r"
    $ nstance report --html page.html
    exit code: 0
    ----- stderr
    Wrote the page to: page.html
    ");
    assert_eq!(harness.files(), ["nstance.jsonc", "page.html"]);
    let text = page(&harness, "page.html");
    assert!(
        text.starts_with("<!doctype html>\n<html lang=en>"),
        "{text}"
    );
    assert!(text.ends_with("</html>\n"), "{text}");
    assert!(
        text.contains("Plan: 5 to add, 0 to change, 0 to destroy."),
        "{text}"
    );
    assert!(!text.contains("id=live"), "nothing is applied");
    let document = harness.json("report --html page.html --json");
    assert_eq!(document["html"], "page.html");
    assert_eq!(document["summary"]["create"], 5);
}

#[test]
fn a_saved_plan_has_the_page_that_it_had_when_it_was_made() {
    let harness = Harness::applied(TWO);
    harness.edit("\"size\": 3", "\"size\": 4");
    let planned = harness.ok("plan --out saved.plan --html planned.html");
    assert!(
        planned
            .stderr
            .ends_with("Wrote the page to: planned.html\n"),
        "{planned}"
    );
    std::fs::remove_file(harness.path("nstance.jsonc")).unwrap();
    let ended = harness.ok("report saved.plan --html {cluster}-{shard}.html");
    assert_eq!(ended.stderr, "Wrote the page to: test-one.html\n");
    let text = page(&harness, "test-one.html");
    assert!(text.contains("default/web/3"), "{text}");
    assert_eq!(text, page(&harness, "planned.html"));
}

#[test]
fn report_refuses_what_does_not_fit() {
    let harness = Harness::with(TWO);
    harness.ok("plan --out saved.plan");
    assert_snapshot!(harness.run("report"));
    assert_snapshot!(harness.run("report saved.plan --html page.html --target default/web"));
    assert_snapshot!(harness.run("report nstance.jsonc --html page.html"));
    assert_snapshot!(harness.run("report --html missing/page.html"));
    assert_eq!(harness.files(), ["nstance.jsonc", "saved.plan"]);
}

#[test]
fn an_incomplete_plan_has_a_page_and_fails() {
    let harness = Harness::with(TWO);
    harness.edit("\"debian-13\"", "\"{{ .Image.debian }}\"");
    harness.edit(
        "\"templates\": {",
        "\"images\": { \"debian\": { \"provider\": \"sim\", \"filters\": [{ \"name\": \"name\", \"values\": [\"gone\"] }] } },\n  \"templates\": {",
    );
    let ended = harness.run("report --html page.html");
    assert_eq!(ended.code, Some(1), "{ended}");
    let text = page(&harness, "page.html");
    assert!(
        text.contains("Left out: 5 instances could not be planned:"),
        "{text}"
    );
    assert!(text.contains("<b>Error:</b>"), "{text}");
}

#[test]
fn each_shard_has_its_page() {
    let harness = fleet(&["a", "b"]);
    let ended = harness.run("-c a -c b report --html page.html");
    assert_snapshot!(ended);
    let ended = harness.ok("-c a -c b report --html {shard}.html");
    assert_eq!(ended.stderr, "Wrote the pages to: a.html b.html\n");
    for shard in ["a", "b"] {
        let text = page(&harness, &format!("{shard}.html"));
        assert!(
            text.contains(&format!("<h1>Plan of test/{shard}</h1>")),
            "{text}"
        );
    }
    harness.ok("-c a -c b plan --html plan-{shard}.html");
    assert_eq!(
        page(&harness, "plan-a.html").len(),
        page(&harness, "a.html").len()
    );
    // Only the shard of the plan is applied, so one page is enough.
    harness.give_key();
    harness.ok("-c a -c b plan --out {shard}.plan");
    harness.ok("-c a -c b apply a.plan --html page.html --report json=result.json");
    assert!(live_section(&page(&harness, "page.html")).contains("5 of 5 changes done"));
    harness.ok("-c a -c b destroy --auto-approve");
    harness.ok("-c a -c b apply --auto-approve --html {shard}.html");
    for shard in ["a", "b"] {
        let text = page(&harness, &format!("{shard}.html"));
        assert!(
            live_section(&text).contains("5 of 5 changes done"),
            "{text}"
        );
    }
}

#[test]
fn apply_ends_with_a_final_page() {
    let harness = Harness::with(TWO);
    let ended = harness.ok("apply --auto-approve --html page.html");
    assert!(
        ended.stderr.starts_with("Wrote the page to: page.html\n"),
        "{ended}"
    );
    let text = page(&harness, "page.html");
    let live = live_section(&text);
    assert!(live.contains("Apply: done</h2>"), "{live}");
    assert!(live.contains("<b>5 of 5 changes done</b>"), "{live}");
    assert!(live.contains("data-final=1"), "{live}");
    assert!(
        live.contains("default/web/2: creating done after 0s"),
        "{live}"
    );
    // Nothing is left beside it.
    assert!(!harness.files().iter().any(|it| it.starts_with(".nstance-")));
    // Without changes, it is the plan's.
    harness.ok("apply --auto-approve --html page.html");
    let text = page(&harness, "page.html");
    assert!(text.contains("No changes."), "{text}");
}

#[test]
fn a_failed_apply_shows_its_errors() {
    let harness = Harness::with(TWO);
    harness.edit(
        "\"options\": {}",
        "\"options\": { \"fail\": [{ \"operation\": \"create\", \"error\": \"quota\", \"count\": 9 }] }",
    );
    let ended = harness.run("apply --auto-approve --html page.html");
    assert_eq!(ended.code, Some(1), "{ended}");
    let text = page(&harness, "page.html");
    let live = live_section(&text);
    assert!(live.contains("Apply: failed</h2>"), "{live}");
    assert!(
        live.contains("<b>0 of 5 changes done</b>, <b class=bad>4 failed</b>"),
        "{live}"
    );
    // One error, with its addresses.
    assert!(live.contains("<h3>Failures</h3>"), "{live}");
    assert!(
        live.contains(
            "<li><code>default/web/0, default/web/1, default/db/0, default/db/1</code>: "
        ),
        "{live}"
    );
    assert!(live.contains("data-final=1"), "{live}");
    // The events of an apply with --json are as without a page.
    let ended = harness.run("apply --auto-approve --html page.html --json");
    assert!(
        ended.events().iter().all(|event| event["type"].is_string()),
        "{ended}"
    );
}

/// A fleet whose replacements run a script first.
fn with_drain(script: &str) -> Harness {
    let harness = Harness::applied(TWO);
    harness.edit(
        "\"size\": 3 }",
        "\"size\": 3, \"vars\": { \"ROLE\": \"new\" }, \"userdata\": \"new\", \
         \"update\": { \"drain\": { \"command\": [\"/bin/sh\", \"drain.sh\"] } } }",
    );
    harness.write("drain.sh", script);
    harness
}

#[test]
fn the_page_shows_an_apply_under_way() {
    // Each look is a process, so that the looks take long enough for the page to come.
    let harness = with_drain(
        "i=0\nwhile [ $i -lt 3000 ]; do\n  if /bin/grep -q 'Apply: running' pages/page.html; then\n    \
         /bin/cp pages/page.html running.html\n    exit 0\n  fi\n  i=$((i + 1))\ndone\nexit 1\n",
    );
    std::fs::create_dir(harness.path("pages")).unwrap();
    harness.ok("apply --auto-approve --html pages/page.html");
    let text = page(&harness, "running.html");
    let live = live_section(&text);
    assert!(live.contains("data-final=0"), "{live}");
    assert!(live.contains("of 3 changes done"), "{live}");
    assert!(
        text.contains("<noscript><meta http-equiv=refresh content=5></noscript>"),
        "{text}"
    );
    let text = page(&harness, "pages/page.html");
    assert!(live_section(&text).contains("Apply: done</h2>"), "{text}");
    assert!(!text.contains("http-equiv=refresh"), "{text}");
}

#[test]
fn an_interrupted_apply_says_so() {
    let harness = with_drain("kill -INT $PPID\n");
    let ended = harness.run("apply --auto-approve --html page.html");
    assert_eq!(ended.code, Some(130), "{ended}");
    let text = page(&harness, "page.html");
    let live = live_section(&text);
    assert!(live.contains("Apply: interrupted</h2>"), "{live}");
    assert!(live.contains("data-final=1"), "{live}");
}

#[test]
fn an_apply_that_waits_says_for_what() {
    let harness = Harness::applied(TWO);
    harness.edit(
        "\"size\": 3 }",
        "\"size\": 3, \"vars\": { \"ROLE\": \"new\" }, \"userdata\": \"new\", \
         \"update\": { \"canaries\": 1, \"canary_pause\": \"manual\" } }",
    );
    let ended = harness.run("apply --auto-approve --html page.html");
    assert_eq!(ended.code, Some(3), "{ended}");
    let text = page(&harness, "page.html");
    let live = live_section(&text);
    assert!(live.contains("Apply: waiting</h2>"), "{live}");
    assert!(live.contains("<b>1 of 3 changes done</b>"), "{live}");
    assert!(live.contains("<td>canary pause"), "{live}");
    // The next apply goes on where this one ended.
    harness.ok("rollout promote default/web");
    harness.ok("apply --auto-approve --html page.html");
    let text = page(&harness, "page.html");
    assert!(
        live_section(&text).contains("<b>3 of 3 changes done</b>"),
        "{text}"
    );
}

#[test]
fn an_apply_goes_on_without_its_page() {
    let harness = with_drain("/bin/rm -rf pages\n");
    std::fs::create_dir(harness.path("pages")).unwrap();
    let ended = harness.ok("apply --auto-approve --html pages/page.html");
    let warning = "warning: the page can't be kept up to date";
    assert_eq!(ended.stderr.matches(warning).count(), 1, "{ended}");
    assert_eq!(harness.agrees(""), 5);
}

#[test]
fn nothing_is_applied_if_the_page_cannot_be_written() {
    let harness = Harness::applied(TWO);
    harness.edit("\"size\": 3", "\"size\": 4");
    let ended = harness.refused(TWO_STATE, "apply --auto-approve --html missing/page.html");
    assert!(
        ended
            .stderr
            .contains("can't write: there is no such folder"),
        "{ended}"
    );
}

#[test]
fn secrets_are_not_on_the_page() {
    let harness = Harness::empty();
    harness.write("nstance.hcl", HCL_SECRET);
    harness.give_key();
    for words in [
        "report --html page.html",
        "plan --html page.html",
        "apply --auto-approve --html page.html",
    ] {
        harness.ok(&format!("{words} --var password=a<{CANARY}>b"));
        let text = page(&harness, "page.html");
        assert!(!text.contains(CANARY), "{words}");
    }
    // Shown where it is asked for: not in a file.
    let harness = harness.showing_secrets();
    harness.ok(&format!(
        "plan --html page.html --show-sensitive --var password=b<{CANARY}>c"
    ));
    let text = page(&harness, "page.html");
    assert!(text.contains("(sensitive"), "{text}");
    assert!(!text.contains(CANARY), "{text}");
}

const HCL_SECRET: &str = r##"
variable "password" {
  type      = string
  sensitive = true
}
cluster { id = "test" }
shard {
  id = "one"
  infra {
    provider = "sim"
    region   = "local-1"
    zone     = "local-1a"
  }
}
group "default" "web" {
  kind          = "srv"
  arch          = "amd64"
  instance_type = "small"
  size          = 2
  args          = { ImageId = "debian-13" }
  userdata      = "#cloud-config\npassword: ${var.password}\npackages: [curl]\n"
}
"##;

/// Chromium, if the tests are to use it.
struct Browser {
    harness: Harness,
    program: String,
}

impl Browser {
    /// `None` without a browser, which is an error in CI.
    #[expect(
        clippy::print_stdout,
        reason = "a test that does nothing has to say so"
    )]
    fn new() -> Option<Self> {
        let Ok(program) = std::env::var("NSTANCE_TEST_CHROMIUM") else {
            assert!(
                std::env::var("CI").is_err(),
                "NSTANCE_TEST_CHROMIUM names no browser: cargo xtask test --all finds one"
            );
            println!("left out: NSTANCE_TEST_CHROMIUM names no browser");
            return None;
        };
        let harness = fleet_with_changes();
        harness.ok("report --html page.html");
        Some(Self { harness, program })
    }

    /// Opens a file of the folder; returns what Chromium prints.
    fn open(&self, name: &str, options: &[&str]) -> String {
        let profile = self.harness.path("profile");
        let output = Command::new(&self.program)
            .args([
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--hide-scrollbars",
            ])
            .arg(format!("--user-data-dir={}", profile.display()))
            .args(["--window-size=1200,900", "--virtual-time-budget=10000"])
            .args(options)
            .arg(format!(
                "file://{}",
                self.harness.path("").join(name).display()
            ))
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Runs a script in a copy of the page; `found` is what it found.
    fn run(&self, script: &str, options: &[&str]) -> Value {
        let text = page(&self.harness, "page.html");
        self.harness.write("copy.html", scripted(&text, script));
        self.found("copy.html", options)
    }

    /// What the script of a file found.
    fn found(&self, name: &str, options: &[&str]) -> Value {
        let options: Vec<&str> = options.iter().copied().chain(["--dump-dom"]).collect();
        let printed = self.open(name, &options);
        let start = printed
            .find("<pre id=\"found\">")
            .unwrap_or_else(|| panic!("{printed}"));
        let found = &printed[start + "<pre id=\"found\">".len()..];
        let found = &found[..found.find("</pre>").unwrap()];
        let found = found
            .replace("&lt;", "<")
            .replace("&gt;", ">")
            .replace("&amp;", "&");
        let found: Value = serde_json::from_str(&found).unwrap();
        assert_eq!(found["errors"], json!([]), "{found}");
        found
    }
}

/// A fleet whose plan has every kind of entry.
fn fleet_with_changes() -> Harness {
    let harness = Harness::with(BEFORE);
    harness.ok("apply --auto-approve -q");
    harness.edit("kubelet=1.31", "kubelet=1.32");
    harness.edit("\"size\": 4", "\"size\": 2");
    harness.edit("\"size\": 5", "\"size\": 6");
    harness.edit(
        "\"cache\": { \"template\": \"vm\"",
        "\"cache\": { \"template\": \"vm\", \"instance_type\": \"large\"",
    );
    harness
}

const BEFORE: &str = r##"{
  "cluster": { "id": "test" },
  "shard": {
    "id": "one",
    "infra": { "provider": "sim", "region": "local-1", "zone": "local-1a", "options": {} },
  },
  "templates": {
    "vm": {
      "kind": "srv", "arch": "amd64", "instance_type": "small",
      "args": { "ImageId": "debian-13" },
    },
    "node": {
      "kind": "knd", "arch": "amd64", "instance_type": "small",
      "args": { "ImageId": "debian-13" },
      "userdata": "#cloud-config\nhostname: {{ .Instance.ID }}\npackages:\n  - kubelet=1.31\n  - a-package-with-a-very-long-name-that-does-not-fit-on-a-phone-in-one-line-at-all\n",
    },
  },
  "groups": {
    "default": {
      "web": { "template": "node", "size": 7, "update": { "max_surge": 3, "canaries": 1, "canary_pause": "10m" } },
      "lazy": { "template": "node", "size": 1, "update": { "opportunistic": true } },
      "batch": { "template": "vm", "size": 4 },
      "cache": { "template": "vm", "size": 2 },
      "edge": { "template": "vm", "size": 5, "depends_on": ["batch"] },
    },
  },
}
"##;

/// A page with a script at its end, and a collector of errors before everything else.
fn scripted(page: &str, script: &str) -> String {
    let start = page.find("script-src '").unwrap() + "script-src ".len();
    let end = start + page[start..].find(';').unwrap();
    let open = format!("{}'unsafe-inline'{}", &page[..start], &page[end..]);
    let collector = "<head><script>window.errors = [];\
        addEventListener('error', (event) => errors.push(String(event.message)));\
        addEventListener('unhandledrejection', (event) => errors.push(String(event.reason)));</script>";
    let open = open.replacen("<head>", collector, 1);
    let script = format!(
        "<script>addEventListener('load', async () => {{ let found;\
         const wait = (time) => new Promise((done) => setTimeout(done, time));\
         try {{ found = await (async () => {{ {script} }})(); }} catch (error) {{ errors.push(String(error)); }}\
         const pre = document.createElement('pre'); pre.id = 'found';\
         pre.textContent = JSON.stringify({{ ...found, errors }});\
         document.body.replaceChildren(pre); }});</script></body>"
    );
    open.replacen("</body>", &script, 1)
}

/// Functions for scripts.
const SHOWN: &str = "
    const shown = () => [...document.querySelectorAll('details.b[data-a]')]
      .filter((one) => one.checkVisibility()).map((one) => one.querySelector('code').textContent);
    const matches = () => document.getElementById('matches').textContent;
    const set = (name, value) => {
      const field = document.forms[0].elements[name];
      field.value = value;
      field.dispatchEvent(new Event('input', { bubbles: true }));
      field.dispatchEvent(new Event('change', { bubbles: true }));
    };
    const action = (word) => document.querySelector(`[name=action][value='${word}']`).click();
";

#[test]
fn filters_show_what_they_match() {
    let Some(browser) = Browser::new() else {
        return;
    };
    let script = format!(
        "{SHOWN}
        const all = shown(), allText = matches();
        action('replace');
        const replaced = shown(), replacedText = matches(), hash = location.hash;
        action('destroy');
        const two = shown();
        action('replace'); action('destroy');
        set('group', 'default/edge');
        const edge = shown();
        const others = document.getElementById('group-default/web').checkVisibility();
        set('group', '');
        set('reason', 'group shrank');
        const shrank = shown();
        set('reason', '');
        set('q', 'KUBELET 1.32');
        const searched = shown();
        set('q', 'nowhere');
        const none = matches();
        document.querySelector('[type=reset]').click();
        await wait(50);
        const reset = shown();
        document.querySelector('.tile.destroy a').click();
        await wait(50);
        const tile = shown();
        document.querySelector('.g a[href$=\"default/cache\"]').click();
        await wait(50);
        const linked = shown();
        return {{ all, allText, replaced, replacedText, hash, two, edge, others, shrank, searched, none,
          reset, tile, linked }};"
    );
    let found = browser.run(&script, &[]);
    let all = json!([
        "default/batch/[2, 3]",
        "default/cache/[0, 1]",
        "default/edge/5",
        "default/web/[0..6]",
        "default/lazy/0"
    ]);
    let expected = json!({
        "all": all,
        "allText": "13 instances in 5 entries",
        "replaced": ["default/web/[0..6]"],
        "replacedText": "7 of 13 instances in 1 entry",
        "hash": "#action=replace",
        "two": ["default/batch/[2, 3]", "default/web/[0..6]"],
        "edge": ["default/edge/5"],
        "others": false,
        "shrank": ["default/batch/[2, 3]"],
        "searched": ["default/web/[0..6]", "default/lazy/0"],
        "none": "No change matches the filters",
        "reset": all,
        "tile": ["default/batch/[2, 3]"],
        // A link to what is hidden clears the filters.
        "linked": all,
        "errors": [],
    });
    assert_eq!(found, expected, "{found:#}");
}

#[test]
fn filters_are_in_the_link() {
    let Some(browser) = Browser::new() else {
        return;
    };
    let script = format!(
        "{SHOWN}
        const first = shown();
        location.hash = '#q=kubelet&action=held-back';
        await wait(50);
        return {{ first, later: shown(), q: document.forms[0].elements.q.value }};"
    );
    let text = page(&browser.harness, "page.html");
    // A link can't be opened with its hash in a file's name, so the page goes there before it is read.
    let text = text.replacen(
        "<script>",
        "<script>location.replace('#action=update,destroy&group=default%2Fcache');</script><script>",
        1,
    );
    browser.harness.write("copy.html", scripted(&text, &script));
    let found = browser.found("copy.html", &[]);
    assert_eq!(found["first"], json!(["default/cache/[0, 1]"]), "{found:#}");
    assert_eq!(found["later"], json!(["default/lazy/0"]), "{found:#}");
    assert_eq!(found["q"], "kubelet");
}

#[test]
fn the_page_s_own_script_runs_under_its_policy() {
    let Some(browser) = Browser::new() else {
        return;
    };
    let printed = browser.open("page.html", &["--dump-dom"]);
    assert!(printed.contains("13 instances in 5 entries"), "{printed}");
    // Another script doesn't.
    let text = page(&browser.harness, "page.html");
    let text = text.replacen(
        "<main>",
        "<main><script>document.title = 'taken over'</script>",
        1,
    );
    browser.harness.write("copy.html", text);
    let printed = browser.open("copy.html", &["--dump-dom"]);
    assert!(
        printed.contains("<title>Plan of test/one</title>"),
        "{printed}"
    );
}

#[test]
fn everything_is_reached_with_the_keyboard() {
    let Some(browser) = Browser::new() else {
        return;
    };
    let script = "
        const details = [...document.querySelectorAll('details.b')];
        const open = () => details.filter((one) => one.open).length;
        const before = open();
        document.getElementById('open').click();
        const opened = open();
        document.getElementById('close').click();
        const closed = open();
        const summary = details[0].querySelector('summary');
        summary.focus();
        const focused = document.activeElement === summary;
        summary.click();
        const one = open();
        const reachable = [...document.querySelectorAll('a[href], button, input, select, summary, .graph, .waves')]
          .filter((one) => one.checkVisibility());
        const lost = reachable.filter((one) => { one.focus(); return document.activeElement !== one; });
        const outlines = reachable.filter((one) => { one.focus({ focusVisible: true }); return getComputedStyle(one).outlineStyle === 'none'; });
        const skip = document.querySelector('.skip');
        skip.click();
        await wait(50);
        const headings = [...document.querySelectorAll('h1, h2, h3, h4')].map((one) => Number(one.tagName[1]));
        const skipped = headings.filter((level, index) => index > 0 && level > headings[index - 1] + 1).length;
        const unlabelled = [...document.querySelectorAll('input, select')].filter((one) => !one.labels.length).length;
        const ids = [...document.querySelectorAll('[id]')].map((one) => one.id);
        const broken = [...document.querySelectorAll('a[href^=\"#\"]')].map((one) => one.getAttribute('href').slice(1))
          .filter((id) => !id.includes('=') && !document.getElementById(id));
        const scopeless = [...document.querySelectorAll('th')].filter((one) => !one.scope).length;
        return { before, opened, closed, focused, one, lost: lost.length, outlines: outlines.length,
          target: document.activeElement.id, skipped, unlabelled, double: ids.length - new Set(ids).size,
          broken, scopeless, live: document.getElementById('matches').getAttribute('aria-live'),
          landmarks: ['header', 'nav', 'main'].filter((one) => document.querySelector(one)) };";
    let found = browser.run(script, &[]);
    let expected = json!({
        "before": 0, "opened": 5, "closed": 0, "focused": true, "one": 1, "lost": 0, "outlines": 0,
        "target": "changes-title", "skipped": 0, "unlabelled": 0, "double": 0, "broken": [],
        "scopeless": 0, "live": "polite", "landmarks": ["header", "nav", "main"], "errors": [],
    });
    assert_eq!(found, expected, "{found:#}");
}

#[test]
fn a_phone_has_to_scroll_in_one_direction_only() {
    let Some(browser) = Browser::new() else {
        return;
    };
    // Chromium's windows are at least 500 pixels wide, frames aren't.
    let inner = page(&browser.harness, "page.html");
    let escaped = inner
        .replace('&', "&amp;")
        .replace('"', "&quot;")
        .replace('<', "&lt;");
    let outer = format!(
        "<!doctype html><html><head>\n<meta http-equiv=Content-Security-Policy content=\"\
         script-src 'x'; x\"></head><body><iframe width=390 height=800 srcdoc=\"{escaped}\"></iframe></body></html>"
    );
    let script = "
        const frame = document.querySelector('iframe'), inside = frame.contentDocument;
        for (const one of inside.querySelectorAll('details')) one.open = true;
        await wait(50);
        const width = frame.contentWindow.innerWidth;
        const wide = [...inside.querySelectorAll('body *')].filter((one) =>
          !one.closest('.graph, .scroll, .skip, thead') && one.getBoundingClientRect().right > width + 1);
        return { width, scroll: inside.documentElement.scrollWidth,
          wide: wide.map((one) => one.outerHTML.slice(0, 80)) };";
    browser.harness.write("copy.html", scripted(&outer, script));
    let found = browser.found("copy.html", &[]);
    let expected = json!({"width": 390, "scroll": 390, "wide": [], "errors": []});
    assert_eq!(found, expected, "{found:#}");
}

/// The colors of everything with a text, and how well they can be read.
const COLORS: &str = "
    document.getElementById('open').click();
    const parse = (color) => (color.match(/[\\d.]+/g) || []).map(Number);
    const light = ([r, g, b]) => {
      const [x, y, z] = [r, g, b].map((c) => (c /= 255) <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
      return 0.2126 * x + 0.7152 * y + 0.0722 * z;
    };
    const ground = (one) => {
      for (; one; one = one.parentElement) {
        const color = parse(getComputedStyle(one).backgroundColor);
        if (color.length === 3 || color[3] === 1) return color;
      }
      return [255, 255, 255];
    };
    const faint = new Set();
    for (const one of document.querySelectorAll('body *')) {
      const isText = [...one.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
      if (!isText || one.closest('script, option') || !one.checkVisibility()) continue;
      const isDrawn = one.closest('svg');
      const color = parse(isDrawn ? getComputedStyle(one).fill : getComputedStyle(one).color);
      const below = isDrawn && one.parentElement.querySelector('rect')
        ? parse(getComputedStyle(one.parentElement.querySelector('rect')).fill) : ground(one);
      const [a, b] = [light(color), light(below)].sort((x, y) => y - x);
      if ((a + 0.05) / (b + 0.05) < 4.5) faint.add(`${one.tagName} ${one.className} ${color} on ${below}`);
    }
    return { ground: getComputedStyle(document.body).backgroundColor, faint: [...faint] };
";

#[test]
fn colors_can_be_read_in_the_light_and_in_the_dark() {
    let Some(browser) = Browser::new() else {
        return;
    };
    for (scheme, ground) in [
        (
            "--blink-settings=preferredColorScheme=1",
            "rgb(255, 255, 255)",
        ),
        ("--blink-settings=preferredColorScheme=0", "rgb(13, 17, 23)"),
    ] {
        let found = browser.run(COLORS, &[scheme]);
        let expected = json!({"ground": ground, "faint": [], "errors": []});
        assert_eq!(found, expected, "{scheme}: {found:#}");
    }
}

#[test]
fn a_printed_page_has_the_details() {
    let Some(browser) = Browser::new() else {
        return;
    };
    let pages = |name: &str| {
        let pdf = browser.harness.path(&format!("{name}.pdf"));
        let option = format!("--print-to-pdf={}", pdf.display());
        browser.open(name, &[&option]);
        let bytes = std::fs::read(&pdf).unwrap();
        assert!(bytes.starts_with(b"%PDF"));
        bytes
            .windows(12)
            .filter(|it| *it == b"/Type /Page\n")
            .count()
    };
    let text = page(&browser.harness, "page.html");
    browser
        .harness
        .write("open.html", text.replace("<details", "<details open"));
    assert_eq!(
        pages("page.html"),
        pages("open.html"),
        "details are printed open"
    );
}

#[test]
fn a_page_of_an_apply_reloads_itself() {
    let Some(browser) = Browser::new() else {
        return;
    };
    let harness = with_drain(
        "i=0\nwhile [ $i -lt 3000 ]; do\n  if /bin/grep -q 'Apply: running' page.html; then\n    \
         /bin/cp page.html running.html\n    exit 0\n  fi\n  i=$((i + 1))\ndone\nexit 1\n",
    );
    harness.ok("apply --auto-approve --html page.html");
    // The script that stands for a reload counts them.
    let script = "
        const reload = document.getElementById('reload');
        const shown = document.getElementById('reloading')?.checkVisibility() ?? false;
        await wait(12000);
        const times = window.reloads;
        document.forms[0].elements.q.focus();
        await wait(12000);
        const typing = window.reloads - times;
        document.activeElement.blur();
        await wait(3000);
        const later = window.reloads - times;
        if (reload) reload.click();
        await wait(12000);
        return { shown, times, typing, later, after: window.reloads - times - later, hash: location.hash };";
    for (name, expected) in [
        (
            "running.html",
            json!({"shown": true, "times": 2, "typing": 0, "later": 1, "after": 0, "hash": "#reload=off", "errors": []}),
        ),
        (
            "page.html",
            json!({"shown": false, "times": 0, "typing": 0, "later": 0, "after": 0, "hash": "", "errors": []}),
        ),
    ] {
        let text = page(&harness, name).replace("location.reload()", "window.reloads += 1");
        let text = text.replacen(
            "<script>",
            "<script>window.reloads = 0;</script><script>",
            1,
        );
        browser.harness.write("copy.html", scripted(&text, script));
        let found = browser.found("copy.html", &["--virtual-time-budget=80000"]);
        assert_eq!(found, expected, "{name}: {found:#}");
    }
}
