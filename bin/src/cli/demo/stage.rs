//! The worlds of the demo: one for each way of tearing down, all alike.

use std::sync::Arc;
use std::time::Duration;

use ironic_client::{Ironic, IronicClient};
use jiff::Timestamp;
use placement_client::{Placement, PlacementClient, ResourceClass, TraitName};
use unprovision_testkit::sandbox::config::NovaRule;
use unprovision_testkit::sandbox::judge::Query;
use unprovision_testkit::sandbox::{Sandbox, Service};
use uuid::Uuid;

/// Everything goes ten times as fast as on the cloud that was measured: there a tear-down took 4 s, cleaning 30 s, and
/// Nova's resource tracker passed every 60 s.
pub(super) const TEAR_DOWN: Duration = Duration::from_millis(400);
pub(super) const CLEANING: Duration = Duration::from_secs(3);
pub(super) const PASS: Duration = Duration::from_secs(6);
/// Nova's first pass falls into the cleaning, so that both of its effects are seen: the node is hidden late, and
/// offered again late.
const FIRST_PASS: Duration = Duration::from_millis(3200);
/// How often Nova looks at a node that it tears down.
const NOVA_LOOKS: Duration = Duration::from_millis(200);
/// How long the nodes are in use before the tear-down begins.
pub(super) const IN_USE: Duration = Duration::from_secs(1);

const CLASS: &str = "baremetal";

/// One world, and the tear-down that is played in it.
#[derive(Clone, Debug)]
pub(super) struct Stage {
    /// The name of the strategy, or of the baseline.
    pub(super) name: &'static str,
    /// The world.
    pub(super) sandbox: Sandbox,
    /// The nodes and the instances that leave them.
    pub(super) pairs: Vec<(Uuid, Uuid)>,
    /// The trait that whoever asks Placement forbids, where the strategy tags: only such queries are protected.
    pub(super) forbids: Option<TraitName>,
    /// When the world began.
    pub(super) began: Timestamp,
}

impl Stage {
    /// A world of nodes in use, with or without Nova's tracker.
    pub(super) fn new(name: &'static str, nodes: usize, nova: NovaRule) -> Self {
        let faster = |config: &mut unprovision_testkit::sandbox::Config| {
            config.nova.first_pass = FIRST_PASS;
            config.nova.pass_interval = PASS;
            config.nova.poll = NOVA_LOOKS;
            config.nova.conflict_retry = Duration::from_millis(100);
            config.ironic.timing.lock_tail = Duration::from_millis(10);
        };
        let sandbox = Sandbox::builder()
            .nodes(nodes)
            .deployed(nodes)
            .class(CLASS)
            .teardown(TEAR_DOWN)
            .cleaning(CLEANING)
            .nova(nova)
            .configure(faster)
            .build();
        Self {
            name,
            pairs: sandbox.deployed(),
            forbids: None,
            began: sandbox.now(),
            sandbox,
        }
    }

    /// The same, where the strategy tags nodes with this trait.
    pub(super) fn forbidding(mut self, tag: TraitName) -> Self {
        self.forbids = Some(tag);
        self
    }

    /// The queries that are protected, for the judge.
    pub(super) fn query(&self) -> Query<'_> {
        Query {
            forbids: self.forbids.as_ref().map(TraitName::as_str),
        }
    }

    /// A client of the world's Ironic, in-process.
    pub(super) fn ironic(&self, who: &str) -> Arc<dyn Ironic> {
        Arc::new(IronicClient::new(self.sandbox.transport(Service::Ironic, who)))
    }

    /// A client of the world's Placement, in-process.
    pub(super) fn placement(&self, who: &str) -> Arc<dyn Placement> {
        Arc::new(PlacementClient::new(
            self.sandbox.transport(Service::Placement, who),
        ))
    }

    /// Placement's class of the nodes.
    pub(super) fn class(&self) -> anyhow::Result<ResourceClass> {
        Ok(ResourceClass::of_node_class(CLASS)?)
    }
}
