//! Dying before and after each journal append and each write, in each kind of run.

use unprovision::core::TearDownRequest;
use unprovision_testkit::rig::Rig;
use unprovision_testkit::sandbox::config::NovaRule;
use unprovision_testkit::sandbox::{Builder, Sandbox};

use crate::common::{
    assert_clean, assert_returned, carry_on, mortal, our_writes, secs, strategies, tear_downs, until_it_dies,
};
use crate::plan::{Plan, Point};

/// A kind of run, undisturbed or not.
struct Story {
    name: &'static str,
    cloud: fn() -> Builder,
    ask: fn(&mut TearDownRequest),
    /// How many tear-downs Ironic accepts per node.
    tear_downs: usize,
}

fn one() -> Builder {
    Sandbox::builder()
        .nodes(1)
        .deployed(1)
        .teardown(secs(2))
        .cleaning(secs(8))
}

const PLAIN: Story = Story {
    name: "plain",
    cloud: one,
    ask: |_| {},
    tear_downs: 1,
};

const BESIDE_NOVA: Story = Story {
    name: "beside today's Nova",
    cloud: || one().nova(NovaRule::Current),
    ask: |_| {},
    tear_downs: 1,
};

const CLEANED_BY_AN_AGENT: Story = Story {
    name: "cleaned by an agent",
    cloud: || one().agent(),
    ask: |_| {},
    tear_downs: 1,
};

const THREE_NODES: Story = Story {
    name: "three nodes",
    cloud: || one().nodes(3).deployed(3),
    ask: |_| {},
    tear_downs: 1,
};

const TORN_DOWN_AGAIN: Story = Story {
    name: "the first tear-down fails",
    cloud: || one().each_node(|_, node| node.behaviour.teardown_failures = 1),
    ask: |request| request.limits.retry_error = 1,
    tear_downs: 2,
};

const CLEANED_AGAIN: Story = Story {
    name: "the first cleaning fails",
    cloud: || one().each_node(|_, node| node.behaviour.clean_failures = 1),
    ask: |request| request.limits.reclean = 1,
    tear_downs: 1,
};

fn requests(rig: &Rig, strategy: &str, story: &Story) -> Vec<TearDownRequest> {
    let deployed = rig.sandbox.deployed().into_iter();
    deployed
        .map(|(node, instance)| {
            let mut request = rig.request(node, instance, strategy);
            // A case that gets stuck shall not be polled for days.
            request.limits = rig.limits(secs(3600));
            (story.ask)(&mut request);
            request
        })
        .collect()
}

/// The run dies at one point, and another process carries on `later`.
async fn die_and_carry_on(story: &Story, strategy: &str, at: (Point, usize), later: u64, undisturbed: usize) {
    let what = format!(
        "{strategy}, {}, {:?} {}, carried on after {later} s",
        story.name, at.0, at.1
    );
    let rig = Rig::new((story.cloud)().build());
    let requests = requests(&rig, strategy, story);
    let plan = Plan::at(at.0, at.1);
    until_it_dies(&mortal(&rig, &plan), &plan, &requests).await;
    rig.sandbox.clear_faults();
    tokio::time::sleep(secs(later)).await;

    let reports = carry_on(&rig, &requests).await;
    assert_returned(&reports, &what);
    for request in &requests {
        let node = request.node.0;
        assert_clean(&rig.sandbox, node, &what);
        assert_eq!(
            tear_downs(&rig.sandbox, node),
            story.tear_downs,
            "{what}: accepted tear-downs"
        );
    }
    let writes = our_writes(&rig.sandbox);
    assert!(
        writes <= undisturbed + 2 * requests.len(),
        "{what}: {writes} writes instead of {undisturbed}"
    );

    assert!(
        rig.restarted()
            .orchestrator
            .open_cases()
            .await
            .unwrap()
            .is_empty(),
        "{what}"
    );
    assert_returned(&carry_on(&rig, &requests).await, &what);
    assert_eq!(our_writes(&rig.sandbox), writes, "{what}: all was done already");
    tokio::time::sleep(secs(300)).await;
    for request in &requests {
        assert_clean(
            &rig.sandbox,
            request.node.0,
            &format!("{what}, five minutes later"),
        );
    }
}

/// All points, for each append and each write.
async fn die_everywhere(story: &Story) {
    die_at_each(story, &Point::OF_APPENDS, &Point::OF_WRITES).await;
}

async fn die_at_each(story: &Story, of_appends: &[Point], of_writes: &[Point]) {
    for strategy in strategies() {
        let rig = Rig::new((story.cloud)().build());
        let requests = requests(&rig, strategy, story);
        let plan = Plan::undisturbed();
        let reports = mortal(&rig, &plan).tear_down(&requests).await.unwrap();
        assert_returned(&reports, strategy);
        let (appends, writes) = (plan.appends(), plan.writes());
        let sent = our_writes(&rig.sandbox);
        // The trait of a tag is created with the write that needs it.
        assert!(
            appends >= 2 * writes && writes >= 2 && sent >= writes,
            "{appends} {writes} {sent}"
        );

        for nth in 1..=appends {
            for point in of_appends {
                die_and_carry_on(story, strategy, (*point, nth), 0, sent).await;
            }
            die_and_carry_on(story, strategy, (Point::DiesAfterAppend, nth), 120, sent).await;
        }
        for nth in 1..=writes {
            for point in of_writes {
                die_and_carry_on(story, strategy, (*point, nth), 0, sent).await;
            }
            die_and_carry_on(story, strategy, (Point::DiesAfterWrite, nth), 120, sent).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_plain_run_may_die_anywhere() {
    die_everywhere(&PLAIN).await;
}

#[tokio::test(start_paused = true)]
async fn a_run_beside_nova_may_die_anywhere() {
    die_everywhere(&BESIDE_NOVA).await;
}

#[tokio::test(start_paused = true)]
async fn a_run_with_an_agent_may_die_anywhere() {
    die_everywhere(&CLEANED_BY_AN_AGENT).await;
}

#[tokio::test(start_paused = true)]
async fn a_run_of_three_nodes_may_die_anywhere() {
    die_at_each(
        &THREE_NODES,
        &[Point::DiesBeforeAppend],
        &[Point::DiesWhileWriteIsUnderWay],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_repeated_tear_down_may_die_anywhere() {
    die_everywhere(&TORN_DOWN_AGAIN).await;
}

#[tokio::test(start_paused = true)]
async fn a_cure_of_a_failed_cleaning_may_die_anywhere() {
    die_everywhere(&CLEANED_AGAIN).await;
}
