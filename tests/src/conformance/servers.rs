//! What every [`Servers`] must do.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "these are the bodies of tests: a failure is told by panicking"
)]

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use ironic_client::NodeUuid;
use unprovision::core::Tie;
use unprovision::servers::{Servers, ServersError};
use uuid::Uuid;

/// Somebody who makes and deletes servers there.
#[async_trait]
pub trait Hand: fmt::Debug + Send + Sync {
    /// A server, and the node that it is on.
    async fn server(&self) -> (Uuid, NodeUuid);

    /// Asks for its deletion, and may return before that is done.
    async fn delete(&self, server: Uuid);

    /// A while passes.
    async fn wait(&self);
}

/// How often a deletion is looked at, at most.
const LOOKS: usize = 600;

/// Runs all of it, by somebody who may see the servers of all projects.
///
/// # Panics
///
/// With the first thing that it does wrong.
pub async fn run_all(servers: &dyn Servers, hand: &dyn Hand) {
    servers.can_be_seen().await.unwrap();
    what_nobody_knows_is_not_there(servers).await;
    let (server, node) = hand.server().await;
    what_lives_is_shown_with_its_node(servers, server, node).await;
    servers.can_be_seen().await.unwrap();
    what_is_deleted_is_gone_in_the_end(servers, hand, server, node).await;
    what_nobody_knows_is_not_there(servers).await;
}

/// The same by somebody who may not: no answer, also not that something is not there.
///
/// # Panics
///
/// Where there is one.
pub async fn run_all_without_right(servers: &dyn Servers, hand: &dyn Hand) {
    let unreadable = |error: ServersError| match error {
        ServersError::Unreadable(why) => assert!(!why.is_empty()),
        ServersError::NotLetIn(why) | ServersError::Away(why) => panic!("waiting does not help: {why}"),
    };
    let (server, _) = hand.server().await;
    unreadable(servers.can_be_seen().await.unwrap_err());
    unreadable(servers.server(server).await.unwrap_err());
    unreadable(servers.server(Uuid::from_u128(7)).await.unwrap_err());
    hand.delete(server).await;
}

async fn what_nobody_knows_is_not_there(servers: &dyn Servers) {
    assert_eq!(servers.server(Uuid::from_u128(7)).await, Ok(None));
}

async fn what_lives_is_shown_with_its_node(servers: &dyn Servers, server: Uuid, node: NodeUuid) {
    let shown = servers.server(server).await.unwrap().unwrap();
    assert_eq!(
        (shown.status.as_str(), shown.task.as_deref()),
        ("ACTIVE", None),
        "{shown:?}"
    );
    assert_eq!(shown.tie(node), Tie::Lives, "{shown:?}");
    assert_eq!(
        shown.tie(NodeUuid(Uuid::from_u128(7))),
        Tie::Elsewhere,
        "{shown:?}"
    );
}

async fn what_is_deleted_is_gone_in_the_end(
    servers: &dyn Servers,
    hand: &dyn Hand,
    server: Uuid,
    node: NodeUuid,
) {
    hand.delete(server).await;
    let mut ties = Vec::new();
    for _ in 0..LOOKS {
        match servers.server(server).await.unwrap() {
            Some(shown) => ties.push(shown.tie(node)),
            None => {
                let deleting = |tie: &Tie| matches!(tie, Tie::Deleting | Tie::Lives);
                // It may be seen once more before Nova has noted the request.
                assert!(ties.iter().all(deleting), "{ties:?}");
                return;
            }
        }
        hand.wait().await;
    }
    panic!("it is never gone: {ties:?}");
}

/// Between two looks at a real deletion.
pub const PAUSE: Duration = Duration::from_millis(500);
