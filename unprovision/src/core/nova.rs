//! Nova's word where there is doubt (rule 10): when it is asked for a server, and what follows.
//!
//! An ordinary delete raises no doubt, so it costs no request. Nova is asked before a unit goes back to a server, and where the
//! allocation of a server stays on a free node; if it is to be asked always, also before each release.

use ironic_client::NodeUuid;
use jiff::{SignedDuration, Timestamp};
use uuid::Uuid;

use super::free::is_free;
use super::{
    Action, ActionKind, Case, Decision, Observation, Outcome, Owner, ProviderView, Server, Tie, Wait, WaitFor,
};

/// How soon Nova is asked again: nothing that Ironic shows tells of what happens there.
const AGAIN: SignedDuration = SignedDuration::from_secs(60);

/// What Nova said when it was asked for a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NovaSays {
    /// The server.
    pub server: Uuid,
    /// What it said.
    pub answer: NovaAnswer,
}

/// An answer of Nova's, or why there is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NovaAnswer {
    /// The server is there.
    Server(Server),
    /// Nobody knows the server any more.
    NoServer,
    /// There is no answer now, and none is done without.
    Silent(String),
    /// Nova cannot be asked: decided without it.
    Unreadable,
}

/// What is about to happen that Nova may know better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Doubt {
    /// The unit goes back to the server, whose node is in use again.
    HandsBack,
    /// The case ends, although the server's allocation is still there and its node is free.
    Stays,
    /// The node is about to be offered.
    Releases,
}

/// The server that Nova is to be asked for before this is done. `None` where there is no doubt, or it was asked just now.
/// `always`: also before each release.
pub fn whom_to_ask(case: &Case, seen: &Observation, decision: &Decision, always: bool) -> Option<Uuid> {
    let novas = seen.provider.as_ref().is_some_and(|view| case.is_novas(view));
    if !case.is_guard() || !novas || seen.nova.is_some() {
        return None;
    }
    match doubt(case, seen, decision)? {
        Doubt::Releases if !always => None,
        Doubt::HandsBack | Doubt::Stays | Doubt::Releases => case.instance(),
    }
}

fn doubt(case: &Case, seen: &Observation, decision: &Decision) -> Option<Doubt> {
    let (node, view) = (seen.node.as_ref()?, seen.provider.as_ref()?);
    match decision {
        Decision::Act(action) if !gives_up(action, view) => None,
        Decision::Act(_) if case.is_carried_by(node) => Some(Doubt::HandsBack),
        Decision::Act(_) => is_free(node).then_some(Doubt::Releases),
        Decision::End(ending) => {
            let stays = case
                .instance_consumer()
                .is_some_and(|consumer| view.holders.contains_key(&consumer));
            let blocked = ending.outcome == Outcome::Blocked && is_free(node);
            (blocked && stays).then_some(Doubt::Stays)
        }
        Decision::Wait(_) => None,
    }
}

/// Whether the write gives up something that hides the node.
fn gives_up(action: &Action, view: &ProviderView) -> bool {
    match action {
        Action::SetReserved { class, to, .. } => {
            let now = view.inventories.inventories.get(class);
            now.is_some_and(|now| *to < now.reserved)
        }
        Action::Release { whose, .. } => *whose == Owner::Guard,
        other => other.kind() == ActionKind::HandBack,
    }
}

/// What follows from Nova's word, where it was asked.
pub(super) fn heeded(case: &Case, decision: Decision, seen: &Observation, now: Timestamp) -> Decision {
    let asked = seen.nova.as_ref().zip(doubt(case, seen, &decision));
    let Some((said, doubt)) = asked.filter(|(said, _)| Some(said.server) == case.instance()) else {
        return decision;
    };
    let wait = |for_what| {
        Decision::Wait(Wait {
            for_what,
            until: now + AGAIN,
        })
    };
    let words = said.words(case.node);
    let (server, node) = (said.server, case.node);
    let deletes = format!("`openstack server delete {server}`");
    let tie = match &said.answer {
        NovaAnswer::Unreadable => return decision,
        NovaAnswer::Silent(_) => return wait(WaitFor::Other(words)),
        NovaAnswer::NoServer => None,
        NovaAnswer::Server(server) => Some(server.tie(node)),
    };
    let person = |then: String| wait(WaitFor::Person(then));
    match (doubt, tie) {
        (Doubt::HandsBack, Some(Tie::Lives | Tie::SoftDeleted | Tie::Failed))
        | (Doubt::Releases, None | Some(Tie::Deleting | Tie::SoftDeleted | Tie::Failed | Tie::Elsewhere))
        | (Doubt::Stays, None) => decision,
        (Doubt::HandsBack, Some(Tie::Deleting)) => wait(WaitFor::Other(format!(
            "{words}, and the node is in use again; its unit stays with us until either changes"
        ))),
        (Doubt::HandsBack, None | Some(Tie::Elsewhere)) => person(format!(
            "the node is in use again by instance {server}, but {words}; its unit stays with us. If nobody needs what is on the \
             node: `openstack baremetal node undeploy {node}`"
        )),
        (Doubt::Releases | Doubt::Stays, Some(Tie::Lives)) => person(format!(
            "the node is free, but {words}: it was torn down behind Nova's back. It is not offered until the server is deleted: \
             {deletes}"
        )),
        (Doubt::Stays, Some(Tie::Failed)) => person(format!(
            "the node is free, but {words}, and keeps its allocation; delete it once more: {deletes}"
        )),
        (Doubt::Stays, Some(Tie::Elsewhere)) => person(format!(
            "the node is free, but {words}, and its allocation has this node still: `openstack resource provider allocation \
             unset --provider {node} {server}`"
        )),
        (Doubt::Stays, Some(Tie::Deleting | Tie::SoftDeleted)) => wait(WaitFor::Other(format!(
            "{words}; it drops the allocation when that is done"
        ))),
    }
}

impl NovaSays {
    /// What it said of the server and the node, in words.
    pub fn words(&self, node: NodeUuid) -> String {
        let server = self.server;
        match &self.answer {
            NovaAnswer::NoServer => format!("Nova does not know server {server} any more"),
            NovaAnswer::Silent(why) => format!("Nova is to be asked for server {server} first: {why}"),
            NovaAnswer::Unreadable => format!("Nova cannot be asked for server {server}"),
            NovaAnswer::Server(shown) => match (shown.tie(node), &shown.host) {
                (Tie::Deleting, _) => format!("Nova is deleting server {server}"),
                (Tie::SoftDeleted, _) => {
                    format!(
                        "Nova keeps server {server} for a while after its deletion (`{}`)",
                        shown.status
                    )
                }
                (Tie::Elsewhere, Some(host)) => format!("Nova says that server {server} is on {host}"),
                (Tie::Elsewhere, None) => format!("Nova says that server {server} is on no node"),
                (Tie::Lives | Tie::Failed, _) => {
                    format!("Nova says that server {server} is `{}` on it", shown.status)
                }
            },
        }
    }

    /// Whether Nova has no use for the node any more, as far as this server goes.
    pub(super) fn lets_go(&self, server: Uuid, node: NodeUuid) -> bool {
        let gone = match &self.answer {
            NovaAnswer::NoServer => true,
            NovaAnswer::Server(server) => server.tie(node) == Tie::Deleting,
            NovaAnswer::Silent(_) | NovaAnswer::Unreadable => false,
        };
        gone && self.server == server
    }
}
