//! How an embedder unit-tests code that stands on the trait: a conflict, then success.
#![cfg(feature = "mock")]
#![allow(clippy::unwrap_used, reason = "helpers of tests are not seen as tests")]

use std::sync::Arc;

use mockall::Sequence;
use placement_client::{Error, ErrorKind, Generation, Inventories, MockPlacement, Placement, ProviderUuid};
use unprovision_session::Class;
use uuid::Uuid;

/// An error as the client makes it.
fn moved() -> Error {
    Error {
        service: "placement",
        call: "replace inventories of provider p".into(),
        kind: ErrorKind::ConcurrentUpdate,
        status: Some(http::StatusCode::CONFLICT),
        message: "resource provider generation conflict".into(),
        request_id: None,
        retry_after: None,
        source: None,
    }
}

/// The code under test: reads and decides again after a conflict, three times at most.
async fn reserve(placement: Arc<dyn Placement>, provider: ProviderUuid) -> Result<Generation, Error> {
    let mut tries = 3;
    loop {
        let mut found = placement.inventories(provider).await?;
        found
            .inventories
            .values_mut()
            .for_each(|inventory| inventory.reserved = inventory.total);
        tries -= 1;
        match placement.replace_inventories(provider, &found).await {
            Err(error) if error.kind.class() == Class::Conflict && tries > 0 => {}
            result => return result.map(|inventories| inventories.generation),
        }
    }
}

#[tokio::test]
async fn a_mock_answers_in_the_order_that_the_test_says() {
    let at = |generation| Inventories {
        generation: Generation(generation),
        inventories: Default::default(),
    };
    let mut order = Sequence::new();
    let mut placement = MockPlacement::new();
    placement
        .expect_inventories()
        .times(1)
        .in_sequence(&mut order)
        .returning(move |_| Ok(at(1)));
    placement
        .expect_replace_inventories()
        .times(1)
        .in_sequence(&mut order)
        .returning(|_, _| Err(moved()));
    placement
        .expect_inventories()
        .times(1)
        .in_sequence(&mut order)
        .returning(move |_| Ok(at(2)));
    placement
        .expect_replace_inventories()
        .withf(|_, new| new.generation == Generation(2))
        .times(1)
        .in_sequence(&mut order)
        .returning(move |_, _| Ok(at(3)));
    assert_eq!(
        reserve(Arc::new(placement), ProviderUuid(Uuid::nil()))
            .await
            .unwrap(),
        Generation(3)
    );
}
