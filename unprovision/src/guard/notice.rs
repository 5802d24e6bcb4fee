//! What the guard says of itself.

use std::collections::BTreeSet;
use std::fmt;

use jiff::Timestamp;

use crate::NodeUuid;
use crate::core::Process;
use crate::events::Heard;

/// Something that concerns the guard, or a node without a case.
#[derive(Clone, Debug, PartialEq)]
pub enum Notice {
    /// It begins.
    Starts {
        /// Cases that the journal has open, and that are carried on.
        carried_on: usize,
    },
    /// Other processes are at work on the journal; said at the start.
    Beside(BTreeSet<Process>),
    /// Nova is asked for servers.
    AsksNova {
        /// Before each release, not only where there is doubt.
        required: bool,
    },
    /// Nova is not asked, so something is not checked; why.
    Unchecked(String),
    /// What a scope is about; said at the start, and when a scope becomes empty or is not so any more.
    Scope {
        /// Its name.
        name: String,
        /// How many nodes it has.
        nodes: usize,
        /// The strategy; none where it is only looked at.
        strategy: Option<String>,
    },
    /// So many nodes are in no scope, and left alone.
    Outside(usize),
    /// A person ought to look at the node; nothing is written.
    Finding {
        /// The node.
        node: NodeUuid,
        /// What is wrong.
        what: String,
    },
    /// The node's case cannot be worked on now; it is tried again.
    Trouble {
        /// The node.
        node: NodeUuid,
        /// Why not.
        why: String,
    },
    /// A look or sweep failed; it is tried again.
    Blind {
        /// Which.
        what: &'static str,
        /// Why.
        why: String,
    },
    /// Ironic shows no node at all: there is nothing to guard, or these credentials do not see it.
    SeesNothing,
    /// Nothing is released or closed until a sweep is as it should be (rule 13).
    Distrusts(String),
    /// Sweeps are as they should be again.
    Trusts,
    /// Nothing is written until somebody says so (rule 14).
    Alarm(String),
    /// A person has stopped all writes.
    Paused(String),
    /// Writes are sent again.
    GoesOn,
    /// The source of events listens, from here on; what was missed is looked for.
    Listens(String),
    /// The source of events hears nothing; nodes are found by looking.
    Deaf {
        /// Which source.
        source: String,
        /// Why, and what to do.
        why: String,
    },
    /// A message that nobody can read was set aside.
    Unreadable {
        /// What is wrong with it.
        why: String,
        /// How many there were so far.
        so_far: u64,
    },
    /// Nodes change, and no message comes; or messages come again.
    Silent(bool),
    /// How it is, from time to time.
    Status(Box<Status>),
}

pub(super) const NO_NODE_FITS: &str = "no node fits any scope, so nothing is guarded: compare each `[[scope]]` with \
                                       `unprovision nodes`";

pub(super) const SEES_NOTHING: &str = "Ironic shows no node at all; if there are any, these credentials do not see them: all nodes \
                            are seen with a system scope";

impl Notice {
    /// Whether somebody has to do something.
    pub fn is_alarm(&self) -> bool {
        matches!(self, Self::Alarm(_) | Self::Distrusts(_))
    }
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Starts { carried_on } => {
                write!(
                    f,
                    "guard starts; {carried_on} open cases of the journal are carried on"
                )
            }
            Self::Beside(others) => beside(others, f),
            Self::AsksNova { required } => f.write_str(match required {
                true => "Nova is asked for the server before each release, and where there is doubt",
                false => "Nova is asked for the server where there is doubt",
            }),
            Self::Unchecked(why) => write!(
                f,
                "Nova is not asked: {why}. Not checked: whether a server is there before its unit goes back to it, and while its \
                 allocation stays on a free node"
            ),
            Self::Scope { name, nodes: 0, .. } => {
                write!(f, "scope `{name}`: NO node fits, so nothing is guarded by it")
            }
            Self::Scope {
                name,
                nodes,
                strategy,
            } => {
                let how = strategy.as_deref().unwrap_or("audit-only");
                write!(f, "scope `{name}`: {nodes} nodes, {how}")
            }
            Self::Outside(nodes) => write!(f, "{nodes} nodes are in no scope, and left alone"),
            Self::Finding { node, what } => write!(f, "finding: node {node}: {what}"),
            Self::Trouble { node, why } => write!(f, "node {node}, tried again: {why}"),
            Self::Blind { what, why } => write!(f, "the {what} failed, tried again: {why}"),
            Self::SeesNothing => f.write_str(SEES_NOTHING),
            Self::Distrusts(why) => write!(f, "ALARM: nothing is released or closed: {why}"),
            Self::Trusts => f.write_str("sweeps are complete again; releases go on"),
            Self::Alarm(why) => write!(f, "ALARM: nothing is written any more: {why}"),
            Self::Paused(why) => write!(f, "paused, nothing is written: {why}"),
            Self::GoesOn => f.write_str("goes on"),
            Self::Listens(source) => write!(f, "listens to {source}; what was missed is looked for"),
            Self::Deaf { source, why } => {
                write!(f, "hears nothing of {source}, goes on by looking, tried again: {why}")
            }
            Self::Unreadable { why, so_far } => {
                write!(f, "a message that nobody can read was set aside ({so_far} so far): {why}")
            }
            Self::Silent(true) => f.write_str(
                "nodes change, and Ironic says nothing of it; it goes on by looking. See `notification_level` and \
                 `[oslo_messaging_notifications] driver` in ironic.conf, and whether this is Ironic's broker",
            ),
            Self::Silent(false) => f.write_str("Ironic says again what happens"),
            Self::Status(status) => status.fmt(f),
        }
    }
}

fn beside(others: &BTreeSet<Process>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let others = others.iter().map(ToString::to_string).collect::<Vec<_>>();
    let are = if others.len() == 1 { "is" } else { "are" };
    let others = others.join(", ");
    write!(
        f,
        "not alone: {others} {are} at work on this journal, too; each case is looked after by one, and what it leaves is taken up by \
         another"
    )
}

/// How the guard is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// Nodes that Ironic has, by the last sweep.
    pub nodes: usize,
    /// Nodes with an open case.
    pub open: usize,
    /// Nodes that something of ours hides.
    pub held: usize,
    /// When the last look at the nodes on their way succeeded.
    pub last_look: Option<Timestamp>,
    /// When the last complete sweep succeeded.
    pub last_sweep: Option<Timestamp>,
    /// Why nothing is written, if so.
    pub stopped: Option<String>,
    /// Why nothing is released, if so.
    pub distrust: Option<String>,
    /// What was heard of the source of events, where there is one.
    pub events: Option<Heard>,
}

impl Status {
    pub(super) fn line(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} nodes, {} on their way, {} held by us",
            self.nodes, self.open, self.held
        )?;
        match self.last_sweep {
            Some(at) => write!(f, "; last sweep {at:.0}")?,
            None => f.write_str("; no sweep yet")?,
        }
        if let Some(heard) = &self.events {
            write!(f, "; {heard}")?;
        }
        for why in self.stopped.iter().chain(&self.distrust) {
            write!(f, "; {why}")?;
        }
        Ok(())
    }
}
