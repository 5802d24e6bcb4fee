//! C23: drift on real services, planted by plain calls: each kind is found and nothing else, and repaired.

use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::sync::Arc;

use http::Method;
use jiff::SignedDuration;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use unprovision::NodeUuid;
use unprovision::audit::{Finding, FindingKind as Kind, Remedy, Rules};
use unprovision::cloud::{Asked, Clock, Mended, OpenStack, SystemClock};
use unprovision::core::{DEFAULT_TAG, GUARD_PROJECT, GUARD_USER, guard_consumer};
use unprovision::guard::{Adapters, Guard, Settings, Unobserved};
use unprovision::journal::{Journal, MemoryJournal, read_open};
use unprovision::scope::Scopes;
use unprovision_session::Service;
use unprovision_testkit::lab::{Api, Lab, Proxies, Setup};
use uuid::Uuid;

/// Nodes of our own in the lab, which others use as well.
struct Site {
    api: Api,
    cloud: OpenStack,
    journal: Arc<dyn Journal>,
    class: String,
    nodes: BTreeSet<Uuid>,
    /// They are there as long as the program under test is.
    _proxies: Proxies,
}

impl Site {
    async fn asked(&self, deep: bool) -> Asked {
        let open = read_open(&*self.journal).await.unwrap().into_iter();
        Asked {
            rules: Rules {
                now: SystemClock.now(),
                grace: SignedDuration::from_millis(1),
                open: open.map(|case| (case.node, case.strategy)).collect(),
                deep,
                tag: Some(DEFAULT_TAG.parse().unwrap()),
            },
            concurrency: NonZeroUsize::new(4).unwrap(),
            scopes: Scopes::default(),
            only: None,
        }
    }

    /// What is found of our nodes.
    async fn findings(&self, deep: bool) -> Vec<Finding> {
        let survey = self.cloud.audit(&self.asked(deep).await).await.unwrap();
        let mut found = survey.findings;
        found.retain(|finding| self.nodes.contains(&finding.node));
        found
    }

    async fn found(&self, deep: bool) -> BTreeSet<(Kind, Uuid)> {
        let found = self.findings(deep).await;
        found.iter().map(|finding| (finding.kind, finding.node)).collect()
    }

    async fn placement(&self, method: Method, path: &str, body: Value) {
        self.api
            .call(Service::Placement, method, path, &body)
            .await
            .unwrap();
    }

    async fn ironic(&self, method: Method, path: &str, body: Value) {
        self.api.call(Service::Ironic, method, path, &body).await.unwrap();
    }

    /// The provider has this, and nothing else.
    async fn inventory(&self, node: Uuid, class: Option<&str>, total: u32, reserved: u32) {
        let mut new = self.api.inventories(node).await.unwrap();
        let one = json!({ "total": total, "reserved": reserved, "max_unit": 1 });
        new["inventories"] = class.map_or_else(|| json!({}), |class| json!({ class: one }));
        self.api.set_inventories(node, &new).await.unwrap();
    }

    async fn allocate(&self, node: Uuid, consumer: Uuid, project: &str, kind: &str) {
        let body = json!({
            "allocations": { node.to_string(): { "resources": { self.class.as_str(): 1 } } },
            "project_id": project, "user_id": GUARD_USER, "consumer_generation": null, "consumer_type": kind,
        });
        self.placement(Method::PUT, &format!("/allocations/{consumer}"), body)
            .await;
    }

    async fn plant(&self, kind: Kind, node: Uuid) {
        let (stranger, class) = (stranger(node), Some(self.class.as_str()));
        let provider = format!("/resource_providers/{node}");
        match kind {
            Kind::OfferedNotFree => {
                let body = json!({ "reason": "on fire" });
                self.ironic(Method::PUT, &format!("/v1/nodes/{node}/maintenance"), body)
                    .await;
            }
            Kind::FreeNotOffered => self.inventory(node, class, 1, 1).await,
            Kind::ProviderMissing => self.placement(Method::DELETE, &provider, Value::Null).await,
            Kind::ProviderOrphaned => {
                self.ironic(Method::DELETE, &format!("/v1/nodes/{node}"), Value::Null)
                    .await
            }
            Kind::WrongResourceClass => {
                let former = format!("{}_FORMER", self.class);
                self.placement(Method::PUT, &format!("/resource_classes/{former}"), Value::Null)
                    .await;
                self.inventory(node, Some(&former), 1, 0).await;
            }
            Kind::NoResourceClass => {
                self.patch(node, json!({ "op": "remove", "path": "/resource_class" }))
                    .await
            }
            Kind::AllocationWithoutInstance => self.allocate(node, stranger, "somebody", "INSTANCE").await,
            Kind::InstanceWithoutAllocation => {
                for holder in self.api.holders(node).await.unwrap() {
                    self.api.drop_consumer(holder).await.unwrap();
                }
                self.inventory(node, class, 1, 1).await;
            }
            Kind::TwoConsumers => {
                self.inventory(node, class, 2, 0).await;
                self.allocate(node, stranger, "somebody", "INSTANCE").await;
                self.inventory(node, class, 1, 0).await;
            }
            Kind::InventoryEmpty => self.inventory(node, None, 0, 0).await,
            Kind::StaleHold => {
                let ours = guard_consumer(NodeUuid(node), stranger).0;
                self.allocate(node, ours, GUARD_PROJECT, "UNPROVISION").await;
            }
        }
    }

    /// The tag, on the node and its provider.
    async fn tag(&self, node: Uuid) {
        self.placement(Method::PUT, &format!("/traits/{DEFAULT_TAG}"), Value::Null)
            .await;
        let generation = &self.api.inventories(node).await.unwrap()["resource_provider_generation"];
        let traits = json!({ "resource_provider_generation": generation, "traits": [DEFAULT_TAG] });
        self.placement(Method::PUT, &format!("/resource_providers/{node}/traits"), traits)
            .await;
        self.ironic(
            Method::PUT,
            &format!("/v1/nodes/{node}/traits/{DEFAULT_TAG}"),
            Value::Null,
        )
        .await;
    }

    /// What the finding tells a person to do.
    async fn by_hand(&self, finding: &Finding) {
        let (node, class) = (finding.node, Some(self.class.as_str()));
        match finding.kind {
            Kind::ProviderMissing => {
                let body = json!({ "uuid": node, "name": node });
                self.placement(Method::POST, "/resource_providers", body).await;
                self.inventory(node, class, 1, 0).await;
            }
            Kind::WrongResourceClass | Kind::InventoryEmpty => self.inventory(node, class, 1, 0).await,
            Kind::NoResourceClass => {
                let named = self.class.trim_start_matches("CUSTOM_");
                self.patch(
                    node,
                    json!({ "op": "add", "path": "/resource_class", "value": named }),
                )
                .await;
            }
            Kind::InstanceWithoutAllocation => {
                self.inventory(node, class, 1, 0).await;
                self.allocate(node, finding.instance.unwrap(), "tenant", "INSTANCE")
                    .await;
            }
            Kind::TwoConsumers => self.api.drop_consumer(stranger(node)).await.unwrap(),
            other => panic!("{other} is repaired by the program"),
        }
    }

    async fn patch(&self, node: Uuid, change: Value) {
        self.ironic(Method::PATCH, &format!("/v1/nodes/{node}"), json!([change]))
            .await;
    }

    async fn repair(&self, finding: &Finding, guard: &Guard) {
        match finding.remedy {
            Remedy::ByHand => self.by_hand(finding).await,
            Remedy::Guard | Remedy::Release => {
                let nodes = [NodeUuid(finding.node)];
                let pass = guard.attend_to(&nodes, &CancellationToken::new()).await.unwrap();
                assert!(
                    pass.failed.is_empty() && pass.findings.is_empty(),
                    "{finding:?}: {pass:?}"
                );
            }
            _ => {
                let mended = self.cloud.mend(finding, &self.asked(true).await.rules).await;
                assert_eq!(mended.unwrap(), Mended::Done, "{finding:?}");
            }
        }
    }
}

fn stranger(node: Uuid) -> Uuid {
    Uuid::new_v5(&node, b"stranger")
}

async fn site(prefix: &str, count: usize, in_use: usize) -> (Site, Vec<Uuid>) {
    let lab = Lab::from_env().unwrap_or_else(|error| panic!("{error}"));
    let seeded = lab.seed(count, prefix, &[]).await.unwrap();
    let deployed = lab.deploy(&seeded[..in_use]).await.unwrap();
    let proxies = lab.proxies().await.unwrap();
    let nodes = seeded.iter().map(|node| node.uuid).collect::<Vec<_>>();
    let site = Site {
        api: lab.api().await.unwrap(),
        cloud: lab.openstack(&proxies, &Setup::default()).await.unwrap(),
        journal: Arc::new(MemoryJournal::new()),
        class: deployed[0].class().unwrap().to_string(),
        nodes: nodes.iter().copied().collect(),
        _proxies: proxies,
    };
    (site, nodes)
}

#[tokio::test]
async fn c23_planted_drift_is_found_and_repaired() {
    let (site, nodes) = site(&Lab::unique("drift"), 13, 2).await;
    assert_eq!(
        site.found(true).await,
        BTreeSet::new(),
        "nothing is wrong at first"
    );
    let about_instances = [Kind::InstanceWithoutAllocation, Kind::TwoConsumers];
    let others = Kind::ALL
        .into_iter()
        .filter(|kind| !about_instances.contains(kind));
    let tagged = nodes[12];
    let planted = about_instances.into_iter().chain(others).zip(nodes);
    let mut planted = planted.collect::<BTreeSet<_>>();
    for (kind, node) in &planted {
        site.plant(*kind, *node).await;
    }
    // A hold, and a tag.
    site.tag(tagged).await;
    planted.insert((Kind::StaleHold, tagged));
    // Placement tells the age of an allocation in whole seconds.
    tokio::time::sleep(std::time::Duration::from_millis(1100)).await;
    assert_eq!(site.found(true).await, planted);
    assert_eq!(site.found(true).await, planted, "two runs are equal");
    let shallow = site.found(false).await;
    assert!(
        planted
            .iter()
            .filter(|(kind, _)| !kind.is_deep())
            .all(|found| shallow.contains(found)),
        "{shallow:?}"
    );
    assert!(
        shallow.contains(&(Kind::StaleHold, tagged)),
        "a tag takes no look at each provider"
    );

    let cloud = Arc::new(site.cloud.clone());
    let guard = Guard::new(
        Adapters {
            cloud: Arc::clone(&cloud) as _,
            fleet: cloud,
            journal: Arc::clone(&site.journal),
            clock: Arc::new(SystemClock),
            observer: Arc::new(Unobserved),
            identity: None,
            events: None,
            servers: None,
        },
        Settings::default(),
    );
    for finding in site.findings(true).await {
        site.repair(&finding, &guard).await;
    }
    assert_eq!(site.found(true).await, BTreeSet::new(), "clean afterwards");
    assert_eq!(site.found(false).await, BTreeSet::new());
}
