//! Checks the permissions of the cloud credentials.
//!
//! In: the cloud's answers. Out: a finding for each missing permission, with its name. Must not:
//! query the cloud.

use super::{Check, Examination, Finding, Severity};
use crate::diagnostic::counted;
use crate::provider::{Access, CloudError, Verdict};

/// Evaluates the answers.
pub fn examine(access: &Result<Access, CloudError>) -> Examination {
    let mut examination = Examination::default();
    let access = match access {
        Ok(access) => access,
        Err(error) => {
            examination.say(Check::Access, "nobody knows who asks");
            let finding = Finding::new(
                Check::Access,
                Severity::Error,
                "credentials",
                format!("the cloud doesn't say who asks: {}", error.summary()),
                "without credentials that are accepted, nothing can be planned or applied but from the record",
            );
            examination.findings.push(match &error.hint {
                Some(hint) => finding.advise(hint.clone()),
                None => finding,
            });
            return examination;
        }
    };
    let mut missing = 0;
    let mut open = 0;
    for permission in &access.permissions {
        let name = &permission.name;
        let what = permission.needed_for;
        match &permission.verdict {
            Verdict::Allowed => {}
            Verdict::Missing => {
                missing += 1;
                let (severity, meaning) = if permission.optional {
                    (Severity::Note, "all else works without it")
                } else {
                    (
                        Severity::Warning,
                        "whoever applies needs it; who only plans may not",
                    )
                };
                let summary = format!("`{name}` isn't allowed: it is needed for {what}");
                let kind = "missing-permission";
                let finding = Finding::new(Check::Access, severity, kind, summary, meaning);
                let page = access.policy_page;
                let advice =
                    format!("Add it to the policy of who asks; the whole policy is in {page}");
                examination.findings.push(finding.advise(advice));
            }
            Verdict::Unknown(said) => {
                open += 1;
                examination.findings.push(Finding::new(
                    Check::Access,
                    Severity::Note,
                    "unclear-permission",
                    format!("whether `{name}` is allowed isn't known: {said}"),
                    "the cloud looked at what was asked about before it looked at who asks",
                ));
            }
        }
    }
    let all = counted(access.permissions.len(), "permission");
    let mut verdict = format!("{}; of {all} {missing} missing", access.who);
    if open > 0 {
        verdict.push_str(&format!(", {open} unclear"));
    }
    examination.say(Check::Access, verdict);
    examination
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::{CloudErrorKind, Permission};

    #[test]
    fn missing_permissions_are_named() {
        let permission = |name: &str, optional, verdict| Permission {
            name: name.into(),
            needed_for: "deleting instances",
            optional,
            verdict,
        };
        let access = Access {
            policy_page: "docs/aws.md",
            who: "arn:a, account 1, region r".into(),
            permissions: vec![
                permission("ec2:RunInstances", false, Verdict::Allowed),
                permission("ec2:TerminateInstances", false, Verdict::Missing),
                permission("servicequotas:GetServiceQuota", true, Verdict::Missing),
                permission(
                    "ec2:StopInstances",
                    false,
                    Verdict::Unknown("AWS says: no".into()),
                ),
            ],
        };
        let examination = examine(&Ok(access));
        assert_eq!(
            examination.verdicts,
            [(
                Check::Access,
                "arn:a, account 1, region r; of 4 permissions 2 missing, 1 unclear".to_owned()
            )]
        );
        let found: Vec<_> = examination
            .findings
            .iter()
            .map(|it| (it.severity, it.kind, it.summary.as_str()))
            .collect();
        assert_eq!(
            found,
            [
                (
                    Severity::Warning,
                    "missing-permission",
                    "`ec2:TerminateInstances` isn't allowed: it is needed for deleting instances"
                ),
                (
                    Severity::Note,
                    "missing-permission",
                    "`servicequotas:GetServiceQuota` isn't allowed: it is needed for deleting instances"
                ),
                (
                    Severity::Note,
                    "unclear-permission",
                    "whether `ec2:StopInstances` is allowed isn't known: AWS says: no"
                ),
            ]
        );
    }

    #[test]
    fn credentials_that_arent_there_are_an_error() {
        let error = CloudError::new(CloudErrorKind::Unavailable, "CredentialsNotFound", "none")
            .hint("log in");
        let examination = examine(&Err(error));
        let finding = &examination.findings[0];
        assert_eq!(finding.severity, Severity::Error);
        assert_eq!(finding.advice, ["log in"]);
        assert!(!examination.is_healthy());
    }
}
