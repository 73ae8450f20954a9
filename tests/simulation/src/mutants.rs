//! Faults put into nstance itself, each of which the simulator must find: a proof that can't fail
//! proves nothing.

use nstance::fault_injection::Sabotage;

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
    pub sabotage: Sabotage,
}

const fn mutant(name: &'static str, what: &'static str, sabotage: Sabotage) -> Mutant {
    Mutant {
        name,
        what,
        sabotage,
    }
}

/// All of them.
pub const MUTANTS: [Mutant; 10] = [
    mutant(
        "no-intent",
        "a call without an intent in the journal",
        Sabotage::NoIntent,
    ),
    mutant(
        "no-sync",
        "an intent committed without its fsync",
        Sabotage::NoSync,
    ),
    mutant(
        "fresh-token",
        "a token of its own for each try",
        Sabotage::FreshToken,
    ),
    mutant(
        "no-window",
        "an absence believed before the visibility window",
        Sabotage::NoWindow,
    ),
    mutant(
        "no-recovery",
        "an open intent that isn't settled",
        Sabotage::NoRecovery,
    ),
    mutant(
        "no-settlement",
        "a result that isn't recorded",
        Sabotage::NoSettlement,
    ),
    mutant(
        "no-budget",
        "the destroy budget ignored",
        Sabotage::NoBudget,
    ),
    mutant(
        "no-stale-check",
        "a saved plan applied to rows that moved on",
        Sabotage::NoStaleCheck,
    ),
    mutant("no-lock", "the lock check removed", Sabotage::NoLock),
    mutant(
        "no-lock-nor-fence",
        "the lock check removed, and the store's own after it",
        Sabotage::NoLockNorFence,
    ),
];

/// Looks for the first seed that finds a fault; with what broke.
pub fn find(
    mutant: &Mutant,
    from: u64,
    live: impl Fn(u64, Sabotage) -> Result<(), String>,
) -> Option<(u64, String)> {
    (from..from + LIFETIMES).find_map(|seed| {
        let broken = live(seed, mutant.sabotage).err()?;
        Some((seed, broken))
    })
}
