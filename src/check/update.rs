//! Checks that the keys of a group's `update` fit together.
//!
//! In: a group with its template and `defaults`, since each may set some of the keys. Out: findings.
//! Must not: check single values; `decode` does.

use crate::config::model::{Amount, Group, UpdateOrder};
use crate::config::source::Spanned;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::merge::group::update_of;

use super::Checker;

impl Checker<'_> {
    /// Checks a group's merged `update`. Groups with the same error share one finding.
    pub(super) fn update(&self, group: &Group, findings: &mut Diagnostics) {
        let update = update_of(self.config, group);
        let surge = update.max_surge.filter(is_zero);
        let unavailable = update.max_unavailable.filter(is_zero);
        match (update.order, surge, unavailable) {
            (Some(order), Some(surge), _) if order.value == UpdateOrder::CreateFirst => {
                findings.push(
                    Diagnostic::error("`create_first` requires a `max_surge` of at least 1")
                        .at(order.span, "creates an instance beyond the size")
                        .related(surge.span, "allows none")
                        .hint("Raise `max_surge`, or write `\"order\": \"delete_first\"`"),
                );
            }
            (Some(order), _, Some(unavailable)) if order.value == UpdateOrder::DeleteFirst => {
                findings.push(
                    Diagnostic::error("`delete_first` requires a `max_unavailable` of at least 1")
                        .at(
                            order.span,
                            "deletes an instance before its successor exists",
                        )
                        .related(unavailable.span, "allows none to be unavailable")
                        .hint("Raise `max_unavailable`, or write `\"order\": \"create_first\"`"),
                );
            }
            (_, Some(surge), Some(unavailable)) => findings.push(
                Diagnostic::error("`max_surge` and `max_unavailable` can't both be 0")
                    .at(surge.span, "no instance can be replaced")
                    .related(unavailable.span, "`max_unavailable`")
                    .hint("Raise one of them"),
            ),
            _ => {}
        }
        let timeout = group.drain_timeout;
        let own = timeout.map_or(self.config.shard.default_drain_timeout, |own| own.value);
        if update.drain.is_some() && own.is_zero() {
            findings.push(
                Diagnostic::error("`drain` requires a `drain_timeout` of more than 0s")
                    .at(
                        timeout.map_or(group.span, |own| own.span),
                        "kills the drain command at once",
                    )
                    .hint(
                        "Write how long the command may take, such as `\"drain_timeout\": \"5m\"`",
                    ),
            );
        }
        let may_have_canaries = self.broken.defaults || self.is_broken(group);
        if let Some(pause) = update.canary_pause
            && update.canaries.is_none()
            && !may_have_canaries
        {
            findings.push(
                Diagnostic::error("`canary_pause` requires `canaries`")
                    .at(pause.span, "no instance is a canary")
                    .hint("Add `\"canaries\": 1`, or remove `canary_pause`"),
            );
        }
    }
}

fn is_zero(amount: &Spanned<Amount>) -> bool {
    matches!(amount.value, Amount::Count(0) | Amount::Percent(0))
}
