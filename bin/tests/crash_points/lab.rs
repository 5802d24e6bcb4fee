//! On the real services: all single points, a node for each.

use std::time::Duration;

use serde_json::json;
use tempfile::TempDir;
use unprovision::NodeUuid;
use unprovision::core::guard_consumer;
use unprovision::strategy;
use unprovision_testkit::lab::order::{self, Before, Promise};
use unprovision_testkit::lab::sampler::Sampling;
use unprovision_testkit::lab::{Api, Deployed, Lab, Proxies};

use crate::support::{Ran, bare, finish_within};
use crate::{End, at_each_point, end, nothing_is_open};

/// How long a process may take on a busy machine.
const LIMIT: Duration = Duration::from_secs(240);
/// More than any strategy has points.
const NODES: usize = 60;

struct Scene {
    lab: Lab,
    api: Api,
    proxies: Proxies,
    strategy: &'static str,
}

impl Scene {
    async fn dies(&self, node: &Deployed, point: u32) -> End {
        let home = tempfile::tempdir().unwrap();
        let ended = end(&self.carry_on(&home, node, Some(point)).await);
        let End::Died(at) = &ended else { return ended };
        let what = format!("{}, {at}", self.strategy);
        self.carry_on(&home, node, None).await.assert_code(0);

        let seen = self.api.node(node.node).await.unwrap();
        assert_eq!(seen["provision_state"], "available", "{what}");
        let holders = self.api.holders(node.node).await.unwrap();
        assert!(holders.is_empty(), "{what}: {holders:?}");
        let class = node.class().unwrap();
        let inventories = self.api.inventories(node.node).await.unwrap();
        assert_eq!(
            inventories["inventories"][class.as_str()]["reserved"],
            0,
            "{what}"
        );
        let guard = guard_consumer(NodeUuid(node.node), node.instance).0;
        assert_eq!(
            self.api.consumer(guard).await.unwrap()["allocations"],
            json!({}),
            "{what}"
        );
        let log = self.proxies.recorder.exchanges();
        assert_eq!(order::accepted(&log, node.node, "deleted"), 1, "{what}");
        let before = Before {
            node: node.node,
            instance: node.instance,
            reserved: 0,
        };
        let faults = order::faults_of(&log, &before, Promise::of(self.strategy));
        assert!(faults.is_empty(), "{what}: {faults:#?}");
        println!("{what}: recovered");
        ended
    }

    /// What was begun is carried on, what never was is asked for again.
    async fn carry_on(&self, home: &TempDir, node: &Deployed, dies_at: Option<u32>) -> Ran {
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
            .envs(self.lab.environment(&self.proxies));
        if let Some(point) = dies_at {
            command.env("CRASH_AT", point.to_string());
        }
        finish_within(command.spawn().unwrap(), LIMIT).await
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes long: `tests/measure crash` runs it"]
async fn every_single_point_is_recovered_from_on_real_services() {
    for strategy in strategy::ALL {
        let lab = Lab::from_env().unwrap_or_else(|error| panic!("{error}"));
        let seeded = lab
            .seed(NODES, &Lab::unique("point"), &["--step-seconds", "2"])
            .await
            .unwrap();
        let nodes = lab.deploy(&seeded).await.unwrap();
        let scene = Scene {
            api: lab.api().await.unwrap(),
            proxies: lab.proxies().await.unwrap(),
            strategy: strategy.name(),
            lab,
        };
        let class = nodes[0].class().unwrap();
        let sampling = Sampling::start(scene.api.clone(), &nodes[0].resource_class, class.as_str());
        let points = at_each_point(async |point| scene.dies(&nodes[point as usize - 1], point).await).await;
        let samples = sampling.stop().await.unwrap();
        let samples = if strategy.uses_tag() {
            samples.forbidding_the_tag()
        } else {
            samples
        };
        for node in &nodes {
            assert_eq!(
                samples.exposed(node.node),
                0,
                "{}, {}",
                strategy.name(),
                node.name
            );
        }
        println!(
            "{}: {points} points recovered, {} samples, none exposed",
            strategy.name(),
            samples.count()
        );
    }
}
