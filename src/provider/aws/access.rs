//! Checks the credentials and their permissions.
//!
//! In: sample objects. Out: each required permission, and whether it is granted. Must not: change
//! anything; modifying calls are dry runs.

use nstance_ec2::{ApiError, ApiErrorKind, Operation};
use serde_json::{Value, json};

use crate::provider::{Access, AccessSample, CloudError, Permission, Verdict};

use super::calls::Calls;
use super::errors::{action, missing_action};
use super::observe::text;

/// Ids to use if there is no sample object.
const NO_INSTANCE: &str = "i-00000000000000000";
const NO_IMAGE: &str = "ami-00000000000000000";
const NO_INTERFACE: &str = "eni-00000000000000000";

/// Queries the identity, then each permission.
///
/// Fails if the identity can't be queried.
pub(super) fn check(
    calls: &Calls,
    region: &str,
    sample: &AccessSample,
    has_target_groups: bool,
) -> Result<Access, CloudError> {
    let identity = calls.call(Operation::GetCallerIdentity, &json!({}))?;
    let arn = text(&identity, "Arn").unwrap_or("somebody");
    let account = text(&identity, "Account").unwrap_or("?");
    let mut permissions = Vec::new();
    // Some compatible endpoints ignore `DryRun`. The first modifying call sets a tag to its current
    // value; if it is executed, skip the others.
    let mut knows_dry_runs = true;
    for question in questions(sample, has_target_groups) {
        let changes = !question.operation.is_read();
        let mut name = action(question.operation);
        let verdict = if changes && !knows_dry_runs {
            let why = "the endpoint doesn't know dry runs, so it wasn't asked";
            Verdict::Unknown(why.to_owned())
        } else {
            let mut input = question.input;
            if changes {
                input["DryRun"] = true.into();
            }
            let answer = calls.raw(question.operation, &input);
            knows_dry_runs &= !changes || answer.is_err();
            verdict(answer, &mut name)
        };
        permissions.push(Permission {
            name,
            needed_for: question.needed_for,
            optional: question.optional,
            verdict,
        });
    }
    Ok(Access {
        who: format!("{arn}, account {account}, region {region}"),
        permissions,
        policy_page: "docs/aws.md",
    })
}

/// The meaning of an answer. Sets `name` to the permission that is actually missing.
fn verdict(answer: Result<Value, ApiError>, name: &mut String) -> Verdict {
    let Err(error) = answer else {
        return Verdict::Allowed;
    };
    match &*error.code {
        "DryRunOperation" => Verdict::Allowed,
        "UnauthorizedOperation" | "AccessDenied" | "AccessDeniedException" => {
            // Creating requires further permissions, such as `iam:PassRole`.
            if let Some(missing) = missing_action(&error.message) {
                missing.clone_into(name);
            }
            Verdict::Missing
        }
        _ if error.kind != ApiErrorKind::Refused => {
            Verdict::Unknown(format!("{} ({})", error.message, error.code))
        }
        _ => Verdict::Unknown(format!("AWS says: {} ({})", error.message, error.code)),
    }
}

struct Question {
    operation: Operation,
    input: Value,
    needed_for: &'static str,
    optional: bool,
}

fn questions(sample: &AccessSample, has_target_groups: bool) -> Vec<Question> {
    use Operation as Op;
    let instance = sample.instance.as_deref().unwrap_or(NO_INSTANCE);
    let image = sample.image.as_deref().unwrap_or(NO_IMAGE);
    let mut run = json!({
        "ImageId": image, "InstanceType": "t3.micro", "MinCount": 1, "MaxCount": 1,
        "TagSpecifications": [{"ResourceType": "instance", "Tags": [
            {"Key": "nstance:managed", "Value": "true"},
        ]}],
    });
    if let Some(subnet) = &sample.subnet {
        run["SubnetId"] = subnet.as_str().into();
    }
    let tag =
        json!({"Resources": [instance], "Tags": [{"Key": "nstance:managed", "Value": "true"}]});
    let one = json!({"InstanceIds": [instance]});
    let few = json!({"MaxResults": 5});
    let own = json!({"Owners": ["self"], "MaxResults": 5});
    let attribute = json!({"InstanceId": instance, "DisableApiTermination": {"Value": false}});
    // Without an attribute, it changes nothing even if executed.
    let metadata = json!({"InstanceId": instance});
    let profiles = Op::DescribeIamInstanceProfileAssociations;
    let interface = json!({"NetworkInterfaceId": NO_INTERFACE, "SourceDestCheck": {"Value": true}});
    let quota = json!({"ServiceCode": "ec2", "QuotaCode": "L-1216C47A"});
    let mut questions = Vec::new();
    let mut ask = |operation, input: &Value, needed_for, optional| {
        questions.push(Question {
            operation,
            input: input.clone(),
            needed_for,
            optional,
        });
    };
    ask(Op::DescribeInstances, &few, "every plan", false);
    ask(Op::DescribeSubnets, &few, "subnet pools", false);
    ask(Op::DescribeImages, &own, "looking images up", false);
    ask(
        Op::DescribeInstanceTypes,
        &few,
        "checking architectures",
        false,
    );
    ask(
        Op::CreateTags,
        &tag,
        "creating and changing instances",
        false,
    );
    ask(Op::RunInstances, &run, "creating instances", false);
    ask(Op::TerminateInstances, &one, "deleting instances", false);
    ask(Op::DeleteTags, &tag, "removing tags", false);
    ask(
        Op::ModifyInstanceAttribute,
        &attribute,
        "changes in place",
        false,
    );
    let for_metadata = "changes of `MetadataOptions`";
    ask(
        Op::ModifyInstanceMetadataOptions,
        &metadata,
        for_metadata,
        true,
    );
    ask(Op::MonitorInstances, &one, "changes of `Monitoring`", true);
    ask(profiles, &few, "changes of `IamInstanceProfile`", true);
    let for_interfaces = "changes of network interfaces";
    ask(
        Op::ModifyNetworkInterfaceAttribute,
        &interface,
        for_interfaces,
        true,
    );
    ask(
        Op::StopInstances,
        &one,
        "changes of the instance type",
        false,
    );
    ask(Op::StartInstances, &one, "starting what was stopped", false);
    ask(
        Op::GetServiceQuota,
        &quota,
        "warning before a quota is reached",
        true,
    );
    if has_target_groups {
        // Registering has no dry run, so it isn't checked.
        ask(
            Op::DescribeTargetGroups,
            &json!({"PageSize": 1}),
            "load balancers",
            false,
        );
    }
    questions
}
