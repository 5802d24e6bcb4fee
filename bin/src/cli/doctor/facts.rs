//! What was found out, before anybody judges it.

use ironic_client::Right as InIronic;
use jiff::{SignedDuration, Timestamp};
use placement_client::Right as InPlacement;
use unprovision::servers::ServersError;
use unprovision_session::{Microversion, Service, Standing, VersionRange};

use super::fleet::Fleet;

/// All of it.
#[derive(Clone, Debug)]
pub(super) struct Facts {
    pub(super) ironic: Side,
    pub(super) placement: Side,
    /// What was tried in Ironic, and what came of it.
    pub(super) in_ironic: Vec<(InIronic, Tried)>,
    /// What was tried in Placement, and what came of it.
    pub(super) in_placement: Vec<(InPlacement, Tried)>,
    pub(super) fleet: Fleet,
    pub(super) broker: BrokerState,
    /// Whether Nova can be asked for servers; `None` where it is not to be asked.
    pub(super) servers: Option<Result<(), ServersError>>,
    /// Whether nothing is released without Nova's word.
    pub(super) nova_required: bool,
    pub(super) journal: JournalState,
    /// The strategy that is configured.
    pub(super) strategy: String,
}

/// One service, as far as it could be reached.
#[derive(Clone, Debug)]
pub(super) struct Side {
    pub(super) service: Service,
    /// Who we are there to Keystone.
    pub(super) standing: Option<Standing>,
    /// Where it is.
    pub(super) endpoint: Option<String>,
    /// What it speaks.
    pub(super) versions: Option<VersionRange>,
    /// What is spoken with it.
    pub(super) spoken: Option<Microversion>,
    /// How far its clock is ahead of ours.
    pub(super) ahead: Option<SignedDuration>,
    /// What stood in the way, and all that it was told.
    pub(super) trouble: Option<(Step, String)>,
}

/// On the way to a service, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// The configuration says how to get there.
    Configuration,
    /// Keystone lets us in.
    Login,
    /// The catalog, or the configuration, says where it is.
    Endpoint,
    /// It answers.
    Answer,
    /// Both sides speak a common version.
    Version,
}

/// Whether something is allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Tried {
    Allowed,
    /// No, and what the service said.
    Forbidden(String),
    /// Nobody knows, and why.
    Unclear(String),
}

/// The broker with Ironic's notifications.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum BrokerState {
    /// None is configured.
    None,
    /// It lets us in and has Ironic's exchange; its name.
    Reached(String),
    /// Nothing would be heard of it, and why.
    Trouble(String),
}

/// The journal.
#[derive(Clone, Debug)]
pub(super) struct JournalState {
    pub(super) place: String,
    pub(super) found: JournalFound,
}

/// What there is of it.
#[derive(Clone, Debug)]
pub(super) enum JournalFound {
    /// It is kept in memory.
    InMemory,
    /// It is not there yet, and can be made, or why not.
    Absent(Result<(), String>),
    /// It can be used.
    Opened {
        cases: usize,
        open: usize,
        /// The clouds, other than this one, that open cases were begun in.
        elsewhere: Vec<String>,
        /// When something was written last, if that is so short a while ago that somebody works with it.
        lately: Option<Timestamp>,
    },
    /// It is there and cannot be used.
    Broken(String),
}

impl Side {
    /// Nothing is known of the service yet.
    pub(super) fn new(service: Service) -> Self {
        Self {
            service,
            standing: None,
            endpoint: None,
            versions: None,
            spoken: None,
            ahead: None,
            trouble: None,
        }
    }

    /// Whether calls can be made.
    pub(super) fn works(&self) -> bool {
        self.trouble.is_none() && self.spoken.is_some()
    }
}
