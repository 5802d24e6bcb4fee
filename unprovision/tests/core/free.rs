//! When a node is free: the whole truth table, beside Nova's rule.

use ironic_client::{Node, PowerState, ProvisionState};
use unprovision::core::{is_free, why_not_free, why_not_free_for_nova};

use crate::build::{STRANGER, node};

/// `_node_resources_unavailable` and `_node_resources_used` of Nova's Ironic driver, in its own words.
fn nova_would_offer(node: &Node) -> bool {
    let bad_power = matches!(&node.power_state, None | Some(PowerState::Error));
    let unavailable = node.maintenance
        || bad_power
        || (node.instance_uuid.is_none() && node.provision_state.as_str() != "available");
    let used = node.instance_uuid.is_some();
    !unavailable && !used
}

fn every_node() -> Vec<Node> {
    let states = ProvisionState::NAMED
        .into_iter()
        .chain(["moonwalking", "null", ""].map(ProvisionState::from));
    let powers = [
        None,
        Some(PowerState::On),
        Some(PowerState::Off),
        Some(PowerState::Error),
        Some(PowerState::Other("rebooting".to_owned())),
    ];
    let mut all = Vec::new();
    for state in states {
        for power in &powers {
            for bits in 0..8_u8 {
                all.push(Node {
                    power_state: power.clone(),
                    instance_uuid: (bits & 1 != 0).then_some(STRANGER),
                    maintenance: bits & 2 != 0,
                    retired: bits & 4 != 0,
                    ..node(state.clone())
                });
            }
        }
    }
    all
}

#[test]
fn a_node_is_free_in_exactly_three_of_all_cases() {
    let free = every_node().into_iter().filter(is_free).collect::<Vec<_>>();
    let powers = free.iter().map(|node| node.power_state.clone().unwrap());
    let expected = [
        PowerState::On,
        PowerState::Off,
        PowerState::Other("rebooting".to_owned()),
    ];
    assert_eq!(powers.collect::<Vec<_>>(), expected);
    for node in free {
        assert_eq!(node.provision_state, ProvisionState::Available);
        assert!(node.instance_uuid.is_none() && !node.maintenance && !node.retired);
    }
}

#[test]
fn the_rule_is_novas_except_for_retired_nodes() {
    for node in every_node() {
        assert_eq!(
            why_not_free_for_nova(&node).is_none(),
            nova_would_offer(&node),
            "{node:?}"
        );
        assert_eq!(
            is_free(&node),
            nova_would_offer(&node) && !node.retired,
            "{node:?}"
        );
    }
}

#[test]
fn the_reason_is_told_in_words() {
    let available = || node(ProvisionState::Available);
    let reasons = [
        (node(ProvisionState::Cleaning), "the node is `cleaning`"),
        (node("moonwalking".into()), "the node is `moonwalking`"),
        (
            Node {
                maintenance: true,
                ..available()
            },
            "the node is in maintenance",
        ),
        (
            Node {
                power_state: None,
                ..available()
            },
            "the node's power is unknown or in error",
        ),
        (
            Node {
                retired: true,
                ..available()
            },
            "the node is retired",
        ),
    ];
    for (node, words) in reasons {
        assert_eq!(why_not_free(&node).unwrap().to_string(), words);
    }
    let carries = Node {
        instance_uuid: Some(STRANGER),
        ..available()
    };
    let words = why_not_free(&carries).unwrap().to_string();
    assert_eq!(words, format!("the node carries instance {STRANGER}"));
}
