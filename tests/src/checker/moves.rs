//! Everything that can happen next.

use std::fmt;

use unprovision::core::RefusalKind;

/// One move of one party.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)] // `Display` says what each is
pub enum Move {
    Open,
    Resume,
    ReadProvider,
    ReadNode,
    Send,
    Record,
    FrozenSends,
    TimePasses,
    IronicGoesOn,
    IronicUnlocks,
    IronicExplains,
    IronicWaits,
    Fails,
    Locks,
    Crash,
    TakeOver,
    LosesAnswer,
    LosesWrite,
    DelaysWrite,
    Refuses(Fuss),
    TimeIsUp,
    NovaDeletes,
    NovaReleases,
    NovaReservesAndReleases,
    PassBegins,
    PassWrites,
    Claims,
    Deploys,
    GivesUp,
    OperatorMaintains,
    OperatorReserves,
    OperatorManages,
    OperatorEndsMaintenance,
    OperatorCures,
    OperatorUndeploys,
}

/// A refusal that has nothing to do with the write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)] // as in `RefusalKind`
pub enum Fuss {
    Busy,
    Forbidden,
}

impl Fuss {
    /// As the core knows it.
    pub fn kind(self) -> RefusalKind {
        match self {
            Self::Busy => RefusalKind::Busy,
            Self::Forbidden => RefusalKind::Forbidden,
        }
    }
}

impl Move {
    /// All of them.
    pub const ALL: &[Self] = &[
        Self::Open,
        Self::Resume,
        Self::ReadProvider,
        Self::ReadNode,
        Self::Send,
        Self::Record,
        Self::FrozenSends,
        Self::TimePasses,
        Self::IronicGoesOn,
        Self::IronicUnlocks,
        Self::IronicExplains,
        Self::IronicWaits,
        Self::Fails,
        Self::Locks,
        Self::Crash,
        Self::TakeOver,
        Self::LosesAnswer,
        Self::LosesWrite,
        Self::DelaysWrite,
        Self::Refuses(Fuss::Busy),
        Self::Refuses(Fuss::Forbidden),
        Self::TimeIsUp,
        Self::NovaDeletes,
        Self::NovaReleases,
        Self::NovaReservesAndReleases,
        Self::PassBegins,
        Self::PassWrites,
        Self::Claims,
        Self::Deploys,
        Self::GivesUp,
        Self::OperatorMaintains,
        Self::OperatorReserves,
        Self::OperatorManages,
        Self::OperatorEndsMaintenance,
        Self::OperatorCures,
        Self::OperatorUndeploys,
    ];

    /// Whether it may be relied upon to happen sooner or later: the way back must not need any other.
    pub fn is_reliable(self) -> bool {
        match self {
            Self::Open
            | Self::Resume
            | Self::ReadProvider
            | Self::ReadNode
            | Self::Send
            | Self::Record
            | Self::FrozenSends
            | Self::TimePasses
            | Self::IronicGoesOn
            | Self::IronicUnlocks
            | Self::IronicExplains
            | Self::NovaReleases
            | Self::NovaReservesAndReleases
            | Self::Deploys
            | Self::GivesUp
            | Self::PassBegins
            | Self::PassWrites
            | Self::OperatorEndsMaintenance
            | Self::OperatorCures
            | Self::OperatorUndeploys => true,
            Self::IronicWaits
            | Self::Fails
            | Self::Locks
            | Self::Crash
            | Self::TakeOver
            | Self::LosesAnswer
            | Self::LosesWrite
            | Self::DelaysWrite
            | Self::Refuses(_)
            | Self::TimeIsUp
            | Self::NovaDeletes
            | Self::Claims
            | Self::OperatorMaintains
            | Self::OperatorReserves
            | Self::OperatorManages => false,
        }
    }
}

impl fmt::Display for Move {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Open => "we: the tear-down is asked for",
            Self::Resume => "we: a process takes the case up",
            Self::ReadProvider => "we: read the provider",
            Self::ReadNode => "we: read the node, decide, record",
            Self::Send => "we: send",
            Self::Record => "we: record the outcome",
            Self::FrozenSends => "we: the frozen process goes on and sends",
            Self::TimePasses => "time passes",
            Self::IronicGoesOn => "Ironic: goes on",
            Self::IronicUnlocks => "Ironic: gives the lock back",
            Self::IronicExplains => "Ironic: writes why it failed",
            Self::IronicWaits => "Ironic: waits for the agent",
            Self::Fails => "Ironic: fails",
            Self::Locks => "Ironic: a conductor takes the lock",
            Self::Crash => "we: the process dies",
            Self::TakeOver => "we: freeze before sending; another replica takes the case up",
            Self::LosesAnswer => "we: send; applied, the answer is lost",
            Self::LosesWrite => "we: send; not applied, nobody knows",
            Self::DelaysWrite => "we: send; no answer, it is applied later",
            Self::Refuses(Fuss::Busy) => "we: send; refused, too busy",
            Self::Refuses(Fuss::Forbidden) => "we: send; refused, not allowed",
            Self::TimeIsUp => "the time is up",
            Self::NovaDeletes => "Nova: deletes the server",
            Self::NovaReleases => "Nova: drops the instance's allocation",
            Self::NovaReservesAndReleases => "Nova: reserves by its rule, drops the instance's allocation",
            Self::PassBegins => "Nova: a pass of the tracker reads the node",
            Self::PassWrites => "Nova: the pass writes what it wants",
            Self::Claims => "the scheduler: claims the unit for the next instance",
            Self::Deploys => "the scheduler: deploys the next instance",
            Self::GivesUp => "the scheduler: the node cannot be deployed; the claim goes",
            Self::OperatorMaintains => "an operator: sets maintenance",
            Self::OperatorReserves => "an operator: reserves the provider",
            Self::OperatorManages => "an operator: takes the node to `manageable`",
            Self::OperatorEndsMaintenance => "an operator: ends maintenance",
            Self::OperatorCures => "an operator: has it cleaned again",
            Self::OperatorUndeploys => "an operator: repeats the failed tear-down",
        })
    }
}
