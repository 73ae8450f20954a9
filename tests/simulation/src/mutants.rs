//! Faults put into nstance itself, each of which the simulator must find: a proof that can't fail
//! proves nothing.

use nstance::fault_injection::InjectedFault;

/// How many lifetimes it may take to find one.
pub const LIFETIMES: u64 = 1_000;

/// A fault of ours.
#[derive(Debug, Clone, Copy)]
pub struct Mutant {
    /// What the command line calls it.
    pub name: &'static str,
    /// What is wrong.
    pub what: &'static str,
    /// How it is put in.
    pub injected_fault: InjectedFault,
}

const fn mutant(name: &'static str, what: &'static str, injected_fault: InjectedFault) -> Mutant {
    Mutant {
        name,
        what,
        injected_fault,
    }
}

/// All of them.
pub const MUTANTS: [Mutant; 17] = [
    mutant(
        "no-intent",
        "a call without an intent in the journal",
        InjectedFault::NoIntent,
    ),
    mutant(
        "no-sync",
        "an intent committed without its fsync",
        InjectedFault::NoSync,
    ),
    mutant(
        "fresh-token",
        "a token of its own for each try",
        InjectedFault::FreshToken,
    ),
    mutant(
        "no-window",
        "an absence believed before the visibility window",
        InjectedFault::NoWindow,
    ),
    mutant(
        "no-recovery",
        "an open intent that isn't settled",
        InjectedFault::NoRecovery,
    ),
    mutant(
        "no-successor",
        "a predecessor deleted before its successor runs",
        InjectedFault::NoSuccessor,
    ),
    mutant(
        "no-limits",
        "the limits of a rollout ignored",
        InjectedFault::NoLimits,
    ),
    mutant(
        "no-health-gate",
        "an instance taken for healthy because it runs",
        InjectedFault::NoHealthGate,
    ),
    mutant(
        "no-step-intent",
        "a step without an intent in the journal",
        InjectedFault::NoStepIntent,
    ),
    mutant(
        "no-deregistration",
        "a registered instance deleted",
        InjectedFault::NoDeregistration,
    ),
    mutant(
        "no-rollout-record",
        "the record of a rollout that isn't read",
        InjectedFault::NoRolloutRecord,
    ),
    mutant(
        "no-rollback",
        "a failed group that stays as it is",
        InjectedFault::NoRollback,
    ),
    mutant(
        "no-settlement",
        "a result that isn't recorded",
        InjectedFault::NoSettlement,
    ),
    mutant(
        "no-budget",
        "the destroy budget ignored",
        InjectedFault::NoBudget,
    ),
    mutant(
        "no-stale-check",
        "a saved plan applied to rows that moved on",
        InjectedFault::NoStaleCheck,
    ),
    mutant("no-lock", "the lock check removed", InjectedFault::NoLock),
    mutant(
        "no-lock-nor-fence",
        "the lock check removed, and the store's own after it",
        InjectedFault::NoLockNorFence,
    ),
];

/// Looks for the first seed that finds a fault; with what broke.
pub fn find(
    mutant: &Mutant,
    from: u64,
    live: impl Fn(u64, InjectedFault) -> Result<(), String>,
) -> Option<(u64, String)> {
    (from..from + LIFETIMES).find_map(|seed| {
        let broken = live(seed, mutant.injected_fault).err()?;
        Some((seed, broken))
    })
}
