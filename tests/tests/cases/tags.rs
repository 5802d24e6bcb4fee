//! C14 Nova's tracker replaces a provider's traits; and the windows of the strategies that leave one.

use unprovision::core::{CannotOpen, DEFAULT_TAG, Outcome};
use unprovision::orchestrator::RunError;
use unprovision_testkit::rig::Rig;
use unprovision_testkit::sandbox::config::NovaRule;
use unprovision_testkit::sandbox::ironic::State;
use unprovision_testkit::sandbox::judge::{self, Exposure, Query};
use unprovision_testkit::sandbox::log::Change;
use unprovision_testkit::sandbox::{Builder, Fault, Sandbox, Service};
use uuid::Uuid;

use crate::common::{
    assert_clean, assert_unexposed, is_tagged, only, outcome, requests, secs, strategies, writes,
};

const TAGS: &str = "trait-tagging";
const FORBIDDING: Query<'static> = Query {
    forbids: Some(DEFAULT_TAG),
};

/// A node with some traits of its own; its provider has them too, and those of Nova.
fn one(traits: usize) -> Builder {
    Sandbox::builder()
        .nodes(1)
        .deployed(1)
        .teardown(secs(4))
        .cleaning(secs(1200))
        .each_node(move |_, node| node.traits = (0..traits).map(|n| format!("CUSTOM_RACK_{n}")).collect())
}

/// The traits of the node, and those of its provider.
fn traits(sandbox: &Sandbox, node: Uuid) -> [Vec<String>; 2] {
    sandbox.with(|world, _| {
        let on_node = world.node(node).unwrap().traits.iter().cloned().collect();
        let on_provider = world.provider(node).unwrap().traits.iter().cloned().collect();
        [on_node, on_provider]
    })
}

/// How often the tag went missing on the provider between its first appearance and the first `available`.
fn lost(sandbox: &Sandbox, node: Uuid) -> usize {
    let mut tagged = false;
    let mut times = 0;
    for entry in sandbox.log().iter() {
        match &entry.change {
            Change::Traits { provider, traits } if *provider == node => {
                let now = traits.iter().any(|name| name == DEFAULT_TAG);
                times += usize::from(tagged && !now);
                tagged = now;
            }
            Change::Node {
                node: uuid,
                after: Some(facts),
                ..
            } if *uuid == node && tagged && facts.state == State::Available => break,
            _ => {}
        }
    }
    times
}

/// Twenty minutes of cleaning with a pass each minute: the tag is never missing, and the traits are as before.
#[tokio::test(start_paused = true)]
async fn c14_the_tag_outlives_novas_passes() {
    for rule in [NovaRule::Old, NovaRule::Current] {
        for forgetful in [false, true] {
            let sandbox = one(3).nova(rule).configure(move |config| {
                if forgetful {
                    config.nova.cache_age = secs(0);
                }
            });
            let rig = Rig::new(sandbox.build());
            let (node, _) = only(&rig.sandbox);
            tokio::time::sleep(secs(130)).await;
            let before = traits(&rig.sandbox, node);
            let reports = rig.tear_down(&requests(&rig, TAGS)).await.unwrap();
            assert_eq!(outcome(&reports[0]), Outcome::Returned, "{rule:?}: {reports:?}");
            assert_eq!(lost(&rig.sandbox, node), 0, "{rule:?}, {forgetful}");
            assert_clean(&rig.sandbox, node, TAGS);
            tokio::time::sleep(secs(600)).await;
            assert_eq!(traits(&rig.sandbox, node), before, "{rule:?}, {forgetful}");
            assert_clean(&rig.sandbox, node, TAGS);
        }
    }
}

/// Ironic allows 50 traits: the tag is one of them, or nothing is begun.
#[tokio::test(start_paused = true)]
async fn c14_a_node_has_room_for_the_tag_or_is_refused() {
    let rig = Rig::new(one(49).build());
    let (node, _) = only(&rig.sandbox);
    let before = traits(&rig.sandbox, node);
    let reports = rig.tear_down(&requests(&rig, TAGS)).await.unwrap();
    assert_eq!(outcome(&reports[0]), Outcome::Returned, "{reports:?}");
    assert_eq!(traits(&rig.sandbox, node), before);
    assert_clean(&rig.sandbox, node, TAGS);

    let rig = Rig::new(one(50).build());
    let refused = rig.tear_down(&requests(&rig, TAGS)).await.unwrap_err();
    assert!(
        matches!(refused, RunError::CannotOpen(CannotOpen::TooManyTraits { .. })),
        "{refused}"
    );
    assert_eq!(writes(&rig.sandbox), 0);
}

/// What was there before is not ours: it stays, and the node with it.
#[tokio::test(start_paused = true)]
async fn c14_a_tag_that_was_there_before_stays() {
    let tag = || DEFAULT_TAG.to_owned();
    let sandbox = one(0)
        .each_node(move |_, node| node.traits = [tag()].into())
        .build();
    let node = only(&sandbox).0;
    sandbox.with(|world, _| world.edit_provider(node, |provider| provider.traits.extend([tag()])));
    let rig = Rig::new(sandbox.clone());
    let before = traits(&sandbox, node);
    let report = rig.tear_down(&requests(&rig, TAGS)).await.unwrap().remove(0);
    assert_eq!((outcome(&report), report.held), (Outcome::Returned, false));
    assert!(report.reason.contains("left as it was"), "{}", report.reason);
    assert_eq!(traits(&sandbox, node), before);
    assert_unexposed(&sandbox, node, TAGS);
}

/// Somebody takes the tag away: the provider has it back at the next look, the node as soon as its lock is free.
#[tokio::test(start_paused = true)]
async fn c14_a_tag_that_is_lost_is_set_again() {
    for agent in [false, true] {
        let sandbox = if agent {
            one(2).agent().build()
        } else {
            one(2).build()
        };
        let rig = Rig::new(sandbox.clone());
        let (node, _) = only(&sandbox);
        let before = traits(&sandbox, node);
        let requests = requests(&rig, TAGS);
        let spoil = async {
            tokio::time::sleep(secs(300)).await;
            sandbox.with(|world, _| {
                world.edit_node(node, |node| {
                    node.traits.remove(DEFAULT_TAG);
                });
                world.edit_provider(node, |provider| {
                    provider.traits.remove(DEFAULT_TAG);
                });
            });
            tokio::time::sleep(secs(7)).await;
            let [on_node, on_provider] = traits(&sandbox, node);
            assert!(on_provider.iter().any(|name| name == DEFAULT_TAG), "{agent}");
            // A node that is cleaned by a conductor is locked for as long as that takes.
            assert_eq!(on_node.iter().any(|name| name == DEFAULT_TAG), agent);
        };
        let (reports, ()) = tokio::join!(rig.tear_down(&requests), spoil);
        assert_eq!(outcome(&reports.unwrap()[0]), Outcome::Returned, "{agent}");
        assert_eq!(traits(&sandbox, node), before, "{agent}");
        let exposure = FORBIDDING.exposure(&sandbox.log(), node);
        assert!(
            exposure.windows.len() == 1 && exposure.total <= secs(6),
            "from the loss to our next look: {exposure:?}"
        );
    }
}

/// The tag is on record with the case: another one in the settings does not orphan it.
#[tokio::test(start_paused = true)]
async fn c14_a_case_keeps_the_tag_that_it_was_begun_with() {
    use tokio_util::sync::CancellationToken;
    use unprovision::orchestrator::Until;
    let rig = Rig::new(one(1).build());
    let (node, _) = only(&rig.sandbox);
    let before = traits(&rig.sandbox, node);
    let mut requests = requests(&rig, TAGS);
    requests[0].tag = Some("CUSTOM_DIRTY".parse().unwrap());
    let cases = rig.open(&requests).await.unwrap();
    let stop = CancellationToken::new();
    rig.orchestrator.run(&cases, Until::Accepted, &stop).await;
    requests[0].tag = None;
    let next = rig.restarted();
    let taken = [(cases[0], next.limits(secs(7200)))];
    let reports = next.orchestrator.resume(&taken, Until::Ended, &stop).await;
    assert_eq!(outcome(reports[0].as_ref().unwrap()), Outcome::Returned);
    assert_eq!(traits(&rig.sandbox, node), before);
    let dirty = Query {
        forbids: Some("CUSTOM_DIRTY"),
    };
    assert!(dirty.exposure(&rig.sandbox.log(), node).is_none());
    assert!(!FORBIDDING.exposure(&rig.sandbox.log(), node).is_none());
}

/// Ironic refuses the tear-down for good: no tag is left.
#[tokio::test(start_paused = true)]
async fn c14_what_is_refused_is_untagged() {
    let sandbox = one(2).build();
    let refused = Fault::on(Service::Ironic)
        .method(http::Method::PUT)
        .path("/v1/nodes/*/states/provision")
        .status(
            http::StatusCode::FORBIDDEN,
            r#"{"error_message": "Access was denied"}"#,
        );
    sandbox.fault(refused);
    let rig = Rig::new(sandbox.clone());
    let (node, instance) = only(&sandbox);
    let before = traits(&sandbox, node);
    let report = rig.tear_down(&requests(&rig, TAGS)).await.unwrap().remove(0);
    assert_eq!(
        (outcome(&report), report.held),
        (Outcome::Blocked, false),
        "{report:?}"
    );
    assert_eq!(traits(&sandbox, node), before);
    assert_eq!(sandbox.with(|world, _| world.holders(node)), [instance]);
}

/// What `trait-tagging` declares: other queries see the node while it is cleaned, those that forbid the tag do not.
#[tokio::test(start_paused = true)]
async fn the_window_of_trait_tagging_is_open_to_other_queries_only() {
    let rig = Rig::new(one(0).build());
    let (node, _) = only(&rig.sandbox);
    rig.tear_down(&requests(&rig, TAGS)).await.unwrap();
    assert_clean(&rig.sandbox, node, TAGS);
    let others = judge::exposure(&rig.sandbox.log(), node);
    assert!(others.total >= secs(1200), "{others:?}");
}

/// What it declares beside Nova: a pass that has read the node before it was tagged takes the tag from the provider, once, until
/// our next look.
#[tokio::test(start_paused = true)]
async fn the_window_of_trait_tagging_beside_a_pass_that_began_before() {
    let sandbox = one(0).nova(NovaRule::Old).configure(|config| {
        config.nova.per_node = secs(20);
        config.nova.cache_age = secs(0);
    });
    let rig = Rig::new(sandbox.build());
    let (node, _) = only(&rig.sandbox);
    let first_pass = rig.sandbox.with(|world, _| world.config.nova.first_pass);
    // Off the beat of our looks, so that the window has a length.
    tokio::time::sleep(first_pass + secs(63)).await;
    rig.tear_down(&requests(&rig, TAGS)).await.unwrap();
    assert_eq!(lost(&rig.sandbox, node), 1);
    let exposure = FORBIDDING.exposure(&rig.sandbox.log(), node);
    assert!(
        exposure.windows.len() == 1 && exposure.total <= secs(6) && !exposure.total.is_zero(),
        "{exposure:?}"
    );
    tokio::time::sleep(secs(120)).await;
    assert!(!is_tagged(&rig.sandbox, node));
}

/// The server is deleted in Nova while the node is cleaned, before a pass of the tracker has seen either.
async fn deleted_meanwhile(strategy: &str, rule: NovaRule) -> Exposure {
    let rig = Rig::new(one(0).nova(rule).build());
    let (node, instance) = only(&rig.sandbox);
    let requests = requests(&rig, strategy);
    let delete = async {
        tokio::time::sleep(secs(20)).await;
        rig.sandbox.with(|world, now| world.nova_delete(instance, now));
    };
    let (reports, ()) = tokio::join!(rig.tear_down(&requests), delete);
    let report = reports.unwrap().remove(0);
    assert_eq!(outcome(&report), Outcome::Returned, "{strategy}: {report:?}");
    judge::exposure(&rig.sandbox.log(), node)
}

/// What `wait-for-available` declares: whoever else drops the instance's allocation opens the window.
#[tokio::test(start_paused = true)]
async fn the_window_of_wait_for_available_opens_when_nova_deletes_the_server() {
    let waiting = deleted_meanwhile("wait-for-available", NovaRule::Old).await;
    assert!(!waiting.is_none(), "the declared window must be found");
    let held = deleted_meanwhile("hand-over", NovaRule::Old).await;
    assert!(held.is_none(), "{held:?}");
}

/// As long as Nova leaves the server alone, its passes open no window, whatever the strategy.
#[tokio::test(start_paused = true)]
async fn novas_passes_alone_open_no_window() {
    for strategy in strategies().filter(|strategy| *strategy != "reserve-on-delete") {
        for rule in [NovaRule::Old, NovaRule::Current] {
            let rig = Rig::new(one(0).nova(rule).build());
            let (node, _) = only(&rig.sandbox);
            tokio::time::sleep(secs(130)).await;
            let report = rig.tear_down(&requests(&rig, strategy)).await.unwrap().remove(0);
            assert_eq!(
                outcome(&report),
                Outcome::Returned,
                "{strategy}, {rule:?}: {report:?}"
            );
            assert_clean(&rig.sandbox, node, strategy);
        }
    }
}
