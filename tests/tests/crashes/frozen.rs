//! A process that is frozen between its decision to tear down and the request: the next tenant is never hit (rule 3).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use ironic_client::{Node, NodeUuid};
use unprovision::cloud::{Cloud, CloudError, OpenStack, Reads};
use unprovision::core::{Action, ActionKind, Observation, Outcome};
use unprovision::journal::JournalError;
use unprovision::orchestrator::{Progress, RunError};
use unprovision_testkit::rig::Rig;
use unprovision_testkit::sandbox::ironic::State;
use unprovision_testkit::sandbox::{Fault, Sandbox, Service};
use uuid::Uuid;

use crate::common::{
    assert_clean, assert_returned, cloud_of, resume, secs, strategies, tear_downs, with_cloud,
};

const FROZEN_FOR: Duration = Duration::from_secs(600);
const NEXT_TENANT: Uuid = Uuid::from_u128(0xbeef);

/// Where a process is when it freezes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Frozen {
    /// The intent is on record; the look before the request has not begun.
    BeforeTheLook,
    /// The look before the request was answered with the world as it was.
    InTheLook,
}

/// The cloud of a process that freezes once, at its first tear-down.
#[derive(Debug)]
struct FreezingCloud {
    inner: OpenStack,
    sandbox: Sandbox,
    freezes: Frozen,
    has: AtomicBool,
}

#[async_trait]
impl Cloud for FreezingCloud {
    async fn find(&self, uuid_or_name: &str) -> Result<Option<Node>, CloudError> {
        self.inner.find(uuid_or_name).await
    }

    async fn nodes(&self, nodes: &[NodeUuid]) -> Result<BTreeMap<NodeUuid, Node>, CloudError> {
        self.inner.nodes(nodes).await
    }

    async fn observe(&self, node: NodeUuid, reads: Reads) -> Result<Observation, CloudError> {
        self.inner.observe(node, reads).await
    }

    async fn apply(&self, node: NodeUuid, action: &Action) -> Result<(), CloudError> {
        if action.kind() == ActionKind::Unprovision && !self.has.swap(true, Ordering::Relaxed) {
            match self.freezes {
                Frozen::BeforeTheLook => tokio::time::sleep(FROZEN_FOR).await,
                Frozen::InTheLook => {
                    let look = Fault::on(Service::Ironic)
                        .method(http::Method::GET)
                        .path("/v1/nodes/*")
                        .nth(1);
                    self.sandbox.fault(look.delay_reply(FROZEN_FOR));
                }
            }
        }
        self.inner.apply(node, action).await
    }
}

fn rig_that_freezes(freezes: Frozen) -> Rig {
    let sandbox = Sandbox::builder()
        .nodes(1)
        .deployed(1)
        .teardown(secs(4))
        .cleaning(secs(20))
        .build();
    let cloud = FreezingCloud {
        inner: cloud_of(&sandbox),
        sandbox: sandbox.clone(),
        freezes,
        has: AtomicBool::new(false),
    };
    with_cloud(&Rig::new(sandbox), Arc::new(cloud))
}

fn assert_the_next_tenant_is_there(rig: &Rig, node: Uuid, what: &str) {
    let (state, carries) = rig.sandbox.with(|world, _| {
        let node = world.node(node).unwrap();
        (node.provision_state, node.instance_uuid)
    });
    assert_eq!((state, carries), (State::Active, Some(NEXT_TENANT)), "{what}");
    assert_eq!(
        tear_downs(&rig.sandbox, node),
        1,
        "{what}: the one of the old instance"
    );
}

/// Another process takes the case over, the node returns, and Nova puts the next instance on it.
#[tokio::test(start_paused = true)]
async fn a_frozen_process_does_not_hit_the_next_tenant_after_a_take_over() {
    for strategy in strategies() {
        for freezes in [Frozen::BeforeTheLook, Frozen::InTheLook] {
            let what = format!("{strategy}, {freezes:?}");
            let rig = rig_that_freezes(freezes);
            let (node, instance) = rig.sandbox.deployed()[0];
            let requests = [rig.request(node, instance, strategy)];
            let frozen = rig.tear_down(&requests);
            let meanwhile = async {
                tokio::time::sleep(secs(60)).await;
                let taken_over = resume(&rig.restarted()).await;
                let reports = taken_over.into_iter().map(Result::unwrap).collect::<Vec<_>>();
                assert_eq!(reports.len(), 1, "{what}");
                assert_returned(&reports, &what);
                rig.sandbox
                    .with(|world, now| world.nova_create(NEXT_TENANT, "baremetal", Some(node), now));
                tokio::time::sleep(secs(60)).await;
                assert_the_next_tenant_is_there(&rig, node, &what);
            };
            let (frozen, ()) = tokio::join!(frozen, meanwhile);
            let fenced = matches!(frozen, Err(RunError::Journal(JournalError::Fenced(_))));
            assert!(fenced, "{what}: {frozen:?}");
            tokio::time::sleep(secs(600)).await;
            assert_the_next_tenant_is_there(&rig, node, &what);
            let holders = rig.sandbox.with(|world, _| world.holders(node));
            assert_eq!(
                holders,
                [NEXT_TENANT],
                "{what}: the next tenant's allocation is untouched"
            );
        }
    }
}

/// Nobody takes over, but an operator tears the instance down and deploys another around Nova and us.
#[tokio::test(start_paused = true)]
async fn a_frozen_process_leaves_an_instance_alone_that_it_was_not_asked_for() {
    for strategy in strategies() {
        for freezes in [Frozen::BeforeTheLook, Frozen::InTheLook] {
            let what = format!("{strategy}, {freezes:?}");
            let rig = rig_that_freezes(freezes);
            let (node, instance) = rig.sandbox.deployed()[0];
            let requests = [rig.request(node, instance, strategy)];
            let frozen = rig.tear_down(&requests);
            let meanwhile = async {
                tokio::time::sleep(secs(60)).await;
                let path = format!("/v1/nodes/{node}/states/provision");
                let deleted = serde_json::json!({ "target": "deleted" });
                let put = http::Method::PUT;
                let reply = rig
                    .sandbox
                    .with(|world, _| world.ask(Service::Ironic, put, &path, Some(deleted)));
                assert!(reply.status.is_success(), "{}", reply.error());
                tokio::time::sleep(secs(60)).await;
                rig.sandbox.with(|world, now| {
                    world.edit_node(node, |node| {
                        assert_eq!(node.provision_state, State::Available);
                        node.instance_uuid = Some(NEXT_TENANT);
                        node.provision_state = State::Active;
                        node.provision_updated_at = Some(now);
                    })
                });
            };
            let (reports, ()) = tokio::join!(frozen, meanwhile);
            let report = reports.unwrap().remove(0);
            assert_eq!(
                report.outcome,
                Progress::Ended(Outcome::Blocked),
                "{what}: {report:?}"
            );
            let took_it_over = matches!(strategy, "hand-over" | "reserve-on-delete");
            assert_eq!(report.held, took_it_over, "{what}: {report:?}");
            tokio::time::sleep(secs(600)).await;
            assert!(
                !rig.sandbox.is_offered(node),
                "{what}: nobody may be sent to the node meanwhile"
            );
            assert_the_next_tenant_is_there(&rig, node, &what);
        }
    }
}

/// Ten minutes later the node is as it was: then the tear-down is decided anew, and done once.
#[tokio::test(start_paused = true)]
async fn a_frozen_process_goes_on_where_nothing_has_changed() {
    for strategy in strategies() {
        for freezes in [Frozen::BeforeTheLook, Frozen::InTheLook] {
            let what = format!("{strategy}, {freezes:?}");
            let rig = rig_that_freezes(freezes);
            let (node, instance) = rig.sandbox.deployed()[0];
            let mut requests = [rig.request(node, instance, strategy)];
            requests[0].limits = rig.limits(secs(3600));
            let reports = rig.tear_down(&requests).await.unwrap();
            assert_returned(&reports, &what);
            assert_clean(&rig.sandbox, node, &what);
            assert_eq!(tear_downs(&rig.sandbox, node), 1, "{what}");
        }
    }
}
