//! Nova's deleter beside the sandbox's services.
//!
//! There is no compute API to delete a server by. So every tear-down, whoever asks Ironic for it, counts as the delete of
//! the server on the node: as soon as the instance has left it, Nova deletes the allocation, without a look at anything else.

use std::collections::BTreeSet;
use std::time::Duration;

use unprovision_testkit::sandbox::Sandbox;
use unprovision_testkit::sandbox::nova::Stage;

/// From one look to the next, as Nova's Ironic driver does (`[ironic]api_retry_interval`).
const EVERY: Duration = Duration::from_secs(2);

/// Deletes for ever.
pub(super) async fn run(sandbox: Sandbox) {
    let mut ticks = tokio::time::interval(EVERY);
    let mut on_nodes = BTreeSet::new();
    loop {
        ticks.tick().await;
        on_nodes = sandbox.with(|world, now| {
            let still = world
                .deployed()
                .into_iter()
                .map(|(_, instance)| instance)
                .collect::<BTreeSet<_>>();
            for gone in on_nodes.difference(&still) {
                if world.nova_stage(*gone) == Some(Stage::Active) {
                    world.nova_delete(*gone, now);
                }
            }
            still
        });
    }
}
