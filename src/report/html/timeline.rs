//! The waves of a group on a time line.
//!
//! In: a group's rollout. Out: a bar for each run of equal waves, its height in proportion to the
//! instances at once, its width to the number of waves; and the same in words. Must not: show a
//! change.

use std::time::Duration;

use super::writer::Html;
use crate::config::duration::shown;
use crate::config::model::CanaryPause;
use crate::diagnostic::counted;
use crate::plan::rollout::{GroupRollout, Wave};
use crate::report::text::rollout;

/// The maximum number of bars.
const BARS: usize = 40;

/// The rollout of a group, unless there is nothing to say about it.
pub(super) fn timeline(group: &GroupRollout<'_>, html: &mut Html) {
    let policy = group.rollout;
    if group.waves.is_empty() && policy.is_standard() {
        return;
    }
    html.markup("<div class=roll><h4>Rollout</h4>");
    let runs: Vec<&[Wave]> = group.waves.chunk_by(rollout::is_like).collect();
    let most = group.waves.iter().map(|wave| wave.changes.len()).max();
    if let Some(most) = most {
        html.markup("<ol class=waves tabindex=0 aria-label=\"Waves of ");
        html.text(group.name).markup("\">");
        for run in runs.iter().take(BARS) {
            bar(group, run, most, html);
        }
        if runs.len() > BARS {
            let rest = runs[BARS..].iter().map(|run| run.len()).sum();
            html.markup("<li class=more>… and ");
            html.text(&counted(rest, "more wave")).markup("</li>");
        }
        html.markup("</ol>");
    }
    html.markup("<ul class=facts>");
    let mut fact = |text: &str| {
        html.markup("<li>").text(text).markup("</li>");
    };
    let limits = rollout::limits(group);
    let size = counted(policy.size as usize, "instance");
    fact(&format!("{size} in the end{limits}"));
    if group.waves.len() > 1 {
        let instances: usize = group.waves.iter().map(|wave| wave.changes.len()).sum();
        let instances = counted(instances, "instance");
        let waves = counted(group.waves.len(), "wave");
        fact(&format!("{waves} for {instances}, one after another"));
    }
    let least = policy.least_duration(&group.waves);
    if least > Duration::ZERO {
        fact(&format!("takes at least {}", shown(least)));
    }
    fact(&rollout::health(group));
    let rest = [
        policy.assumed.map(rollout::assumed),
        rollout::drain(policy, group.changes),
        rollout::failure(policy),
    ];
    for text in rest.iter().flatten() {
        fact(text);
    }
    html.markup("</ul></div>");
}

/// The bar of equal waves, and the pause after them.
fn bar(group: &GroupRollout<'_>, run: &[Wave], most: usize, html: &mut Html) {
    let (wave, waves) = (&run[0], run.len());
    let each = wave.changes.len();
    html.markup(if wave.is_canary {
        "<li class=canary style=\"--n:"
    } else {
        "<li style=\"--n:"
    });
    // More waves make a wider bar, as far as there is room.
    html.number(waves.min(30)).markup(";--h:");
    // In hundredths.
    let height = (each * 100).div_ceil(most);
    html.text(if height < 100 { "0." } else { "1." });
    html.text(if height % 100 < 10 { "0" } else { "" });
    html.number(height % 100)
        .markup("\"><span class=bar aria-hidden=true></span>");
    html.markup("<span>");
    if waves > 1 {
        html.number(waves).text(" waves of ");
    }
    html.text(&counted(each, "instance"));
    let note = rollout::note(group.rollout, wave);
    if !note.is_empty() {
        html.markup("<br>").text(&note);
    }
    html.markup("</span></li>");
    if run.iter().any(|wave| wave.then_pause) {
        html.markup("<li class=pause><span class=bar aria-hidden=true></span><span>");
        match group.rollout.canary_pause {
            Some(CanaryPause::For(pause)) => html.text("pause ").text(&shown(pause)),
            Some(CanaryPause::Manual) | None => html.text("pause until promoted"),
        };
        html.markup("</span></li>");
    }
}
