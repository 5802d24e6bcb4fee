//! A scheduler that follows the guard's events, instead of asking Placement again and again what is free.
//!
//! Three servers are deleted while three others wait for a node. Each of those gets its node the moment the guard says that one is
//! `released`: free in Ironic, and offered by Placement. It needs no cloud: Ironic, Placement and Nova are in memory, and their time
//! is not ours.
//!
//! ```sh
//! cargo run -p unprovision --example scheduler
//! ```

use std::collections::VecDeque;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use ironic_client::IronicClient;
use placement_client::{
    CandidateQuery, Consumer, ConsumerAllocations, ConsumerGeneration, ConsumerUuid, Placement,
    PlacementClient, ProviderUuid, ResourceClass,
};
use tokio_util::sync::CancellationToken;
use unprovision::cloud::OpenStack;
use unprovision::guard::{Adapters, Guard, NodeEventKind, Settings, Told, Unobserved};
use unprovision::journal::MemoryJournal;
use unprovision_testkit::rig::SandboxClock;
use unprovision_testkit::sandbox::config::NovaRule;
use unprovision_testkit::sandbox::{Sandbox, Service};
use uuid::Uuid;

/// Whoever waits for a node, and where it asks for one.
struct Scheduler {
    placement: Arc<dyn Placement>,
    class: ResourceClass,
    waiting: VecDeque<Uuid>,
}

impl Scheduler {
    /// What an event means to it. `true`: nobody waits any more.
    async fn hears(&mut self, told: Told) -> Result<bool, placement_client::Error> {
        match told {
            Told::Event(event) => match event.event {
                NodeEventKind::Released => self.give(event.provider).await?,
                NodeEventKind::Held | NodeEventKind::Ended => {}
                NodeEventKind::Stuck => println!("{} needs somebody: {}", event.node, event.reason),
            },
            // Who was too slow asks once what there is, and follows again.
            Told::Missed(_) => {
                let query = CandidateQuery::of(self.class.clone());
                for candidate in self.placement.candidates(&query).await? {
                    self.give(candidate.provider).await?;
                }
            }
        }
        Ok(self.waiting.is_empty())
    }

    /// Claims the node for the one who has waited longest. Somebody else may be faster: Placement decides.
    async fn give(&mut self, provider: ProviderUuid) -> Result<(), placement_client::Error> {
        let Some(tenant) = self.waiting.front().copied() else {
            return Ok(());
        };
        let claim = ConsumerAllocations {
            consumer: Some(Consumer {
                project_id: Uuid::from_u128(1).to_string(),
                user_id: Uuid::from_u128(2).to_string(),
                consumer_type: None,
            }),
            generation: ConsumerGeneration::New,
            allocations: [(provider, [(self.class.clone(), 1)].into())].into(),
        };
        match self.placement.write_consumer(ConsumerUuid(tenant), &claim).await {
            Ok(()) => {
                println!("{provider} is given to {tenant}");
                self.waiting.pop_front();
                Ok(())
            }
            Err(error) if error.kind.class() == unprovision_session::Class::Transient => Err(error),
            Err(error) => {
                println!("{provider} is not to be had: {error}");
                Ok(())
            }
        }
    }
}

fn cloud() -> Sandbox {
    // A Nova that offers nodes while they are cleaned: whoever asked Placement would be given one of those.
    Sandbox::builder()
        .nodes(3)
        .deployed(3)
        .cleaning(Duration::from_secs(600))
        .nova(NovaRule::Old)
        .build()
}

fn guard(sandbox: &Sandbox) -> Guard {
    let clock = Arc::new(SandboxClock(sandbox.clone()));
    let to = |service| sandbox.transport(service, "guard");
    let openstack = Arc::new(OpenStack::new(
        Arc::new(IronicClient::new(to(Service::Ironic))),
        Arc::new(PlacementClient::new(to(Service::Placement))),
        Arc::clone(&clock) as _,
    ));
    let adapters = Adapters {
        cloud: Arc::<OpenStack>::clone(&openstack),
        fleet: openstack,
        journal: Arc::new(MemoryJournal::new()),
        clock,
        observer: Arc::new(Unobserved),
        identity: None,
        events: None,
        servers: None,
    };
    Guard::new(adapters, Settings::default())
}

/// All of it; which tenant has got which node in the end.
async fn play(sandbox: &Sandbox) -> Result<Vec<(Uuid, Vec<Uuid>)>, Box<dyn Error>> {
    let guard = guard(sandbox);
    let mut scheduler = Scheduler {
        placement: Arc::new(PlacementClient::new(
            sandbox.transport(Service::Placement, "scheduler"),
        )),
        class: ResourceClass::of_node_class("baremetal")?,
        waiting: (100..103).map(Uuid::from_u128).collect(),
    };
    // Before anything happens: it tells what comes from now on.
    let mut events = Box::pin(guard.events().follow(None));
    for (_, instance) in sandbox.deployed() {
        sandbox.with(|world, now| world.nova_delete(instance, now));
    }
    let stop = CancellationToken::new();
    let scheduling = async {
        while let Some(told) = events.next().await {
            if scheduler.hears(told).await? {
                break;
            }
        }
        stop.cancel();
        Ok::<_, placement_client::Error>(())
    };
    let (guarded, scheduled) = tokio::join!(guard.run(&stop), scheduling);
    guarded?;
    scheduled?;
    let nodes = sandbox.nodes().into_iter();
    Ok(nodes
        .map(|node| (node, sandbox.with(|world, _| world.holders(node))))
        .collect())
}

#[tokio::main(flavor = "current_thread", start_paused = true)]
async fn main() -> Result<(), Box<dyn Error>> {
    play(&cloud()).await.map(drop)
}

#[cfg(test)]
mod tests {
    use unprovision_testkit::sandbox::ironic::State;
    use unprovision_testkit::sandbox::judge;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn everybody_who_waits_gets_a_node_that_is_free() {
        let sandbox = cloud();
        let begun = sandbox.now();
        let given = play(&sandbox).await.unwrap();
        assert!(
            sandbox.now().duration_since(begun).as_secs() >= 600,
            "not before it is cleaned"
        );
        let mut tenants = Vec::new();
        for (node, holders) in given {
            assert_eq!(holders.len(), 1, "{node}: {holders:?}");
            tenants.extend(holders);
            let state = sandbox.with(|world, _| world.node(node).unwrap().provision_state);
            assert_eq!(state, State::Available);
            assert!(judge::exposure(&sandbox.log(), node).is_none());
        }
        tenants.sort();
        assert_eq!(tenants, (100..103).map(Uuid::from_u128).collect::<Vec<_>>());
    }
}
