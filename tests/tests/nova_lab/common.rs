//! What the cases share: a Nova with nodes of several classes, and what happens to the servers on them.

use std::collections::BTreeSet;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use placement_client::ResourceClass;
use tokio::time::{Instant, sleep};
use unprovision_testkit::lab::exposure::{Exposure, exposures};
use unprovision_testkit::lab::nova::{Compute, Nova, Rule, Server};
use unprovision_testkit::lab::sampler::Sampling;
use unprovision_testkit::lab::tracker::{self, SlowVisits};
use unprovision_testkit::lab::{Api, Lab, Proxies, Seeded};
use unprovision_testkit::proxy::Mark;
use uuid::Uuid;

/// How long anything may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(180);
const OFTEN: Duration = Duration::from_millis(250);

pub(crate) fn secs(n: u64) -> Duration {
    Duration::from_secs(n)
}

/// Asks until the answer is yes; returns how long it took.
pub(crate) async fn until<F: Future<Output = bool>>(what: &str, mut ask: impl FnMut() -> F) -> Duration {
    let began = Instant::now();
    while !ask().await {
        assert!(began.elapsed() < PATIENCE, "in vain: {what}");
        sleep(OFTEN).await;
    }
    began.elapsed()
}

/// Nodes of one class, and the flavor for it.
pub(crate) struct Group {
    pub(crate) nodes: Vec<Seeded>,
    pub(crate) class: ResourceClass,
    pub(crate) flavor: String,
}

/// A server on a node.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Placed {
    pub(crate) server: Uuid,
    pub(crate) node: Uuid,
}

/// How a deletion by Nova went.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deletion {
    pub(crate) node: Uuid,
    /// From the request until Nova did not know the server any more.
    pub(crate) gone_after: Duration,
}

/// A real Nova, with nova-compute started for this test.
pub(crate) struct Stage {
    pub(crate) lab: Lab,
    pub(crate) nova: Nova,
    pub(crate) api: Api,
    pub(crate) proxies: Proxies,
    nodes: BTreeSet<Uuid>,
    began: Instant,
}

impl Stage {
    /// Nodes for each of these (name, count, flags), then nova-compute, which knows them all when this returns.
    pub(crate) async fn new(
        rule: Rule,
        interval: Duration,
        groups: &[(&str, usize, &[&str])],
    ) -> (Self, Vec<Group>) {
        Self::with(Compute::new(rule, interval), groups).await
    }

    /// The same, with a nova-compute that is started in some other way.
    pub(crate) async fn with(how: Compute, groups: &[(&str, usize, &[&str])]) -> (Self, Vec<Group>) {
        let began = Instant::now();
        let lab = Lab::with_nova_from_env().unwrap_or_else(|error| panic!("{error}"));
        let (api, nova) = (lab.api().await.unwrap(), lab.nova().await.unwrap());
        let proxies = lab.proxies_of_nova().await.unwrap();
        let mut seeded = Vec::new();
        for (name, count, flags) in groups {
            let nodes = lab.seed(*count, &Lab::unique(name), flags).await.unwrap();
            let class = ResourceClass::of_node_class(&nodes[0].resource_class).unwrap();
            let flavor = nova.flavor(&class).await.unwrap();
            seeded.push(Group { nodes, class, flavor });
        }
        println!("{:6.1} s  nodes are there", began.elapsed().as_secs_f64());
        lab.compute(&how).await.unwrap();
        let all = seeded.iter().flat_map(|group| &group.nodes);
        let nodes = all.map(|node| node.uuid).collect();
        let stage = Self {
            lab,
            nova,
            api,
            proxies,
            nodes,
            began,
        };
        stage.say("nova-compute runs");
        until("Nova knows all nodes", async || {
            stage
                .nova
                .nodes()
                .await
                .is_ok_and(|known| stage.nodes.is_subset(&known))
        })
        .await;
        stage.say("Nova knows all nodes");
        (stage, seeded)
    }

    /// Says what comes now, and when.
    pub(crate) fn say(&self, what: &str) {
        println!("{:6.1} s  {what}", self.began.elapsed().as_secs_f64());
    }

    /// The end of the log.
    pub(crate) fn now(&self) -> Mark {
        let log = self.proxies.recorder.exchanges();
        let sent = log.last().map(|last| last.sent);
        sent.unwrap_or(Mark {
            seq: 0,
            at: Duration::ZERO,
        })
    }

    /// Waits until the tracker has been at all nodes, from now on.
    pub(crate) async fn pass(&self) {
        let now = self.now();
        until("the tracker's pass", async || {
            tracker::has_passed(&self.proxies.recorder.exchanges(), &self.nodes, now)
        })
        .await;
        self.say("a pass is over");
    }

    /// Visits to these nodes take their time from now on.
    pub(crate) fn slow_visits(&self, nodes: &[Seeded], each: Duration) {
        let slow = SlowVisits::new(nodes.iter().map(|node| node.uuid), each);
        slow.set(true);
        self.proxies.recorder.interfere(Arc::new(slow));
    }

    /// Waits until the tracker begins a visit to one of these nodes, from now on.
    pub(crate) async fn visit(&self, nodes: &[Seeded]) {
        let now = self.now();
        until("the tracker's visit", async || {
            let log = self.proxies.recorder.exchanges();
            let mut visits = log.iter().filter(|exchange| exchange.sent > now);
            visits.any(|exchange| {
                let visited = tracker::visited(&exchange.call);
                nodes.iter().any(|node| Some(node.uuid) == visited)
            })
        })
        .await;
        self.say("a pass is under way");
    }

    /// The next cleaning of the group's last node fails.
    pub(crate) async fn fail_cleaning_of_the_last(&self, group: &Group) {
        let last = group.nodes.last().unwrap();
        self.lab
            .knob(&last.name, &["lab_clean_failures=1"])
            .await
            .unwrap();
    }

    /// A server on each node of a group, all at the same time.
    pub(crate) async fn servers(&self, group: &Group) -> Vec<Placed> {
        self.servers_on(group, &group.nodes).await
    }

    /// A server on each of these nodes of a group, all at the same time.
    pub(crate) async fn servers_on(&self, group: &Group, nodes: &[Seeded]) -> Vec<Placed> {
        let each = nodes
            .iter()
            .map(|node| self.server(&group.flavor, Some(node.uuid)));
        join_all(each).await
    }

    /// A server, where it is wanted. Just after nova-compute has started it may take more than one attempt.
    pub(crate) async fn server(&self, flavor: &str, on: Option<Uuid>) -> Placed {
        for _ in 0..4 {
            let server = self.nova.create("lab", flavor, on).await.unwrap();
            let built = self.built(server).await;
            if let Some(node) = built.node.filter(|_| built.status == "ACTIVE") {
                return Placed { server, node };
            }
            println!("no server on {on:?}: {:?}", built.fault);
            self.nova.delete(server).await.unwrap();
            sleep(secs(5)).await;
        }
        panic!("no server on {on:?}");
    }

    /// Waits until Nova has built the server, or failed to.
    pub(crate) async fn built(&self, server: Uuid) -> Server {
        let began = Instant::now();
        loop {
            let shown = self.nova.server(server).await.unwrap().unwrap();
            if shown.status != "BUILD" {
                return shown;
            }
            assert!(began.elapsed() < PATIENCE, "{server} is not built");
            sleep(OFTEN).await;
        }
    }

    /// Deletes servers through Nova, all at the same time; they must be gone in the end.
    pub(crate) async fn delete(&self, servers: &[Placed]) -> Vec<Deletion> {
        self.delete_or(servers, async |_, server| panic!("{:?}", server.fault))
            .await
    }

    /// The same, and this is done with a server that ends in `ERROR` instead.
    pub(crate) async fn delete_or(
        &self,
        servers: &[Placed],
        in_error: impl AsyncFn(&Placed, &Server),
    ) -> Vec<Deletion> {
        let one = async |placed: &Placed| {
            let began = Instant::now();
            self.nova.delete(placed.server).await.unwrap();
            until("the server is gone", async || {
                let server = self.nova.server(placed.server).await.unwrap();
                if let Some(server) = server.as_ref().filter(|server| server.status == "ERROR") {
                    in_error(placed, server).await;
                }
                server.is_none()
            })
            .await;
            Deletion {
                node: placed.node,
                gone_after: began.elapsed(),
            }
        };
        join_all(servers.iter().map(one)).await
    }

    /// Waits until all these nodes are in this state.
    pub(crate) async fn until_state(&self, nodes: impl IntoIterator<Item = Uuid>, state: &str) {
        for node in nodes {
            until(&format!("{node} is {state}"), async || {
                self.api.node(node).await.unwrap()["provision_state"] == state
            })
            .await;
        }
    }

    /// Waits until all these nodes have left their instances.
    pub(crate) async fn until_left(&self, nodes: impl IntoIterator<Item = Uuid>) {
        for node in nodes {
            until(&format!("{node} has left its instance"), async || {
                self.api.node(node).await.unwrap()["instance_uuid"].is_null()
            })
            .await;
        }
    }

    /// Waits until all these nodes are offered.
    pub(crate) async fn until_offered(&self, group: &Group, nodes: &BTreeSet<Uuid>) {
        until("the nodes are offered", async || {
            nodes.is_subset(&self.api.candidates(group.class.as_str()).await.unwrap())
        })
        .await;
    }

    /// Waits until the node is offered, or somebody has got it already; how long that took.
    pub(crate) async fn until_to_be_had(&self, group: &Group, node: Uuid) -> Duration {
        until("the node is to be had", async || {
            let offered = self.api.candidates(group.class.as_str()).await.unwrap();
            offered.contains(&node) || self.api.node(node).await.unwrap()["provision_state"] != "available"
        })
        .await
    }

    /// Looks at all nodes of a group from now on.
    pub(crate) fn sampling(&self, group: &Group) -> Sampling {
        // Through the proxies: each look at Ironic tells the log's judge as well whether a node is free.
        let api = self.api.through(&self.proxies);
        Sampling::start(api, &group.nodes[0].resource_class, group.class.as_str())
    }

    /// When this node was exposed since then, by the order of all that was said.
    pub(crate) fn exposures(&self, node: Uuid, since: Mark) -> Vec<Exposure> {
        let all = exposures(&self.proxies.recorder.exchanges(), node);
        all.into_iter()
            .filter(|exposure| exposure.until > since.at)
            .collect()
    }

    /// How long it was exposed in all.
    pub(crate) fn exposed(&self, node: Uuid, since: Mark) -> Duration {
        self.exposures(node, since).iter().map(Exposure::length).sum()
    }
}
