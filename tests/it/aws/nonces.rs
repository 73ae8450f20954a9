//! Nonces, as moto has them in user data.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::world::{Aws, FLEET};
use crate::harness::CANARY;

/// The fleet, whose instances of `web` read their nonce.
fn reading(script: &str) -> Option<Aws> {
    let aws = Aws::new()?;
    let command = "\"nonce_command\": [\"sh\", \"sign\"],\n  \"images\"";
    let config = FLEET.replace("\"images\"", command).replace(
        "\"size\": 2 }",
        "\"size\": 2, \"userdata\": \"#!/bin/sh\\njoin {{ .Nonce }}\\n\" }",
    );
    aws.harness.configure(&aws.filled(&config));
    aws.harness.write("sign", script);
    Some(aws)
}

/// The user data of the requests that created instances.
fn sent(aws: &Aws) -> Vec<String> {
    let calls = aws.proxy.take_calls().into_iter();
    let creations = calls.filter(|call| call.query.action == "RunInstances");
    let sent = creations.filter_map(|call| call.query.get("UserData").map(str::to_owned));
    let texts = sent.map(|text| String::from_utf8(STANDARD.decode(text).unwrap()).unwrap());
    texts.collect()
}

#[test]
fn a_signed_nonce_is_sent_and_never_shown() {
    // The harness fails if anything prints the canary.
    let script = format!("echo \"{CANARY}.$NSTANCE_INSTANCE_ID\"\n");
    let Some(aws) = reading(&script) else { return };
    aws.apply("");
    let sent = sent(&aws);
    assert_eq!(sent.iter().filter(|text| text.contains(CANARY)).count(), 2);
    assert!(
        sent.iter().all(|text| !text.contains("nonce-of-")),
        "{sent:?}"
    );
    assert!(aws.told("plan").contains("no changes are needed"));
    assert!(aws.told("drift").contains("No drift"));
}

#[test]
fn without_a_nonce_nothing_is_created_and_the_next_apply_goes_on() {
    let Some(aws) = reading("exit 1\n") else {
        return;
    };
    let failed = aws.told("apply --auto-approve");
    assert!(failed.contains("the nonce command failed"), "{failed}");
    assert!(aws.live().iter().all(|one| !one.address.contains("web")));
    // Killed together with apply, while the command runs.
    aws.harness.write("sign", "touch begun\nexec sleep 60\n");
    let mut child = aws.command("apply --auto-approve").spawn().unwrap();
    assert!(aws.harness.comes(|| aws.harness.path("begun").exists()));
    child.kill().unwrap();
    child.wait().unwrap();
    aws.harness.write("sign", "echo signed\n");
    aws.apply("");
    assert_eq!(
        aws.live()
            .iter()
            .filter(|one| one.address.contains("web"))
            .count(),
        2
    );
}
