//! Checks that the cloud can create what a plan creates: instance types, architectures, quotas.
//!
//! In: a plan, and a cloud. Out: findings; the plan without the changes that would fail. Must not:
//! query the cloud for a plan that creates nothing.

use std::collections::{BTreeMap, BTreeSet};

use crate::address::Address;
use crate::config::source::Span;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::plan::change::{Action, Change, LeftOut, Plan, Summary};
use crate::provider::{Cloud, InstanceType, WantedCapacity};
use crate::render::renderer::GroupRenderer;

/// Checks the instances that a plan creates, and those whose instance type changes.
///
/// Fails if the cloud fails.
pub(super) fn check(
    plan: &mut Plan,
    groups: &[GroupRenderer<'_>],
    cloud: &dyn Cloud,
) -> Diagnostics {
    let mut findings = Diagnostics::default();
    let types: BTreeSet<&str> = plan.changes.iter().filter_map(new_type).collect();
    let names: Vec<String> = types.into_iter().map(str::to_owned).collect();
    if names.is_empty() {
        return findings;
    }
    match cloud.instance_types(&names) {
        Ok(Some(known)) => check_types(plan, groups, cloud, &known, &mut findings),
        Ok(None) => {}
        Err(error) => {
            let mut finding = Diagnostic::warning(format!(
                "the instance types aren't checked: {}",
                error.summary()
            ));
            finding.hints.extend(error.hint.map(String::from));
            findings.push(finding);
            return findings;
        }
    }
    for limit in cloud.limits_ahead(&wanted(plan)) {
        let hint = "Ask for a higher quota before applying, or make the groups smaller";
        findings.push(Diagnostic::warning(limit).hint(hint));
    }
    findings
}

/// Leaves out changes to instance types that don't exist, or that don't run the architecture.
fn check_types(
    plan: &mut Plan,
    groups: &[GroupRenderer<'_>],
    cloud: &dyn Cloud,
    known: &[InstanceType],
    findings: &mut Diagnostics,
) {
    let mut left_out: BTreeMap<String, (usize, String)> = BTreeMap::new();
    let mut near: BTreeMap<String, Option<String>> = BTreeMap::new();
    plan.changes.retain(|change| {
        let Some((name, arch)) = new_type(change).zip(new_arch(change)) else {
            return true;
        };
        let found = known.iter().find(|it| it.name == name);
        if found.is_some_and(|it| it.architectures.iter().any(|own| own == arch)) {
            return true;
        }
        let place = place(groups, &change.address);
        let finding = match found {
            Some(found) => wrong_architecture(found, arch, place),
            None => {
                let near = near
                    .entry(name.to_owned())
                    .or_insert_with(|| cloud.near_instance_type(name));
                unknown(name, near.as_deref(), place)
            }
        };
        let group = change.address.group.to_string();
        let why = finding.summary.clone();
        findings.push(finding.about(&change.address.group));
        left_out.entry(group).or_insert((0, why)).0 += 1;
        false
    });
    if !left_out.is_empty() {
        leave_out(plan, left_out);
    }
}

/// The instance type that a change requests.
fn new_type(change: &Change) -> Option<&str> {
    let changes = match change.action {
        Action::Create | Action::CreateThenDelete | Action::DeleteThenCreate => true,
        Action::Update => change
            .attributes
            .iter()
            .any(|attribute| attribute.path == "instance_type"),
        Action::Delete | Action::Adopt | Action::Forget | Action::NoOp => false,
    };
    let head = &change.after.as_deref()?.spec.head;
    (changes && !head.instance_type.is_empty()).then_some(&*head.instance_type)
}

fn new_arch(change: &Change) -> Option<&str> {
    Some(&change.after.as_deref()?.spec.head.arch)
}

fn place(groups: &[GroupRenderer<'_>], address: &Address) -> Option<Span> {
    let group = groups
        .iter()
        .map(|renderer| &renderer.group.merged)
        .find(|group| group.name == address.group)?;
    group.place_of(address.slot, "instance_type")
}

fn wrong_architecture(found: &InstanceType, arch: &str, place: Option<Span>) -> Diagnostic {
    let runs = found.architectures.join(" and ");
    let finding = Diagnostic::error(format!(
        "the instance type `{}` runs {runs}, and `arch` is {arch}",
        found.name
    ))
    .hint(format!(
        "Choose a type that runs {arch}, or set `arch` (and an image for it)"
    ));
    match place {
        Some(place) => finding.at(place, format!("runs {runs}")),
        None => finding,
    }
}

fn unknown(name: &str, near: Option<&str>, place: Option<Span>) -> Diagnostic {
    let mut finding =
        Diagnostic::error(format!("there is no instance type `{name}` in this region"));
    if let Some(place) = place {
        finding = finding.at(place, "no type of this region has this name");
    }
    match near {
        Some(near) => finding.hint(format!("there is `{near}`")),
        None => finding,
    }
}

/// Removes changes from a plan and updates its summary.
fn leave_out(plan: &mut Plan, left_out: BTreeMap<String, (usize, String)>) {
    let mut summary = Summary {
        no_op: plan.summary.no_op,
        ..Summary::default()
    };
    for change in &plan.changes {
        summary.count(change.action);
    }
    plan.summary = summary;
    let changed: BTreeSet<String> = plan
        .changes
        .iter()
        .map(|change| change.address.group.to_string())
        .collect();
    plan.groups.retain(|group| changed.contains(&group.name));
    plan.left_out
        .extend(left_out.into_iter().map(|(address, (count, why))| LeftOut {
            address,
            count,
            why,
        }));
}

/// How many more instances of each type will run at once. A group replaces one instance at a time,
/// so replacements count once.
fn wanted(plan: &Plan) -> Vec<WantedCapacity> {
    let mut counts: BTreeMap<(&str, bool), (usize, usize)> = BTreeMap::new();
    for change in &plan.changes {
        let Some(after) = change.after.as_deref() else {
            continue;
        };
        let market = after.spec.args.get("InstanceMarketOptions");
        let spot = market.and_then(|it| it.get("MarketType")?.as_str()) == Some("spot");
        let key = (&*after.spec.head.instance_type, spot);
        match change.action {
            Action::Create => counts.entry(key).or_default().0 += 1,
            Action::CreateThenDelete => counts.entry(key).or_default().1 = 1,
            _ => {}
        }
    }
    counts
        .into_iter()
        .map(
            |((name, interruptible), (created, replaced))| WantedCapacity {
                instance_type: name.to_owned(),
                count: created + replaced,
                interruptible,
            },
        )
        .collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::time::Duration;

    use super::*;
    use crate::plan::change::Reason;
    use crate::provider::{
        CloudError, CloudErrorKind, CreateRequest, DeleteRequest, ImageMatch, ImageQuery,
        Observation, Owner, Page, SubnetInfo, TargetHealth, TargetsRequest, UpdateRequest,
    };
    use crate::report::testing::{body, change, plan_of, side};

    /// A cloud that only knows two instance types.
    #[derive(Default)]
    struct Types {
        asked: Mutex<Vec<Vec<String>>>,
        refuses: bool,
        limit: Option<usize>,
    }

    impl Cloud for Types {
        fn name(&self) -> &'static str {
            "aws"
        }
        fn list(&self, _: &Owner, _: Option<&str>) -> Result<Page, CloudError> {
            unreachable!("it is asked for types only")
        }
        fn describe(&self, _: &[String]) -> Result<Vec<Observation>, CloudError> {
            unreachable!("it is asked for types only")
        }
        fn find_images(&self, _: &ImageQuery) -> Result<Vec<ImageMatch>, CloudError> {
            unreachable!("it is asked for types only")
        }
        fn subnets(&self, _: &[String]) -> Result<Vec<SubnetInfo>, CloudError> {
            unreachable!("it is asked for types only")
        }
        fn create(&self, _: &CreateRequest) -> Result<Observation, CloudError> {
            unreachable!("it is asked for types only")
        }
        fn update(&self, _: &UpdateRequest) -> Result<Observation, CloudError> {
            unreachable!("it is asked for types only")
        }
        fn register(&self, _: &TargetsRequest) -> Result<(), CloudError> {
            unreachable!("it is asked for types only")
        }
        fn deregister(&self, _: &TargetsRequest) -> Result<(), CloudError> {
            unreachable!("it is asked for types only")
        }
        fn target_health(
            &self,
            _: &[String],
            _: &[String],
        ) -> Result<Vec<TargetHealth>, CloudError> {
            unreachable!("it is asked for types only")
        }
        fn delete(&self, _: &DeleteRequest) -> Result<(), CloudError> {
            unreachable!("it is asked for types only")
        }
        fn instance_types(
            &self,
            names: &[String],
        ) -> Result<Option<Vec<InstanceType>>, CloudError> {
            self.asked.lock().unwrap().push(names.to_vec());
            if self.refuses {
                let kind = CloudErrorKind::Denied;
                return Err(CloudError::new(kind, "UnauthorizedOperation", "no").hint("ask"));
            }
            let known = [("t4g.medium", "arm64"), ("t3.micro", "amd64")];
            let types = known.into_iter().map(|(name, arch)| InstanceType {
                name: name.to_owned(),
                architectures: vec![arch.to_owned()],
                vcpus: 2,
            });
            Ok(Some(types.filter(|it| names.contains(&it.name)).collect()))
        }
        fn near_instance_type(&self, _: &str) -> Option<String> {
            Some("t4g.medium".to_owned())
        }
        fn limits_ahead(&self, wanted: &[WantedCapacity]) -> Vec<String> {
            let count: usize = wanted.iter().map(|it| it.count).sum();
            let over = self.limit.is_some_and(|limit| count > limit);
            over.then(|| format!("{count} are too many"))
                .into_iter()
                .collect()
        }
        fn visibility_window(&self) -> Duration {
            Duration::ZERO
        }
    }

    fn creates(group: &str, slot: u32, instance_type: &str) -> Change {
        let mut body = body(slot, 1);
        body.head.instance_type = instance_type.into();
        let mut change = change(group, slot, Action::Create, Reason::GroupGrew);
        change.after = Some(Box::new(side(slot, 1, body)));
        change
    }

    fn summaries(findings: &Diagnostics) -> Vec<&str> {
        findings
            .iter()
            .map(|finding| finding.summary.as_str())
            .collect()
    }

    #[test]
    fn what_cant_be_had_is_left_out() {
        let mut plan = plan_of(vec![
            creates("default/good", 0, "t4g.medium"),
            creates("default/other", 0, "t3.micro"),
            creates("default/typo", 0, "t4g.midium"),
            creates("default/typo", 1, "t4g.midium"),
        ]);
        let cloud = Types::default();
        let findings = check(&mut plan, &[], &cloud);
        assert_eq!(
            summaries(&findings),
            [
                "the instance type `t3.micro` runs amd64, and `arch` is arm64",
                "there is no instance type `t4g.midium` in this region",
            ]
        );
        assert!(findings.has_errors());
        let left: Vec<_> = plan
            .left_out
            .iter()
            .map(|it| (it.address.as_str(), it.count))
            .collect();
        assert_eq!(left, [("default/other", 1), ("default/typo", 2)]);
        assert_eq!(plan.summary.create, 1);
        assert_eq!(plan.changes.len(), 1);
        assert!(plan.groups.iter().all(|group| group.name == "default/good"));
        // One query covers all types.
        assert_eq!(
            *cloud.asked.lock().unwrap(),
            [["t3.micro", "t4g.medium", "t4g.midium"]
                .map(str::to_owned)
                .to_vec()]
        );
    }

    #[test]
    fn a_plan_that_creates_nothing_asks_nothing() {
        let cloud = Types::default();
        let mut plan = plan_of(vec![change(
            "default/web",
            0,
            Action::Delete,
            Reason::GroupShrank,
        )]);
        assert!(check(&mut plan, &[], &cloud).is_empty());
        assert!(cloud.asked.lock().unwrap().is_empty());
        assert_eq!(plan.changes.len(), 1);
    }

    #[test]
    fn who_may_not_ask_is_told_and_nothing_is_left_out() {
        let cloud = Types {
            refuses: true,
            ..Types::default()
        };
        let mut plan = plan_of(vec![creates("default/web", 0, "unheard.of")]);
        let findings = check(&mut plan, &[], &cloud);
        assert_eq!(
            summaries(&findings),
            ["the instance types aren't checked: no (UnauthorizedOperation)"]
        );
        assert!(!findings.has_errors() && !plan.errored());
    }

    #[test]
    fn limits_are_warned_of() {
        let cloud = Types {
            limit: Some(1),
            ..Types::default()
        };
        let mut plan = plan_of(vec![
            creates("default/web", 0, "t4g.medium"),
            creates("default/web", 1, "t4g.medium"),
        ]);
        let findings = check(&mut plan, &[], &cloud);
        assert_eq!(summaries(&findings), ["2 are too many"]);
        assert!(!findings.has_errors() && !plan.errored());
    }
}
