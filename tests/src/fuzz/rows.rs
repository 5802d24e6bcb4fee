//! Rows of the journal: whatever is in them, nothing is decided that the veto would not let pass.

use std::sync::LazyLock;

use ironic_client::{NodeUuid, ProvisionState};
use unprovision::cloud::{Cloud, Reads};
use unprovision::core::{Case, CaseId, Decision, Entry, Observation, check, decide, undo};
use unprovision::strategy;
use uuid::Uuid;

use super::RUNTIME;
use crate::rig;
use crate::sandbox::Sandbox;

/// One journal of every kind of entry.
const GOLDEN: &str = include_str!("../../../unprovision/tests/core/journal.golden.jsonl");

/// The same node in every state that matters, with the instance and without it.
static SEEN: LazyLock<Vec<Observation>> = LazyLock::new(|| {
    use ProvisionState as P;
    let sandbox = Sandbox::builder().nodes(1).deployed(1).build();
    let Some((node, _)) = sandbox.deployed().first().copied() else {
        return Vec::new();
    };
    let cloud = rig::cloud(&sandbox);
    let Ok(seen) = RUNTIME.block_on(cloud.observe(NodeUuid(node), Reads::everything())) else {
        return Vec::new();
    };
    let mut all = vec![Observation {
        node: None,
        ..seen.clone()
    }];
    for state in [
        P::Active,
        P::Deleting,
        P::CleanWait,
        P::Available,
        P::CleanFailed,
        P::Error,
        P::Manageable,
    ] {
        for carries in [true, false] {
            let mut seen = seen.clone();
            if let Some(node) = &mut seen.node {
                node.provision_state = state.clone();
                node.instance_uuid = node.instance_uuid.filter(|_| carries);
            }
            all.push(seen);
        }
    }
    all
});

pub(super) fn seeds() -> Vec<Vec<u8>> {
    vec![GOLDEN.as_bytes().to_vec()]
}

pub(super) fn journal(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else {
        return;
    };
    let entries = text
        .lines()
        .filter_map(|line| serde_json::from_str::<Entry>(line).ok());
    let entries = entries.collect::<Vec<_>>();
    let Some(case) = Case::fold(CaseId(Uuid::from_u128(1)), &entries) else {
        return;
    };
    let now = entries.iter().map(|entry| entry.at).max().unwrap_or_default();
    let _ = (case.by_hand(), case.remaining(), case.may_hold());
    for seen in SEEN.iter() {
        let _ = undo(&case, seen);
        for strategy in strategy::ALL {
            if let Decision::Act(action) = decide(*strategy, &case, seen, now) {
                assert_eq!(check(&case, seen, &action), Ok(()), "{action}");
            }
        }
    }
}
