//! Nova's rule as it was before 26.1: a node in use is not reserved, so whoever deletes a server that has been there
//! for a while exposes its node until the next pass of the tracker.

use unprovision_testkit::lab::nova::Rule;

use crate::common::{Stage, secs};
use crate::guard::Guard;
use crate::story::{alone, compare, guarded};

/// In a pass under the old rule Nova reserves what is cleaned; so between two passes there is room for a cleaning.
const INTERVAL: u64 = 20;
const SHAPE: [&str; 4] = ["--step-seconds", "12", "--knob", "lab_tear_down_seconds=2"];

#[tokio::test]
async fn settled_servers_under_the_old_rule() {
    let groups: [(&str, usize, &[&str]); 2] = [("alone", 2, &SHAPE), ("guarded", 4, &SHAPE)];
    let (stage, groups) = Stage::new(Rule::Old, secs(INTERVAL), &groups).await;
    let [control, ours] = &groups[..] else {
        unreachable!()
    };
    stage.fail_cleaning_of_the_last(ours).await;
    let (without, with) = tokio::join!(stage.servers(control), stage.servers(ours));
    stage.pass().await;
    let without = alone(&stage, control, &without).await;
    let guard = Guard::start(&stage).await;
    let with = guarded(&stage, guard, ours, &with).await;
    compare(&stage, &without, &with);
}
