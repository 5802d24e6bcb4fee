//! What a delete costs and shows on the real services: one line of JSON for an unfixed Nova and for each strategy.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use futures::future::join_all;
use serde_json::{Value, json};
use tokio::time::Instant;
use unprovision_testkit::lab::order::Promise;
use unprovision_testkit::lab::sampler::Samples;
use unprovision_testkit::lab::{Deployed, Setup};
use uuid::Uuid;

use crate::common::{Scene, strategies, tear_down};

const NODES: usize = 10;
/// As long as they clean, an unfixed Nova's nodes are exposed.
const SHAPE: [&str; 4] = ["--step-seconds", "4", "--knob", "lab_tear_down_seconds=1"];
/// The program's default.
const POLL: Duration = Duration::from_secs(1);

/// Ten nodes at once for each. The lines are printed, and written to `target/lab-measured.json`.
#[tokio::test]
async fn measured() {
    let mut lines = vec![control().await];
    for strategy in strategies() {
        lines.push(ours(strategy).await);
    }
    let text = lines.iter().map(|line| format!("{line}\n")).collect::<String>();
    println!("{text}");
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    std::fs::write(target.join("lab-measured.json"), text).unwrap();
    assert!(lines[0]["exposed_samples"].as_u64().unwrap() > 0, "{}", lines[0]);
    for line in &lines[1..] {
        assert_eq!(line["exposed_samples"], 0, "{line}");
    }
}

/// When a node was freed by its instance, and when it was back, in seconds after the delete.
type Times = BTreeMap<Uuid, (f64, f64)>;

async fn ours(strategy: &'static str) -> Value {
    let scene = Scene::new("measured", NODES, &SHAPE).await;
    let orchestrator = scene
        .orchestrator(Setup {
            poll: POLL,
            ..Setup::default()
        })
        .await;
    let requests = scene
        .nodes
        .iter()
        .map(|node| scene.request(node, strategy))
        .collect::<Vec<_>>();
    let reports = tear_down(&orchestrator, &requests).await.unwrap();
    scene.assert_returned(&reports).await;
    let times = reports.iter().map(|report| {
        (
            report.node.0,
            (report.freed_after_s.unwrap(), report.returned_after_s.unwrap()),
        )
    });
    let (times, nodes) = (times.collect(), scene.nodes.clone());
    let plain = scene.assert_unexposed().await;
    if !Promise::of(strategy).tag {
        return line(strategy, &nodes, &plain, &times);
    }
    let mut line = line(strategy, &nodes, &plain.forbidding_the_tag(), &times);
    let exposed = nodes.iter().map(|node| plain.exposed(node.node)).sum::<usize>();
    line["exposed_samples_plain"] = exposed.into();
    line
}

/// Deletes as Nova does before its fix: the allocation goes as soon as the instance has left the node.
async fn control() -> Value {
    let scene = Scene::new("measured", NODES, &SHAPE).await;
    let (api, began) = (&scene.api, Instant::now());
    let delete = async |node: &Deployed| {
        api.provision(node.node, "deleted").await.unwrap();
        wait_for(api, node, |shown| shown["instance_uuid"].is_null()).await;
        api.drop_consumer(node.instance).await.unwrap();
        let freed = began.elapsed().as_secs_f64();
        wait_for(api, node, |shown| shown["provision_state"] == "available").await;
        (node.node, (freed, began.elapsed().as_secs_f64()))
    };
    let times = join_all(scene.nodes.iter().map(delete))
        .await
        .into_iter()
        .collect();
    let nodes = scene.nodes.clone();
    line("nova-unfixed", &nodes, &scene.samples().await, &times)
}

async fn wait_for(api: &unprovision_testkit::lab::Api, node: &Deployed, is: impl Fn(&Value) -> bool) {
    while !is(&api.node(node.node).await.unwrap()) {
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
}

fn line(strategy: &str, nodes: &[Deployed], samples: &Samples, times: &Times) -> Value {
    let of = |number: &dyn Fn(Uuid) -> f64| spread(nodes.iter().map(|node| number(node.node)).collect());
    let ms = |time: Duration| time.as_secs_f64() * 1000.0;
    // Where an unfixed Nova gave the node away while it was dirty, there is nothing to wait for: 0.
    let again = |node| samples.offered_again_after(node).map_or(f64::NAN, ms);
    json!({
        "strategy": strategy,
        "nodes": nodes.len(),
        "samples": samples.count(),
        "resolution_ms": ms(samples.resolution()).round(),
        "exposed_samples": nodes.iter().map(|node| samples.exposed(node.node)).sum::<usize>(),
        "exposed_ms": of(&|node| ms(samples.exposed_for(node))),
        "freed_after_s": of(&|node| times[&node].0),
        "returned_after_s": of(&|node| times[&node].1),
        "available_to_offered_ms": of(&again),
    })
}

/// The median and the largest; of numbers that are not all there, of those that are.
fn spread(mut numbers: Vec<f64>) -> Value {
    numbers.retain(|number| number.is_finite());
    numbers.sort_by(f64::total_cmp);
    let round = |number: &f64| (number * 100.0).round() / 100.0;
    json!({ "median": numbers.get(numbers.len() / 2).map(round), "max": numbers.last().map(round) })
}
