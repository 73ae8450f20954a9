//! Fleets that don't fit a page.

use super::world::{Aws, FLEET};

#[test]
fn a_thousand_instances_are_seen_in_two_calls() {
    let config = FLEET
        .replace("\"subnet_pool\": \"nodes\"", "\"subnet_pool\": \"wide\"")
        .replace("\"size\": 2", "\"size\": 999")
        // moto takes seconds for a listing of so many.
        .replace(
            "\"id\": \"one\",",
            "\"id\": \"one\", \"request_timeout\": \"5m\",",
        );
    let Some(aws) = Aws::with(&config) else {
        return;
    };
    aws.ok("apply --auto-approve --parallelism 10");
    assert_eq!(aws.proxy.count("RunInstances"), 1_000);
    assert_eq!(aws.agrees(), 1_000);
    aws.proxy.take_calls();
    let plan = aws.ok("plan --detailed-exitcode");
    assert!(plan.stdout.contains("No changes."), "{plan}");
    let calls = aws.proxy.take_calls();
    let count = |action: &str| {
        calls
            .iter()
            .filter(|call| call.query.action == action)
            .count()
    };
    let actions: Vec<&str> = calls.iter().map(|call| &*call.query.action).collect();
    assert!((1..=2).contains(&count("DescribeInstances")), "{actions:?}");
    // Nothing is asked for each instance, and no place is looked for where nothing is placed.
    assert!(calls.len() < 12, "{actions:?}");
    assert_eq!(count("DescribeSubnets"), 0, "{actions:?}");
}
