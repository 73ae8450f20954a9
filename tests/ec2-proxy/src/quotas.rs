//! Service Quotas, of which moto has none for EC2.
//!
//! In: limits that a test chooses, calls in JSON. Out: answers, in the service's words. May not:
//! hold anyone to a limit.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::http::{Reply, Request};

/// How much an account may have, by the code of the quota.
pub(crate) type Quotas = BTreeMap<String, f64>;

/// The answer to a call that asks for a quota that a test has set; none to any other.
pub(crate) fn answer(quotas: &Quotas, action: &str, request: &Request) -> Option<Reply> {
    if action != "GetServiceQuota" {
        return None;
    }
    let input: Value = serde_json::from_slice(&request.body).ok()?;
    let code = input.get("QuotaCode")?.as_str()?;
    let value = quotas.get(code)?;
    let answer = json!({"Quota": {
        "ServiceCode": input.get("ServiceCode"),
        "QuotaCode": code,
        "Value": value,
        "Unit": "None",
        "Adjustable": true,
        "GlobalQuota": false,
    }});
    Some(Reply {
        status: 200,
        content_type: "application/x-amz-json-1.1".to_owned(),
        body: answer.to_string().into_bytes(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_set_is_answered() {
        let quotas = Quotas::from([("L-1".to_owned(), 5.0)]);
        for (action, body, answered) in [
            ("GetServiceQuota", r#"{"QuotaCode": "L-1"}"#, true),
            ("GetServiceQuota", r#"{"QuotaCode": "L-2"}"#, false),
            ("GetServiceQuota", "", false),
            ("GetParameter", r#"{"QuotaCode": "L-1"}"#, false),
        ] {
            let request = Request {
                method: "POST".to_owned(),
                path: "/".to_owned(),
                headers: Vec::new(),
                body: body.into(),
            };
            let reply = answer(&quotas, action, &request);
            assert_eq!(reply.is_some(), answered, "{action} {body}");
        }
    }
}
