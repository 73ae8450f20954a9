//! Faults of nstance itself, put in on purpose: a proof that can't fail proves nothing.
//!
//! In: nothing. Out: [`InjectedFault`], which the simulator hands to what carries a plan out, and which
//! is obeyed there. May not: come from an option, a file or the environment. Commands always say
//! [`InjectedFault::None`].

/// A guarantee to break.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum InjectedFault {
    /// Nothing: as it should be.
    #[default]
    None,
    /// The cloud is asked without an intent in the journal.
    NoIntent,
    /// Intents are committed without waiting for the disk.
    NoSync,
    /// Each try of a call has a token of its own.
    FreshToken,
    /// An absence is believed before the visibility window has passed.
    NoWindow,
    /// Predecessors are deleted before their successors run.
    NoSuccessor,
    /// The limits of rollouts aren't kept.
    NoLimits,
    /// Instances count as healthy once they run.
    NoHealthGate,
    /// Registering, deregistering and draining aren't entered in the journal.
    NoStepIntent,
    /// Instances are drained and deleted while they are registered.
    NoDeregistration,
    /// An apply doesn't read the record of an earlier rollout.
    NoRolloutRecord,
    /// A failed group isn't rolled back.
    NoRollback,
    /// What an earlier run left open isn't settled.
    NoRecovery,
    /// What came of a call isn't recorded.
    NoSettlement,
    /// A plan is carried out though its destroy budget forbids it.
    NoBudget,
    /// A saved plan is carried out though its rows have moved on.
    NoStaleCheck,
    /// The state's lock isn't taken; whoever would take it obeys.
    NoLock,
    /// Neither is the lock taken, nor does the store shut out who lost the lead.
    NoLockNorFence,
}
