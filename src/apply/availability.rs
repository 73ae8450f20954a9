//! Looks whether instances are available.
//!
//! In: a cloud and requests of the engine. Out: what runs, is healthy, and is seen as healthy by its
//! load balancers. Must not: wait, or decide.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::checks::{self, Subject};
use super::protocol::{Look, LookRequest, Seen, SurveyRequest};
use crate::config::model::Check;
use crate::provider::{
    Cloud, CloudError, LifecycleState, Observation, TargetHealth, TargetState, TargetsRequest,
};

/// How many checks of a survey run at once.
const CHECKS_AT_ONCE: usize = 16;

/// Describes one instance, and checks it if it runs.
///
/// Fails if the cloud fails.
pub fn look(cloud: &dyn Cloud, request: &LookRequest) -> Result<Look, CloudError> {
    let id = request.subject.provider_id.clone();
    let observation = cloud.describe(&[id])?.into_iter().next();
    let healthy = match &observation {
        Some(seen) if seen.state == LifecycleState::Running => check(
            cloud,
            request.subject.clone(),
            seen,
            &request.check,
            request.timeout,
        ),
        _ => Err("it doesn't run".to_owned()),
    };
    Ok(Look {
        observation,
        healthy,
    })
}

/// The load balancers' verdicts on one instance.
///
/// Fails if the cloud fails.
pub fn targets(
    cloud: &dyn Cloud,
    request: &TargetsRequest,
) -> Result<Vec<TargetHealth>, CloudError> {
    cloud.target_health(
        std::slice::from_ref(&request.provider_id),
        &request.load_balancers,
    )
}

/// Which instances of a group are available.
///
/// Fails if the cloud fails.
pub fn survey(cloud: &dyn Cloud, request: &SurveyRequest) -> Result<Seen, CloudError> {
    let ids: Vec<String> = request
        .subjects
        .iter()
        .map(|(subject, _)| subject.provider_id.clone())
        .collect();
    if ids.is_empty() {
        return Ok(Seen::default());
    }
    let described = cloud.describe(&ids)?;
    let mut unseen: HashSet<String> = ids.into_iter().collect();
    for seen in &described {
        unseen.remove(&seen.provider_id);
    }
    let seen: HashMap<String, Observation> = described
        .into_iter()
        .filter(|seen| seen.state == LifecycleState::Running)
        .map(|seen| (seen.provider_id.clone(), seen))
        .collect();
    let refused = refused(cloud, request, &seen)?;
    let running: Vec<(&Subject, &Observation)> = request
        .subjects
        .iter()
        .filter_map(|(subject, _)| Some((subject, seen.get(&subject.provider_id)?)))
        .filter(|(subject, _)| !refused.contains(&subject.provider_id))
        .collect();
    let available = Mutex::new(HashSet::new());
    let note = |subject: &Subject| {
        if let Ok(mut available) = available.lock() {
            available.insert(subject.provider_id.clone());
        }
    };
    if request.check == Check::Running {
        for (subject, _) in &running {
            note(subject);
        }
    } else {
        let next = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..CHECKS_AT_ONCE.min(running.len()) {
                scope.spawn(|| {
                    while let Some((subject, seen)) =
                        running.get(next.fetch_add(1, Ordering::SeqCst))
                    {
                        let subject = (*subject).clone();
                        let id = subject.clone();
                        if check(cloud, subject, seen, &request.check, request.timeout).is_ok() {
                            note(&id);
                        }
                    }
                });
            }
        });
    }
    Ok(Seen {
        available: available.into_inner().unwrap_or_default(),
        unseen,
        window: cloud.visibility_window(),
    })
}

/// The running instances that a load balancer doesn't see as healthy.
fn refused(
    cloud: &dyn Cloud,
    request: &SurveyRequest,
    seen: &HashMap<String, Observation>,
) -> Result<HashSet<String>, CloudError> {
    let registered = request.subjects.iter().filter(|(subject, targets)| {
        !targets.is_empty() && seen.contains_key(&subject.provider_id)
    });
    let load_balancers: BTreeSet<&String> = registered
        .clone()
        .flat_map(|(_, targets)| targets)
        .collect();
    if load_balancers.is_empty() {
        return Ok(HashSet::new());
    }
    let ids: Vec<String> = registered
        .clone()
        .map(|(subject, _)| subject.provider_id.clone())
        .collect();
    let load_balancers: Vec<String> = load_balancers.into_iter().cloned().collect();
    let health = cloud.target_health(&ids, &load_balancers)?;
    let content: HashSet<(&str, &str)> = health
        .iter()
        .filter(|target| matches!(target.state, TargetState::Healthy | TargetState::Unused))
        .map(|target| (&*target.provider_id, &*target.load_balancer))
        .collect();
    let is_content = |subject: &Subject, targets: &[String]| {
        let mut targets = targets.iter();
        targets.all(|target| content.contains(&(&*subject.provider_id, &**target)))
    };
    Ok(registered
        .filter(|(subject, targets)| !is_content(subject, targets))
        .map(|(subject, _)| subject.provider_id.clone())
        .collect())
}

/// Checks a running instance.
fn check(
    cloud: &dyn Cloud,
    mut subject: Subject,
    seen: &Observation,
    check: &Check,
    timeout: std::time::Duration,
) -> Result<(), String> {
    if *check == Check::Running {
        return Ok(());
    }
    if let Some(answer) = cloud.probe(&subject.provider_id, check) {
        return answer;
    }
    subject.ip4.clone_from(&seen.ip4);
    subject.ip6.clone_from(&seen.ip6);
    subject.facts.extend(seen.ip4.clone().map(|ip| ("IP4", ip)));
    subject.facts.extend(seen.ip6.clone().map(|ip| ("IP6", ip)));
    subject.facts.push(("ZONE", seen.zone.clone()));
    checks::check(check, &subject, timeout)
}
