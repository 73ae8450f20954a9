//! Injects the configured faults.
//!
//! In: a call and its counters. Out: a [`Verdict`]. Must not: change anything but counters.
//!
//! Random faults are a function of the seed, the call's subject and its count. So they don't depend
//! on the order of parallel calls, nor on the process.

use rusqlite::{OptionalExtension, Transaction};

use crate::clock::Timestamp;
use crate::config::model::ProviderKind;
use crate::provider::{CloudError, CloudErrorKind};

use super::options::Operation;
use super::store::Store;
use super::{SimError, World, hash};

/// What happens to a call.
#[derive(Debug, PartialEq)]
pub(super) enum Verdict {
    /// It succeeds.
    Proceed,
    /// It takes effect, but its answer is lost.
    LoseAnswer,
    /// It fails with this error, without effect.
    Refuse(CloudError),
}

/// Decides about one call; `subject` is a token, an id or a page.
///
/// Fails if the database does.
pub(super) fn judge(
    store: &mut Store,
    world: &World,
    now: Timestamp,
    operation: Operation,
    subject: &str,
) -> Result<Verdict, SimError> {
    let options = &world.options;
    let random = options.error_rate > 0.0 || options.lost_answer_rate > 0.0;
    if options.throttle.is_none() && options.fail.is_empty() && !random {
        return Ok(Verdict::Proceed);
    }
    let transaction = store.ledger()?;
    let verdict = weigh(&transaction, world, now, operation, subject)?;
    transaction.commit()?;
    Ok(verdict)
}

fn weigh(
    transaction: &Transaction<'_>,
    world: &World,
    now: Timestamp,
    operation: Operation,
    subject: &str,
) -> Result<Verdict, SimError> {
    let options = &world.options;
    let refuse = |kind| Ok(Verdict::Refuse(error(world.provider, kind)));
    if let Some(rate) = options.throttle
        && !draw(transaction, rate, now)?
    {
        return refuse(CloudErrorKind::Throttled);
    }
    for (position, rule) in options.fail.iter().enumerate() {
        if rule.operation != operation {
            continue;
        }
        // The name includes the rule, so that an edited rule counts from 0.
        let call = count(transaction, &format!("fail {position} {rule:?}"))?;
        if call >= rule.after && call - rule.after < rule.count {
            if rule.error == CloudErrorKind::Ambiguous && operation.has_effect() {
                return Ok(Verdict::LoseAnswer);
            }
            return refuse(rule.error);
        }
    }
    if options.error_rate > 0.0 || options.lost_answer_rate > 0.0 {
        let call = count(transaction, &format!("{} {subject}", operation.as_str()))?;
        let happens = |what: &str, rate: f64| {
            let of = [
                what.as_bytes(),
                &options.seed.to_be_bytes(),
                operation.as_str().as_bytes(),
                subject.as_bytes(),
                &call.to_be_bytes(),
            ];
            chance(&of, rate)
        };
        if happens("error", options.error_rate) {
            return refuse(CloudErrorKind::Transient);
        }
        if operation.has_effect() && happens("lost answer", options.lost_answer_rate) {
            return Ok(Verdict::LoseAnswer);
        }
    }
    Ok(Verdict::Proceed)
}

/// Whether something with this probability, 0 to 1, happens; a function of `of`.
pub(super) fn chance(of: &[&[u8]], probability: f64) -> bool {
    let digest = hash(of);
    let drawn = u32::from_be_bytes(digest[..4].try_into().expect("4 of 32 bytes"));
    f64::from(drawn) < probability * 4_294_967_296.0
}

/// Takes a token from a bucket with `rate` tokens per second, which holds one second's worth, but
/// at least one. Returns false if it is empty.
fn draw(transaction: &Transaction<'_>, rate: f64, now: Timestamp) -> Result<bool, SimError> {
    let full = rate.max(1.0);
    let level = read(transaction, "throttle level")?.map_or(full, |level| level as f64 / 1e6);
    let at = read(transaction, "throttle time")?.map_or(now, Timestamp);
    let level = (level + now.since(at).as_secs_f64() * rate).min(full);
    // Levels are stored in millionths, so rounding may leave slightly less than one.
    let drawn = level >= 1.0 - 1e-5;
    let level = if drawn { level - 1.0 } else { level };
    write(transaction, "throttle level", (level * 1e6).round() as i64)?;
    write(transaction, "throttle time", now.0)?;
    Ok(drawn)
}

/// Counts a call; returns the number of earlier ones.
fn count(transaction: &Transaction<'_>, name: &str) -> Result<u64, SimError> {
    let before = read(transaction, name)?.unwrap_or(0);
    write(transaction, name, before + 1)?;
    Ok(before.unsigned_abs())
}

fn read(transaction: &Transaction<'_>, name: &str) -> Result<Option<i64>, SimError> {
    Ok(transaction
        .prepare_cached("SELECT value FROM counter WHERE name = ?1")?
        .query_row([name], |row| row.get(0))
        .optional()?)
}

fn write(transaction: &Transaction<'_>, name: &str, value: i64) -> Result<(), SimError> {
    transaction
        .prepare_cached("INSERT OR REPLACE INTO counter (name, value) VALUES (?1, ?2)")?
        .execute((name, value))?;
    Ok(())
}

/// An error of this kind, with the simulated provider's code and message.
pub(super) fn error(provider: ProviderKind, kind: CloudErrorKind) -> CloudError {
    let gcp = provider == ProviderKind::Gcp;
    let (code, message) = match kind {
        CloudErrorKind::Throttled if gcp => ("rateLimitExceeded", "Rate Limit Exceeded"),
        CloudErrorKind::Throttled => ("RequestLimitExceeded", "Request limit exceeded."),
        CloudErrorKind::Transient if gcp => ("backendError", "Backend Error"),
        CloudErrorKind::Transient => ("InternalError", "An internal error has occurred"),
        CloudErrorKind::Ambiguous => ("RequestTimeout", "no answer arrived in time"),
        CloudErrorKind::Capacity | CloudErrorKind::ZoneCapacity if gcp => (
            "ZONE_RESOURCE_POOL_EXHAUSTED",
            "The zone does not have enough resources available to fulfill the request",
        ),
        CloudErrorKind::Capacity | CloudErrorKind::ZoneCapacity => (
            "InsufficientInstanceCapacity",
            "There is no capacity available that matches the request",
        ),
        CloudErrorKind::Quota if gcp => ("QUOTA_EXCEEDED", "Quota 'INSTANCES' exceeded"),
        CloudErrorKind::Quota => (
            "InstanceLimitExceeded",
            "The limit of instances that may run at once is reached",
        ),
        CloudErrorKind::NotFound if gcp => ("notFound", "The resource was not found"),
        CloudErrorKind::NotFound => ("InvalidInstanceID.NotFound", "The instance does not exist"),
        CloudErrorKind::Invalid if gcp => ("invalid", "Invalid value"),
        CloudErrorKind::Invalid => ("InvalidParameterValue", "A parameter has a wrong value"),
        CloudErrorKind::Denied if gcp => ("forbidden", "Permission denied"),
        CloudErrorKind::Denied => (
            "UnauthorizedOperation",
            "You are not authorized to perform this operation",
        ),
        CloudErrorKind::TokenMismatch if gcp => ("alreadyExists", "The resource already exists"),
        CloudErrorKind::TokenMismatch => (
            "IdempotentParameterMismatch",
            "The client token was used with other parameters",
        ),
        CloudErrorKind::Unavailable => ("ServiceUnavailable", "The cloud can't be reached"),
    };
    CloudError::new(kind, code, message)
}
