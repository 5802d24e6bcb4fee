//! What a source of events changes: how soon the guard looks, and nothing else. C20 without a broker.

use std::sync::Arc;
use std::time::Duration;

use unprovision::NodeUuid;
use unprovision::events::{Hint, Said, Sender, channel};
use unprovision::guard::Settings;
use unprovision_testkit::sandbox::config::NovaRule;
use unprovision_testkit::sandbox::{Fault, Sandbox, Service, judge};
use uuid::Uuid;

use crate::common::{Scene, assert_clean, assert_ironic_untouched, cloud, delete_all, only, secs, writes};

/// So long that no look and no sweep of the clock comes to a test's help.
const NEVER: Duration = Duration::from_secs(1_000_000);

fn hint(node: Uuid) -> Said {
    Said::Hint(Hint {
        node: NodeUuid(node),
        reason: "a test".to_owned(),
        said_at: None,
    })
}

/// A guard that looks only when it is told to.
fn told(sandbox: &Sandbox) -> (Scene, Sender) {
    let settings = Settings {
        look: NEVER,
        sweep: NEVER,
        ..Settings::default()
    };
    with(sandbox, settings)
}

fn with(sandbox: &Sandbox, settings: Settings) -> (Scene, Sender) {
    let (sender, source) = channel(100_000);
    let scene = Scene {
        events: Some(Arc::new(source)),
        ..Scene::with(sandbox, settings)
    };
    (scene, sender)
}

/// So many requests of the guard until now.
fn asked(sandbox: &Sandbox) -> usize {
    let log = sandbox.log();
    log.requests().filter(|line| line.who == "guard").count()
}

/// Every change is said once, soon after it: nothing is exposed, and nobody waits for a look.
#[tokio::test(start_paused = true)]
async fn c20_hints_are_enough() {
    for rule in [NovaRule::Off, NovaRule::Old] {
        let sandbox = cloud(3, rule).build();
        let (scene, sender) = told(&sandbox);
        let (start, servers) = scene
            .while_guarding(async {
                tokio::time::sleep(secs(2)).await;
                let start = sandbox.now();
                let servers = delete_all(&sandbox);
                for _ in 0..140 {
                    tokio::time::sleep(Duration::from_millis(500)).await;
                    for (node, _) in &servers {
                        sender.say(hint(*node)).await;
                    }
                }
                (start, servers)
            })
            .await;
        for (node, _) in servers {
            assert_clean(&sandbox, node, "hints only");
            let again = judge::offered_again_after(&sandbox.log(), node, start).unwrap();
            assert!(again <= secs(1), "{rule:?}: offered {again:?} after it was free");
        }
        assert_ironic_untouched(&sandbox);
    }
}

/// A source that never says anything, or that is never there, changes nothing.
#[tokio::test(start_paused = true)]
async fn c20_without_a_word_looks_and_sweeps_do() {
    for deaf in [false, true] {
        let sandbox = cloud(3, NovaRule::Old).build();
        let (scene, sender) = with(&sandbox, Settings::default());
        let servers = scene
            .while_guarding(async {
                if deaf {
                    sender.say(Said::Deaf("no broker".to_owned())).await;
                    sender.say(Said::Deaf("no broker".to_owned())).await;
                }
                tokio::time::sleep(secs(2)).await;
                let servers = delete_all(&sandbox);
                tokio::time::sleep(secs(150)).await;
                servers
            })
            .await;
        for (node, _) in servers {
            assert_clean(&sandbox, node, "silence");
        }
        assert_eq!(scene.ear.heard("hears nothing"), usize::from(deaf), "told once");
    }
}

/// What is said is no reason to write: not for nodes in use or free, nor for those that do not exist, however often.
#[tokio::test(start_paused = true)]
async fn lies_change_nothing() {
    let sandbox = Sandbox::builder()
        .nodes(6)
        .deployed(3)
        .nova(NovaRule::Current)
        .build();
    let (scene, sender) = with(&sandbox, Settings::default());
    scene
        .while_guarding(async {
            for round in 0..50_u128 {
                for (node, _) in sandbox.deployed() {
                    sender.say(hint(node)).await;
                }
                sender.say(hint(Uuid::from_u128(round))).await;
                sender.say(Said::Unreadable("garbage".to_owned())).await;
                sender.say(Said::Other).await;
                tokio::time::sleep(secs(2)).await;
            }
        })
        .await;
    assert_eq!(writes(&sandbox), [""; 0]);
    assert_eq!(scene.ear.heard("cannot"), 0, "{:?}", scene.ear.lines);
    assert_eq!(
        scene.ear.heard("nobody can read"),
        6,
        "the 1st, 2nd, 4th, 8th, 16th, 32nd"
    );
}

/// Ten thousand messages at once, about a few nodes or about many, cost a handful of looks.
#[tokio::test(start_paused = true)]
async fn c20_a_storm_costs_a_handful_of_looks() {
    let sandbox = Sandbox::builder().nodes(1100).deployed(1000).build();
    let nodes = sandbox
        .deployed()
        .into_iter()
        .map(|(node, _)| node)
        .collect::<Vec<_>>();
    let (scene, sender) = told(&sandbox);
    for some in [1, 5, 1000] {
        scene
            .while_guarding(async {
                tokio::time::sleep(secs(30)).await;
                let before = asked(&sandbox);
                for number in 0..10_000 {
                    assert!(sender.try_say(hint(nodes[number % some])));
                }
                tokio::time::sleep(secs(30)).await;
                let cost = asked(&sandbox) - before;
                assert!((1..=20).contains(&cost), "{cost} requests for {some} nodes");
            })
            .await;
    }
}

/// More nodes than are remembered: everything is looked at instead, and that is counted.
#[tokio::test(start_paused = true)]
async fn c20_more_hints_than_are_remembered_become_a_sweep() {
    let sandbox = cloud(1, NovaRule::Off).build();
    let (node, _) = only(&sandbox);
    let (scene, sender) = told(&sandbox);
    // Ironic is so slow that hints pile up behind the first.
    let slow = Fault::on(Service::Ironic).path("/v1/nodes/*").from("guard");
    let guard = scene.guard();
    scene
        .with_guard(&guard, async {
            tokio::time::sleep(secs(30)).await;
            sandbox.fault(slow.delay(secs(20)));
            sender.say(hint(node)).await;
            tokio::time::sleep(secs(1)).await;
            delete_all(&sandbox);
            for number in 0..10_001 {
                sender.say(hint(Uuid::from_u128(number))).await;
            }
            tokio::time::sleep(secs(200)).await;
        })
        .await;
    let heard = guard.status().events.unwrap();
    assert_eq!(heard.dropped, 10_001, "{heard}");
    assert!(scene.ear.heard("HandOver") > 0, "the sweep has found it");
}

/// Something is said while the worker looks elsewhere: it looks once more, and does not wait for the next message.
#[tokio::test(start_paused = true)]
async fn what_is_said_while_a_worker_is_busy_is_not_lost() {
    // The moment at which the one message comes, over the whole time that looks and writes take.
    for delay in (0..=2000).step_by(50) {
        let sandbox = cloud(1, NovaRule::Off)
            .teardown(secs(0))
            .cleaning(secs(1))
            .build();
        let (node, _) = only(&sandbox);
        for service in [Service::Ironic, Service::Placement] {
            sandbox.fault(Fault::on(service).from("guard").delay(Duration::from_millis(100)));
        }
        let (scene, sender) = told(&sandbox);
        scene
            .while_guarding(async {
                tokio::time::sleep(secs(10)).await;
                delete_all(&sandbox);
                sender.say(hint(node)).await;
                tokio::time::sleep(Duration::from_millis(1050)).await;
                // From here on it is available, and this is the last message ever.
                tokio::time::sleep(Duration::from_millis(delay)).await;
                sender.say(hint(node)).await;
                tokio::time::sleep(secs(30)).await;
            })
            .await;
        assert_clean(&sandbox, node, &format!("{delay} ms later"));
    }
}

/// A connection that comes, or comes back, may have missed something: everything is looked at, but not all the time.
#[tokio::test(start_paused = true)]
async fn c20_every_new_connection_is_followed_by_a_full_sweep() {
    let sandbox = cloud(2, NovaRule::Off).build();
    let (scene, sender) = told(&sandbox);
    let sweeps = || {
        let log = sandbox.log();
        let guards = log.requests().filter(|line| line.who == "guard");
        guards
            .filter(|line| line.path.starts_with("/v1/nodes?") && !line.path.contains("provision_state="))
            .count()
    };
    scene
        .while_guarding(async {
            tokio::time::sleep(secs(10)).await;
            assert_eq!(sweeps(), 2, "one at the start, one since it listens");
            // The message about this was lost with the connection.
            delete_all(&sandbox);
            sender.say(Said::Deaf("gone".to_owned())).await;
            tokio::time::sleep(secs(1)).await;
            sender.say(Said::Listens).await;
            tokio::time::sleep(secs(1)).await;
            assert_eq!(sweeps(), 3);
            assert_eq!(scene.ear.heard("HandOver"), 2, "both are held");
            for _ in 0..100 {
                sender.say(Said::Deaf("flaps".to_owned())).await;
                sender.say(Said::Listens).await;
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            assert!(sweeps() <= 6, "{} sweeps", sweeps());
        })
        .await;
}

/// A quiet cloud has nothing to say. One whose nodes change has; when it does not, that is told once, and its end too.
#[tokio::test(start_paused = true)]
async fn c20_silence_is_a_sign_only_where_nodes_change() {
    let sandbox = cloud(2, NovaRule::Off).build();
    let settings = Settings {
        look: secs(10),
        ..Settings::default()
    };
    let (scene, sender) = with(&sandbox, settings);
    let guard = scene.guard();
    scene
        .with_guard(&guard, async {
            tokio::time::sleep(secs(3600)).await;
            assert_eq!(scene.ear.heard("says nothing"), 0, "nothing has happened");
            let (node, _) = delete_all(&sandbox).remove(0);
            tokio::time::sleep(secs(60)).await;
            assert_eq!(scene.ear.heard("says nothing"), 1);
            assert!(
                guard.status().to_string().contains("SILENT"),
                "{}",
                guard.status()
            );
            tokio::time::sleep(secs(900)).await;
            assert_eq!(scene.ear.heard("says nothing"), 1, "told once");
            sender.say(hint(node)).await;
            tokio::time::sleep(secs(20)).await;
            assert_eq!(scene.ear.heard("says again"), 1);
        })
        .await;
    let heard = guard.status().events.unwrap();
    assert_eq!((heard.messages, heard.hints, heard.silent), (1, 1, false));
}

#[tokio::test(start_paused = true)]
async fn messages_that_come_late_are_counted() {
    let sandbox = cloud(1, NovaRule::Off).build();
    let (node, _) = only(&sandbox);
    let (scene, sender) = told(&sandbox);
    let guard = scene.guard();
    scene
        .with_guard(&guard, async {
            for age in [0, 10, 31, 3600] {
                let said_at = Some(sandbox.now() - jiff::SignedDuration::from_secs(age));
                let Said::Hint(hint) = hint(node) else { continue };
                sender.say(Said::Hint(Hint { said_at, ..hint })).await;
            }
            tokio::time::sleep(secs(1)).await;
        })
        .await;
    let heard = guard.status().events.unwrap();
    assert_eq!((heard.messages, heard.late), (4, 2), "{heard}");
}
