//! What shows a right without using it, as `unprovision doctor` asks: an administrator, a reader, one user for both services.

use std::sync::Arc;

use ironic_client::{ErrorKind as IronicKind, Ironic, IronicClient, Right as InIronic};
use placement_client::{ErrorKind as PlacementKind, PlacementClient, Right as InPlacement};
use unprovision_session::{Auth, Clouds, HttpTransport, Service, TokenScope};
use unprovision_testkit::lab::Lab;

async fn transport(lab: &Lab, service: Service, cloud: &str) -> Arc<HttpTransport> {
    let file = lab.clouds_yaml().display().to_string();
    let clouds = Clouds::new(|name| (name == "OS_CLIENT_CONFIG_FILE").then(|| file.clone()));
    let auth = Auth::new(clouds.cloud(cloud).load().unwrap()).unwrap();
    Arc::new(HttpTransport::builder(service, auth).build().await.unwrap())
}

#[tokio::test]
async fn rights_show_and_nothing_happens() {
    let lab = Lab::from_env().unwrap_or_else(|error| panic!("{error}"));
    let node = lab.seed(1, &Lab::unique("rights"), &[]).await.unwrap().remove(0);
    let api = lab.api().await.unwrap();
    let before = api.node(node.uuid).await.unwrap();
    for (ironic, placement, role) in [
        ("lab-system", "lab", "admin"),
        ("lab-service", "lab-service", "service"),
        ("lab-reader-system", "lab-reader", "reader"),
    ] {
        let way = transport(&lab, Service::Ironic, ironic).await;
        let standing = way.standing().await.unwrap().unwrap();
        assert!(standing.roles.contains(role), "{standing:?}");
        assert_eq!(
            standing.scope == TokenScope::System,
            ironic.ends_with("system"),
            "{standing:?}"
        );
        let client = IronicClient::new(way);
        let seen = client.show_node(&node.uuid.to_string()).await.unwrap();
        for right in [InIronic::ChangeStates, InIronic::SetTraits] {
            let kind = client.may(right, seen.uuid).await.err().map(|error| error.kind);
            let expected = (role == "reader").then_some(IronicKind::Forbidden);
            assert_eq!(kind, expected, "{role}: {right}");
        }
        let client = PlacementClient::new(transport(&lab, Service::Placement, placement).await);
        for right in [
            InPlacement::WriteAllocations,
            InPlacement::WriteInventories,
            InPlacement::WriteTraits,
        ] {
            let kind = client.may(right).await.err().map(|error| error.kind);
            let expected = (role == "reader").then_some(PlacementKind::Forbidden);
            assert_eq!(kind, expected, "{role}: {right}");
        }
    }
    assert_eq!(api.node(node.uuid).await.unwrap(), before);
}
