//! On the real services: all single points, a node for each.

use std::sync::Mutex;

use http::Method;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::Semaphore;
use unprovision::NodeUuid;
use unprovision::core::{DEFAULT_TAG, guard_consumer};
use unprovision::strategy;
use unprovision_session::Service;
use unprovision_testkit::lab::order::{self, Before, Promise};
use unprovision_testkit::lab::sampler::Sampling;
use unprovision_testkit::lab::{Api, Deployed, Lab, Proxies};
use unprovision_testkit::proxy::Exchange;

use crate::support::{Ran, bare, finish_within};
use crate::{End, LIMIT, NOWHERE, after, assert_recovered, at_each, has_died, nothing_is_open, points};

/// More than any strategy has points, with some that are tried again.
const NODES: usize = 64;
/// How many runs are under way at the same time.
const SIDE_BY_SIDE: usize = 8;

/// A write that the node's lock refuses is sent again, and not for ever.
const LOCKED: usize = 3;

struct Scene {
    lab: Lab,
    api: Api,
    proxies: Proxies,
    strategy: &'static str,
}

/// The undisturbed run: its points, how many writes were accepted, and what it leaves.
struct Undisturbed {
    points: Vec<String>,
    accepted: usize,
    left: Value,
}

impl Scene {
    async fn undisturbed(&self, node: &Deployed) -> Undisturbed {
        let home = tempfile::tempdir().unwrap();
        let ran = self.carry_on(&home, node, NOWHERE).await;
        let points = points(&ran.assert_code(0).stderr);
        let (accepted, refused) = self.writes(node);
        let tags = points
            .iter()
            .filter(|point| point.contains("after the request: PUT /traits/"));
        assert_eq!(
            after(&points, "request"),
            accepted + refused + tags.count(),
            "{points:#?}"
        );
        Undisturbed {
            points,
            accepted,
            left: self.left(node).await,
        }
    }

    async fn dies(&self, node: &Deployed, point: &str, undisturbed: &Undisturbed) -> End {
        let home = tempfile::tempdir().unwrap();
        if !has_died(&self.carry_on(&home, node, point).await, point) {
            return End::Survived;
        }
        let what = format!("{}, dies {point}", self.strategy);
        let ran = self.carry_on(&home, node, NOWHERE).await;
        assert_eq!(ran.code, Some(0), "{what}: {}", ran.stderr);

        assert_eq!(self.left(node).await, undisturbed.left, "{what}");
        let log = self.proxies.recorder.exchanges();
        assert_eq!(order::accepted(&log, node.node, "deleted"), 1, "{what}");
        let before = Before {
            node: node.node,
            instance: node.instance,
            reserved: 0,
        };
        let faults = order::faults_of(&log, &before, Promise::of(self.strategy));
        assert!(faults.is_empty(), "{what}: {faults:#?}");
        let writes @ (accepted, refused) = self.writes(node);
        let most = undisturbed.accepted + 1;
        assert!(
            accepted <= most && refused <= LOCKED,
            "{what}: {writes:?} instead of {most}"
        );
        self.carry_on(&home, node, NOWHERE).await.assert_code(0);
        assert_eq!(self.writes(node), writes, "{what}: all was done already");
        End::Died(points(&ran.stderr))
    }

    /// What was begun is carried on, what never was is asked for again.
    async fn carry_on(&self, home: &TempDir, node: &Deployed, dies_at: &str) -> Ran {
        let file = home.path().join("journal.sqlite");
        let in_use = self.api.node(node.node).await.unwrap()["provision_state"] == "active";
        let instance = node.instance.to_string();
        let name = node.name.as_str();
        let delete = [
            "delete",
            name,
            "--instance",
            &instance,
            "--yes",
            "--strategy",
            self.strategy,
        ];
        let mut command = bare(if nothing_is_open(&file).await && in_use {
            &delete
        } else {
            &["resume"]
        });
        command
            .env("HOME", home.path())
            .env("UNPROVISION_JOURNAL", &file)
            .env("CRASH_AT", dies_at)
            .envs(self.lab.environment(&self.proxies));
        finish_within(command.spawn().unwrap(), LIMIT).await
    }

    /// All that a run can change of the node and its provider.
    async fn left(&self, node: &Deployed) -> Value {
        let seen = self.api.node(node.node).await.unwrap();
        let inventories = self.api.inventories(node.node).await.unwrap();
        let path = format!("/resource_providers/{}/traits", node.node);
        let traits = self
            .api
            .call(Service::Placement, Method::GET, &path, &Value::Null);
        let hold = self.api.consumer(ours(node)[2].parse().unwrap()).await.unwrap();
        json!({
            "state": seen["provision_state"],
            "instance": seen["instance_uuid"],
            "maintenance": seen["maintenance"],
            "node traits": seen["traits"],
            "inventories": inventories["inventories"],
            "traits": traits.await.unwrap()["traits"],
            "holders": self.api.holders(node.node).await.unwrap(),
            "held by us": hold["allocations"],
        })
    }

    /// How many writes for the node were accepted, and how many were not.
    fn writes(&self, node: &Deployed) -> (usize, usize) {
        let log = self.proxies.recorder.exchanges();
        let writes = log
            .iter()
            .filter(|exchange| exchange.is_write() && is_for(exchange, node));
        let (accepted, refused): (Vec<_>, Vec<_>) = writes.partition(|exchange| exchange.is_accepted());
        (accepted.len(), refused.len())
    }
}

/// The identifiers of the node, its instance, and our hold.
fn ours(node: &Deployed) -> [String; 3] {
    let hold = guard_consumer(NodeUuid(node.node), node.instance).0;
    [node.node, node.instance, hold].map(|id| id.to_string())
}

fn is_for(exchange: &Exchange, node: &Deployed) -> bool {
    let body = exchange.call.body.to_string();
    let named = |id: &String| exchange.call.path.contains(id) || body.contains(id);
    ours(node).iter().any(named)
}

/// All writes were for one of these nodes, or let Placement know the tag.
fn assert_nothing_foreign(log: &[Exchange], nodes: &[Deployed]) {
    let tag = format!("/traits/{DEFAULT_TAG}");
    let foreign = log.iter().filter(|exchange| {
        exchange.is_write() && exchange.call.path != tag && !nodes.iter().any(|node| is_for(exchange, node))
    });
    let foreign = foreign.map(|exchange| &exchange.call.path).collect::<Vec<_>>();
    assert!(foreign.is_empty(), "{foreign:#?}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes long: `tests/measure crash` runs it"]
async fn every_single_point_is_recovered_from_on_real_services() {
    for strategy in strategy::ALL {
        let name = strategy.name();
        let lab = Lab::from_env().unwrap_or_else(|error| panic!("{error}"));
        let flags = ["--step-seconds", "2", "--knob", "lab_tear_down_seconds=2"];
        let seeded = lab.seed(NODES, &Lab::unique("point"), &flags).await.unwrap();
        let nodes = lab.deploy(&seeded).await.unwrap();
        let scene = Scene {
            api: lab.api().await.unwrap(),
            proxies: lab.proxies().await.unwrap(),
            strategy: name,
            lab,
        };
        let class = nodes[0].class().unwrap();
        let sampling = Sampling::start(scene.api.clone(), &nodes[0].resource_class, class.as_str());
        let fresh = Mutex::new(nodes.iter());
        let next = || fresh.lock().unwrap().next().expect("more points than nodes");
        let undisturbed = &scene.undisturbed(next()).await;
        let run = async |point: String| scene.dies(next(), &point, undisturbed).await;
        let all = at_each(&Semaphore::new(SIDE_BY_SIDE), &undisturbed.points, run).await;
        let samples = sampling.stop().await.unwrap();
        let samples = if strategy.uses_tag() {
            samples.forbidding_the_tag()
        } else {
            samples
        };
        for node in &nodes {
            assert_eq!(samples.exposed(node.node), 0, "{name}, {}", node.name);
        }
        assert_nothing_foreign(&scene.proxies.recorder.exchanges(), &nodes);
        println!(
            "delete on real services, {name}: single points: {all}; {} samples, none exposed",
            samples.count()
        );
        assert_recovered([all]);
    }
}
