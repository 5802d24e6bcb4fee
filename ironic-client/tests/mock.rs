//! How an embedder unit-tests code that stands on the trait: errors and lists from the mock.
#![cfg(feature = "mock")]
#![allow(clippy::unwrap_used, reason = "helpers of tests are not seen as tests")]

use std::sync::Arc;

use ironic_client::{Error, ErrorKind, Ironic, MockIronic, Node, NodeFilter, NodeUuid, ProvisionState, Verb};
use serde_json::json;
use unprovision_session::Class;
use uuid::Uuid;

/// An error as the client makes it.
fn locked() -> Error {
    Error {
        service: "ironic",
        call: "ask node n for `deleted`".into(),
        kind: ErrorKind::Locked,
        status: Some(http::StatusCode::CONFLICT),
        message: "Node n is locked by host c1".into(),
        request_id: None,
        retry_after: None,
        source: None,
    }
}

/// The code under test: the mock is one of many behind the trait object.
async fn deletes(ironic: Arc<dyn Ironic>) -> Vec<(NodeUuid, Option<Class>)> {
    let mut results = Vec::new();
    for node in ironic.list_nodes(&NodeFilter::default(), &[]).await.unwrap() {
        let result = ironic.set_provision_state(node.uuid, &Verb::Deleted.into()).await;
        results.push((node.uuid, result.err().map(|error| error.kind.class())));
    }
    results
}

#[tokio::test]
async fn a_mock_answers_by_what_it_is_asked() {
    let node = |number| {
        let node = json!({ "uuid": Uuid::from_u128(number), "provision_state": ProvisionState::Active });
        serde_json::from_value::<Node>(node).unwrap()
    };
    let (first, second) = (node(1).uuid, node(2).uuid);
    let mut ironic = MockIronic::new();
    ironic
        .expect_list_nodes()
        .return_once(move |_, _| Ok(vec![node(1), node(2)]));
    ironic
        .expect_set_provision_state()
        .withf(move |uuid, _| *uuid == first)
        .times(1)
        .returning(|_, _| Ok(()));
    ironic
        .expect_set_provision_state()
        .withf(move |uuid, _| *uuid == second)
        .times(1)
        .returning(|_, _| Err(locked()));
    assert_eq!(
        deletes(Arc::new(ironic)).await,
        [(first, None), (second, Some(Class::Transient))]
    );
}
