//! Nova as shipped: a server that is claimed while a pass of the tracker runs is forgotten by it, and deleting it
//! before the next pass exposes its node.

use unprovision_testkit::lab::nova::Rule;

use crate::common::{Stage, secs};
use crate::guard::Guard;
use crate::story::{alone, compare, guarded};

/// The next pass would find the node and reserve it: building, deleting and cleaning have to fit in between.
const INTERVAL: u64 = 60;
const SHAPE: [&str; 4] = ["--step-seconds", "20", "--knob", "lab_tear_down_seconds=1"];

#[tokio::test]
async fn servers_claimed_during_a_pass_of_todays_nova() {
    let groups: [(&str, usize, &[&str]); 3] = [
        ("alone", 2, &SHAPE),
        ("guarded", 4, &SHAPE),
        // Last in each pass. In a large cloud there are hundreds of them, here they are slow.
        ("others", 4, &[]),
    ];
    let (stage, groups) = Stage::new(Rule::Current, secs(INTERVAL), &groups).await;
    let [control, ours, others] = &groups[..] else {
        unreachable!()
    };
    stage.fail_cleaning_of_the_last(ours).await;
    stage.slow_visits(&others.nodes, secs(3));

    stage.visit(&others.nodes).await;
    let without = stage.servers(control).await;
    let without = alone(&stage, control, &without).await;

    let guard = Guard::start(&stage).await;
    stage.visit(&others.nodes).await;
    let with = stage.servers(ours).await;
    let with = guarded(&stage, guard, ours, &with).await;
    compare(&stage, &without, &with);
}
