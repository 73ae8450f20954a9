//! Decodes `update`.
//!
//! In: an object that may have the key: `defaults`, a template or a group. Out: its [`Update`].
//! Must not: compare keys that may come from different layers; `check` does.

use std::sync::Arc;
use std::time::Duration;

use crate::config::model::{
    Amount, CanaryPause, Check, Health, MinimalAction, OnFailure, Update, UpdateOrder, ZoneOrder,
};
use crate::config::node::{Entry, NodeValue};
use crate::config::schema::tables::{self, LARGEST_GROUP, LARGEST_SURGE};
use crate::config::source::Spanned;
use crate::diagnostic::{Conversion, Diagnostic, Diagnostics, nearest};

use super::images::report_empty;
use super::reader::{Object, texts, wrong_type};

const ORDERS: [(&str, UpdateOrder); 2] = [
    ("create_first", UpdateOrder::CreateFirst),
    ("delete_first", UpdateOrder::DeleteFirst),
];
const FAILURES: [(&str, OnFailure); 3] = [
    ("stop", OnFailure::Stop),
    ("rollback", OnFailure::Rollback),
    ("continue", OnFailure::Continue),
];
const ZONE_ORDERS: [(&str, ZoneOrder); 2] = [
    ("interleaved", ZoneOrder::Interleaved),
    ("one_at_a_time", ZoneOrder::OneAtATime),
];

const MINIMAL_ACTIONS: [(&str, MinimalAction); 3] = [
    ("update", MinimalAction::Update),
    ("restart", MinimalAction::Restart),
    ("replace", MinimalAction::Replace),
];

/// The `update` of `defaults`, a template or a group.
pub(super) fn update(owner: &Object<'_>, findings: &mut Diagnostics) -> Update {
    let Some(object) = owner
        .get("update")
        .and_then(|entry| Object::of_entry(entry, &tables::UPDATE, findings))
    else {
        return Update::default();
    };
    let limit = |key, findings: &mut Diagnostics| {
        let limit = object.whole(key, LARGEST_GROUP, findings);
        limit.map(|limit| limit.value)
    };
    Update {
        order: order(&object, findings),
        max_surge: amount(&object, "max_surge", LARGEST_SURGE, findings),
        max_unavailable: amount(&object, "max_unavailable", 100, findings),
        max_creating: limit("max_creating", findings),
        max_deleting: limit("max_deleting", findings),
        canaries: amount(&object, "canaries", 100, findings).map(|canaries| canaries.value),
        canary_pause: canary_pause(&object, findings),
        health: object
            .get("health")
            .and_then(|entry| health(entry, findings)),
        drain: object.get("drain").and_then(|entry| drain(entry, findings)),
        on_failure: object
            .choice("on_failure", &FAILURES, findings)
            .map(|choice| choice.value),
        max_failures: limit("max_failures", findings),
        zone_order: object
            .choice("zone_order", &ZONE_ORDERS, findings)
            .map(|choice| choice.value),
        opportunistic: object
            .flag("opportunistic", findings)
            .map(|flag| flag.value),
        minimal_action: object
            .choice("minimal_action", &MINIMAL_ACTIONS, findings)
            .map(|choice| choice.value),
    }
}

fn order(object: &Object<'_>, findings: &mut Diagnostics) -> Option<Spanned<UpdateOrder>> {
    let entry = object.get("order")?;
    // The name that earlier versions had for it.
    if entry.value.as_str() == Some("create_before_delete") {
        return Some(Spanned::new(UpdateOrder::CreateFirst, entry.value.span));
    }
    object.choice("order", &ORDERS, findings)
}

/// A number of instances, or a percentage from 0 to `most`.
fn amount(
    object: &Object<'_>,
    key: &str,
    most: u32,
    findings: &mut Diagnostics,
) -> Option<Spanned<Amount>> {
    let entry = object.get(key)?;
    let span = entry.value.span;
    let text = match &entry.value.value {
        NodeValue::Number(_) => {
            let count = object.whole(key, LARGEST_GROUP, findings)?;
            return Some(Spanned::new(Amount::Count(count.value), span));
        }
        NodeValue::String(text) => text,
        _ => {
            let wanted = "a whole number or a percentage";
            wrong_type(&entry.value, &format!("`{key}`"), wanted, findings);
            return None;
        }
    };
    if let Some(percent) = percentage(text).filter(|percent| *percent <= most) {
        return Some(Spanned::new(Amount::Percent(percent), span));
    }
    let mut diagnostic = Diagnostic::error(format!("`{key}` can't be `{text}`")).at(
        span,
        format!("expected a whole number, or a percentage from `0%` to `{most}%`"),
    );
    if text.parse::<u32>().is_ok() {
        diagnostic = diagnostic.unquote_it(text, Conversion::Number);
    }
    findings.push(diagnostic);
    None
}

/// The number in `25%`.
fn percentage(text: &str) -> Option<u32> {
    let digits = text.strip_suffix('%')?;
    let is_plain = digits.bytes().all(|byte| byte.is_ascii_digit())
        && (digits == "0" || !digits.starts_with('0'));
    digits.parse().ok().filter(|_| is_plain)
}

fn canary_pause(object: &Object<'_>, findings: &mut Diagnostics) -> Option<Spanned<CanaryPause>> {
    let is_manual = |entry: &&Entry| entry.value.as_str() == Some("manual");
    if let Some(entry) = object.get("canary_pause").filter(is_manual) {
        return Some(Spanned::new(CanaryPause::Manual, entry.value.span));
    }
    let before = findings.len();
    let pause = object.duration("canary_pause", findings);
    for finding in findings.iter_mut().skip(before) {
        finding
            .hints
            .push("`\"manual\"` waits for `nstance rollout promote`".to_owned());
    }
    let span = object.get("canary_pause")?.value.span;
    pause.map(|pause| Spanned::new(CanaryPause::For(pause), span))
}

fn drain(entry: &Entry, findings: &mut Diagnostics) -> Option<Arc<[Arc<str>]>> {
    let before = findings.len();
    let Some(object) = Object::of_entry(entry, &tables::DRAIN, findings) else {
        for finding in findings.iter_mut().skip(before) {
            let hint = "write `{\"command\": [\"PROGRAM\", \"ARGUMENT\"]}`";
            finding.hints.push(hint.to_owned());
        }
        return None;
    };
    object.require("command", findings);
    command(&object, findings)
}

/// A program and its arguments, if they are valid.
fn command(object: &Object<'_>, findings: &mut Diagnostics) -> Option<Arc<[Arc<str>]>> {
    let entry = object.get("command")?;
    report_empty(entry, findings);
    let words = texts(entry, findings);
    let words: Vec<_> = words.into_iter().map(|word| word.value).collect();
    (!words.is_empty()).then(|| words.into())
}

fn health(entry: &Entry, findings: &mut Diagnostics) -> Option<Health> {
    if let Some(word) = entry.value.as_str() {
        if word == "running" {
            return Some(Health::default());
        }
        let finding = Diagnostic::error(format!("`health` can't be `{word}`"))
            .at(entry.value.span, "expected `running` or an object");
        findings.push(if CHECKS.contains(&word) {
            finding.hint(format!("write `{{\"check\": \"{word}\"}}`"))
        } else {
            finding.suggest(nearest(word, ["running"]))
        });
        return None;
    }
    if !matches!(entry.value.value, NodeValue::Object(_)) {
        let wanted = "`\"running\"` or an object";
        wrong_type(&entry.value, "`health`", wanted, findings);
        return None;
    }
    let object = Object::of_entry(entry, &tables::HEALTH, findings)?;
    let default = Health::default();
    let check = check(&object, findings);
    let min_healthy_time = object.duration("min_healthy_time", findings);
    let health = Health {
        check: check.unwrap_or(Check::Running),
        min_healthy_time: min_healthy_time.unwrap_or(default.min_healthy_time),
        interval: positive(&object, "interval", findings).unwrap_or(default.interval),
        timeout: positive(&object, "timeout", findings).unwrap_or(default.timeout),
        retries: object
            .whole("retries", u32::MAX, findings)
            .map_or(default.retries, |retries| retries.value),
        deadline: positive(&object, "deadline", findings),
    };
    // Compared here, since `health` counts as one key and the places are known.
    if let Some(deadline) = health.deadline
        && health.min_healthy_time > deadline
        && let (Some(time), Some(deadline)) =
            (object.get("min_healthy_time"), object.get("deadline"))
    {
        findings.push(
            Diagnostic::error("`min_healthy_time` can't be longer than `deadline`")
                .at(time.value.span, "no instance becomes available in time")
                .related(deadline.value.span, "`deadline`")
                .hint("Shorten `min_healthy_time`, or extend `deadline`"),
        );
    }
    Some(health)
}

/// A duration of more than 0.
fn positive(object: &Object<'_>, key: &str, findings: &mut Diagnostics) -> Option<Duration> {
    let duration = object.duration(key, findings)?;
    if !duration.is_zero() {
        return Some(duration);
    }
    let place = object.get(key)?.value.span;
    findings.push(
        Diagnostic::error(format!("`{key}` can't be 0")).at(place, "expected a longer duration"),
    );
    None
}

/// The keys of a check, which some checks don't have.
const KEYS: [&str; 4] = ["port", "path", "status", "command"];

const CHECKS: [&str; 5] = ["running", "tcp", "http", "https", "command"];

/// The keys that a check has.
fn keys_of(check: &str) -> &'static [&'static str] {
    match check {
        "tcp" => &["port"],
        "http" | "https" => &["port", "path", "status"],
        "command" => &["command"],
        _ => &[],
    }
}

/// The check with its keys; `None` if they are invalid.
fn check(object: &Object<'_>, findings: &mut Diagnostics) -> Option<Check> {
    let choices = CHECKS.map(|check| (check, check));
    let chosen = match object.get("check") {
        Some(_) => object.choice("check", &choices, findings)?.value,
        None if object.get("command").is_some() => "command",
        None => "running",
    };
    let mut fits = true;
    for key in KEYS {
        let Some(entry) = object.get(key) else {
            continue;
        };
        if keys_of(chosen).contains(&key) {
            continue;
        }
        fits = false;
        let with: Vec<String> = CHECKS
            .iter()
            .filter(|check| keys_of(check).contains(&key))
            .map(|check| format!("`\"check\": \"{check}\"`"))
            .collect();
        let with = with.join(" or ");
        findings.push(if object.get("check").is_none() && chosen == "running" {
            Diagnostic::error(format!("`{key}` requires a `check`"))
                .at(
                    entry.key_span,
                    format!("the default, `running`, has no `{key}`"),
                )
                .hint(format!("add {with}"))
        } else {
            Diagnostic::error(format!("check `{chosen}` has no `{key}`"))
                .at(entry.key_span, "not a key of this check")
                .hint(format!("Remove it, or write {with}"))
        });
    }
    let port = between(object, "port", 1, u16::MAX, findings);
    let path = path(object, findings);
    let status = between(object, "status", 100, 599, findings);
    let words = command(object, findings);
    let check = match chosen {
        "tcp" => {
            object.require("port", findings);
            Check::Tcp { port: port? }
        }
        "http" | "https" => {
            let tls = chosen == "https";
            Check::Http {
                tls,
                port: port.unwrap_or(if tls { 443 } else { 80 }),
                path: path.unwrap_or_else(|| "/".into()),
                status: status.unwrap_or(200),
            }
        }
        "command" => {
            object.require("command", findings);
            Check::Command { words: words? }
        }
        _ => Check::Running,
    };
    fits.then_some(check)
}

/// A whole number that fits into 16 bits.
fn between(
    object: &Object<'_>,
    key: &str,
    least: u16,
    most: u16,
    findings: &mut Diagnostics,
) -> Option<u16> {
    let number = object.between(key, least.into(), most.into(), findings)?;
    u16::try_from(number.value).ok()
}

fn path(object: &Object<'_>, findings: &mut Diagnostics) -> Option<Arc<str>> {
    let path = object.text("path", findings)?;
    if path.starts_with('/') {
        return Some(path.value);
    }
    findings.push(
        Diagnostic::error(format!("`path` can't be `{}`", path.value))
            .at(path.span, "a path starts with `/`")
            .hint(format!("write `/{}`", path.value)),
    );
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::Purpose;
    use crate::config::variables::Given;
    use crate::load::load_text;

    /// The `update` of `defaults`, or its errors, each with the text that it points at.
    fn read(name: &str, text: &str) -> Result<Update, Vec<(String, String)>> {
        let loaded = load_text(Purpose::Render, name, text, &Given::default());
        let findings = loaded.findings.iter();
        let errors: Vec<_> = findings
            .map(|finding| {
                let span = finding.label.as_ref().unwrap().span;
                (
                    finding.summary.clone(),
                    text[span.start as usize..span.end as usize].to_owned(),
                )
            })
            .collect();
        if errors.is_empty() {
            Ok(loaded.config.unwrap().defaults.update)
        } else {
            Err(errors)
        }
    }

    fn of_json(update: &str) -> Result<Update, Vec<(String, String)>> {
        let text = format!(
            r#"{{"cluster": {{"id": "c"}},
            "shard": {{"id": "s", "infra": {{"provider": "sim", "region": "r", "zone": "z"}}}},
            "defaults": {{"update": {update}}}}}"#
        );
        read("a.jsonc", &text)
    }

    fn health_of(health: &str) -> Health {
        let update = of_json(&format!("{{\"health\": {health}}}")).unwrap();
        update.health.unwrap()
    }

    #[test]
    fn amounts_are_numbers_or_percentages() {
        for (text, surge) in [
            ("0", Amount::Count(0)),
            ("3", Amount::Count(3)),
            ("1000000", Amount::Count(1_000_000)),
            ("\"0%\"", Amount::Percent(0)),
            ("\"25%\"", Amount::Percent(25)),
            ("\"1000%\"", Amount::Percent(1_000)),
        ] {
            let update = of_json(&format!("{{\"max_surge\": {text}}}")).unwrap();
            assert_eq!(update.max_surge.unwrap().value, surge, "{text}");
        }
        for (key, text) in [
            ("max_surge", "\"1001%\""),
            ("max_surge", "-1"),
            ("max_surge", "1.5"),
            ("max_surge", "1000001"),
            ("max_unavailable", "\"101%\""),
            ("canaries", "\"101%\""),
            ("canaries", "\"05%\""),
            ("canaries", "\"5 %\""),
            ("canaries", "\"+5%\""),
            ("canaries", "\"%\""),
            ("canaries", "\"5\""),
            ("canaries", "\"\""),
            ("canaries", "[]"),
        ] {
            let errors = of_json(&format!("{{\"{key}\": {text}}}")).unwrap_err();
            let [(summary, place)] = &errors[..] else {
                panic!("{errors:?}")
            };
            assert!(summary.starts_with(&format!("`{key}` ")), "{summary}");
            assert_eq!(place, text);
        }
    }

    #[test]
    fn words_are_read() {
        let order = |word: &str| {
            let update = of_json(&format!("{{\"order\": \"{word}\"}}"));
            update.unwrap().order.unwrap().value
        };
        assert_eq!(order("create_first"), UpdateOrder::CreateFirst);
        assert_eq!(order("create_before_delete"), UpdateOrder::CreateFirst);
        assert_eq!(order("delete_first"), UpdateOrder::DeleteFirst);
        let update = of_json(
            r#"{"on_failure": "rollback", "zone_order": "one_at_a_time", "opportunistic": true,
                "max_creating": 0, "max_deleting": 7, "max_failures": 2,
                "canaries": 1, "canary_pause": "1h30m", "drain": {"command": ["a", "b"]}}"#,
        )
        .unwrap();
        assert_eq!(update.on_failure, Some(OnFailure::Rollback));
        assert_eq!(update.zone_order, Some(ZoneOrder::OneAtATime));
        assert_eq!(update.opportunistic, Some(true));
        assert_eq!(update.max_creating, Some(0));
        assert_eq!(update.max_deleting, Some(7));
        assert_eq!(update.max_failures, Some(2));
        let pause = Duration::from_mins(90);
        assert_eq!(update.canary_pause.unwrap().value, CanaryPause::For(pause));
        assert_eq!(update.drain.unwrap()[..], ["a".into(), "b".into()]);
        assert_eq!(of_json("{}").unwrap(), Update::default());
        assert_eq!(of_json("null").unwrap(), Update::default());
    }

    #[test]
    fn checks_have_their_own_keys_and_defaults() {
        let http = |tls, port, path: &str, status| Check::Http {
            tls,
            port,
            path: path.into(),
            status,
        };
        let command = || Check::Command {
            words: ["a".into(), "b".into()].into(),
        };
        for (health, check) in [
            ("\"running\"", Check::Running),
            ("{}", Check::Running),
            (r#"{"check": "running"}"#, Check::Running),
            (r#"{"check": "tcp", "port": 22}"#, Check::Tcp { port: 22 }),
            (r#"{"check": "http"}"#, http(false, 80, "/", 200)),
            (r#"{"check": "https"}"#, http(true, 443, "/", 200)),
            (
                r#"{"check": "http", "port": 8080, "path": "/up", "status": 204}"#,
                http(false, 8080, "/up", 204),
            ),
            (r#"{"check": "command", "command": ["a", "b"]}"#, command()),
            (r#"{"command": ["a", "b"]}"#, command()),
        ] {
            let expected = Health {
                check,
                ..Health::default()
            };
            assert_eq!(health_of(health), expected, "{health}");
        }
        let timed = health_of(
            r#"{"min_healthy_time": "30s", "interval": "1s", "timeout": "2s", "retries": 0,
                "deadline": "30s"}"#,
        );
        let expected = Health {
            check: Check::Running,
            min_healthy_time: Duration::from_secs(30),
            interval: Duration::from_secs(1),
            timeout: Duration::from_secs(2),
            retries: 0,
            deadline: Some(Duration::from_secs(30)),
        };
        assert_eq!(timed, expected);
    }

    #[test]
    fn what_does_not_fit_a_check_is_an_error() {
        for (health, summary, place) in [
            (
                r#"{"status": 200}"#,
                "`status` requires a `check`",
                "\"status\"",
            ),
            (r#"{"port": 80}"#, "`port` requires a `check`", "\"port\""),
            (
                r#"{"command": ["a"], "path": "/"}"#,
                "check `command` has no `path`",
                "\"path\"",
            ),
            (
                r#"{"check": "tcp", "port": 22, "status": 200}"#,
                "check `tcp` has no `status`",
                "\"status\"",
            ),
            (
                r#"{"check": "running", "port": 22}"#,
                "check `running` has no `port`",
                "\"port\"",
            ),
            (r#"{"check": "tcp"}"#, "`health` lacks `port`", "\"health\""),
            (
                r#"{"check": "command"}"#,
                "`health` lacks `command`",
                "\"health\"",
            ),
            (r#"{"command": []}"#, "`command` is empty", "[]"),
            (
                r#"{"command": [""]}"#,
                "an item of `command` is empty",
                "\"\"",
            ),
            (r#"{"deadline": "0"}"#, "`deadline` can't be 0", "\"0\""),
            (
                r#"{"min_healthy_time": "2m", "deadline": "1m"}"#,
                "`min_healthy_time` can't be longer than `deadline`",
                "\"2m\"",
            ),
            ("\"runing\"", "`health` can't be `runing`", "\"runing\""),
            ("[]", "`health` must be `\"running\"` or an object", "[]"),
        ] {
            let errors = of_json(&format!("{{\"health\": {health}}}")).unwrap_err();
            let expected = [(summary.to_owned(), place.to_owned())];
            assert_eq!(errors, expected, "{health}");
        }
    }

    #[test]
    fn all_languages_say_the_same() {
        let yaml = "
cluster: {id: c}
shard: {id: s, infra: {provider: sim, region: r, zone: z}}
defaults:
  update:
    max_surge: 25%
    canaries: 1
    canary_pause: manual
    health: {check: tcp, port: 22, deadline: 10m}
    drain: {command: [drain]}
";
        let hcl = "
cluster { id = \"c\" }
shard {
  id = \"s\"
  infra {
    provider = \"sim\"
    region   = \"r\"
    zone     = \"z\"
  }
}
defaults {
  update {
    max_surge    = \"25%\"
    canaries     = 1
    canary_pause = \"manual\"
    health {
      check    = \"tcp\"
      port     = 22
      deadline = \"10m\"
    }
    drain { command = [\"drain\"] }
  }
}
";
        for (name, text) in [("a.yaml", yaml), ("a.hcl", hcl)] {
            let update = read(name, text).unwrap();
            assert_eq!(update.max_surge.unwrap().value, Amount::Percent(25));
            assert_eq!(update.canaries, Some(Amount::Count(1)));
            assert_eq!(update.canary_pause.unwrap().value, CanaryPause::Manual);
            let health = update.health.unwrap();
            assert_eq!(health.check, Check::Tcp { port: 22 });
            assert_eq!(health.deadline, Some(Duration::from_mins(10)));
            assert_eq!(update.drain.unwrap()[..], ["drain".into()]);
        }
    }
}
