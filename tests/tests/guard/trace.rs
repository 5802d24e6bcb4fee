//! What a real Ironic has said (`tests/lab/capture`), said again in any order, with losses and doubles: the end is the same.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ironic_client::Notification;
use unprovision::NodeUuid;
use unprovision::events::{Hint, Said, channel};
use unprovision::guard::Settings;
use unprovision_testkit::sandbox::config::NovaRule;
use unprovision_testkit::simulate::Dice;
use uuid::Uuid;

use crate::common::{Scene, assert_clean, assert_ironic_untouched, cloud, secs};

/// Nodes of the sandbox; the lives of the trace are theirs in turn.
const NODES: usize = 2;
/// Orders of each test; there are four.
const ORDERS: u64 = 250;

/// All that the trace says, in its order: whose life it is about, and what.
fn trace() -> Vec<(usize, Notification)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("traces/ironic-39.jsonl");
    let text = std::fs::read_to_string(path).unwrap();
    let mut lives = BTreeMap::new();
    let read = text.lines().map(|line| {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        let message = Notification::parse(line["body"].as_str().unwrap().as_bytes()).unwrap();
        let seen = lives.len();
        let life = *lives.entry(message.node.unwrap()).or_insert(seen);
        (life, message)
    });
    read.collect()
}

/// The same as hints about the nodes of the sandbox.
fn hints(trace: &[(usize, Notification)], nodes: &[Uuid]) -> Vec<Hint> {
    let hint = |(life, message): &(usize, Notification)| Hint {
        node: NodeUuid(nodes[life % nodes.len()]),
        reason: message.to_string(),
        said_at: message.said_at,
    };
    trace.iter().map(hint).collect()
}

/// One order: each message is lost, said once or twice, at any of so many moments.
fn shuffled(hints: &[Hint], moments: u64, dice: &mut Dice) -> BTreeMap<u64, Vec<Hint>> {
    let mut order = BTreeMap::<_, Vec<_>>::new();
    for hint in hints {
        let times = match dice.below(5) {
            0 => 0,
            1..=3 => 1,
            _ => 2,
        };
        for _ in 0..times {
            order.entry(dice.below(moments)).or_default().push(hint.clone());
        }
    }
    order
}

/// The end: who is offered, held by whom, reserved how far. The same for each order, and not one instant of exposure.
async fn replay(seeds: std::ops::Range<u64>) {
    let trace = trace();
    for seed in seeds {
        let mut dice = Dice::of(seed, 0);
        let sandbox = cloud(NODES, NovaRule::Off)
            .teardown(secs(1))
            .cleaning(secs(2))
            .build();
        let servers = sandbox.deployed();
        let nodes = servers.iter().map(|(node, _)| *node).collect::<Vec<_>>();
        let order = shuffled(&hints(&trace, &nodes), 10, &mut dice);
        let deletes = servers.iter().map(|(_, instance)| (dice.below(5), *instance));
        let deletes = deletes.collect::<Vec<_>>();
        let (sender, source) = channel(1000);
        let settings = Settings {
            look: secs(1),
            sweep: secs(5),
            ..Settings::default()
        };
        let scene = Scene {
            events: Some(Arc::new(source)),
            ..Scene::with(&sandbox, settings)
        };
        scene
            .while_guarding(async {
                for moment in 0..10 {
                    tokio::time::sleep(Duration::from_millis(500 + 50 * (seed % 10))).await;
                    for (_, instance) in deletes.iter().filter(|(at, _)| *at == moment) {
                        sandbox.with(|world, now| world.nova_delete(*instance, now));
                    }
                    for hint in order.get(&moment).into_iter().flatten() {
                        sender.say(Said::Hint(hint.clone())).await;
                    }
                }
                tokio::time::sleep(secs(11)).await;
            })
            .await;
        for node in nodes {
            assert_clean(&sandbox, node, &format!("seed {seed}"));
        }
        assert_ironic_untouched(&sandbox);
        let open = unprovision::journal::read_open(&*scene.journal).await.unwrap();
        assert!(open.is_empty(), "seed {seed}: {open:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn c20_a_real_trace_in_any_order_has_the_same_end() {
    replay(0..ORDERS).await;
}

#[tokio::test(start_paused = true)]
async fn c20_a_real_trace_in_any_order_has_the_same_end_again() {
    replay(ORDERS..2 * ORDERS).await;
}

#[tokio::test(start_paused = true)]
async fn c20_a_real_trace_in_any_order_has_the_same_end_once_more() {
    replay(2 * ORDERS..3 * ORDERS).await;
}

#[tokio::test(start_paused = true)]
async fn c20_a_real_trace_in_any_order_has_the_same_end_at_last() {
    replay(3 * ORDERS..4 * ORDERS).await;
}
