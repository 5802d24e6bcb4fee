//! Notifications: whatever is in a message, a node's identifier or a refusal comes out of it, and nothing long.

use ironic_client::Notification;
use serde_json::Value;

/// What a real Ironic has said, in the envelope of oslo.messaging.
const TRACE: &str = include_str!("../../traces/ironic-39.jsonl");
/// As many of them as differ enough.
const SEEDS: usize = 40;
/// What is read of a word at most.
const LONGEST: usize = 128;

pub(super) fn seeds() -> Vec<Vec<u8>> {
    let lines = TRACE
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let bodies = lines.filter_map(|line| line["body"].as_str().map(|body| body.as_bytes().to_vec()));
    bodies.take(SEEDS).collect()
}

pub(super) fn notification(input: &[u8]) {
    match Notification::parse(input) {
        Ok(read) => {
            assert!((1..=LONGEST).contains(&read.event_type.len()), "{read:?}");
            assert!(!format!("{read:?}").is_empty());
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}
