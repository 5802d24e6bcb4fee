//! C16 many nodes; how much the guard asks; that nodes do not wait for each other; two guards.

use std::collections::BTreeMap;

use http::Method;
use unprovision_testkit::sandbox::config::NovaRule;
use unprovision_testkit::sandbox::{Fault, Sandbox, Service, judge};

use crate::common::{Scene, assert_clean, assert_unexposed, cloud, delete_all, only, secs};

/// The guard's requests of a stretch of time, by kind.
fn requests(sandbox: &Sandbox, from: jiff::Timestamp, to: jiff::Timestamp) -> BTreeMap<String, usize> {
    let log = sandbox.log();
    let mut counts = BTreeMap::new();
    let guards = log
        .requests()
        .filter(|line| line.who == "guard" && line.at >= from && line.at < to);
    for line in guards {
        let (path, query) = line.path.split_once('?').unwrap_or((line.path, ""));
        let kind = match (path, query.contains("provision_state=")) {
            ("/v1/nodes", true) => "look",
            ("/v1/nodes", false) => "page",
            ("/resource_providers", _) => "offers",
            _ => "one node",
        };
        *counts.entry(kind.to_owned()).or_default() += 1;
    }
    counts
}

/// So many nodes are on their way, all held: what is asked from then on does not depend on how many they are.
async fn asked_while_on_their_way(nodes: usize) -> BTreeMap<String, usize> {
    let sandbox = cloud(nodes, NovaRule::Off)
        .nodes(1100)
        .cleaning(secs(3600))
        .build();
    let settings = unprovision::guard::Settings {
        // All of them are meant to be held.
        max_held_share: 1.0,
        look: secs(5),
        ..Default::default()
    };
    let scene = Scene::with(&sandbox, settings);
    let (from, to) = scene
        .while_guarding(async {
            delete_all(&sandbox);
            tokio::time::sleep(secs(61)).await;
            let from = sandbox.now();
            tokio::time::sleep(secs(60)).await;
            (from, sandbox.now())
        })
        .await;
    requests(&sandbox, from, to)
}

#[tokio::test(start_paused = true)]
async fn what_is_asked_does_not_grow_with_the_nodes_on_their_way() {
    let few = asked_while_on_their_way(3).await;
    let many = asked_while_on_their_way(1010).await;
    let expected = |looks| {
        BTreeMap::from([("look", looks), ("offers", 1), ("page", 2)].map(|(kind, n)| (kind.to_owned(), n)))
    };
    assert_eq!(few, expected(36), "two pages for 1,100 nodes, one class");
    // One of the three lists has more than a thousand nodes, so it has two pages.
    assert_eq!(many, expected(48));
}

/// C16: a node beyond the first page is seen like all others.
#[tokio::test(start_paused = true)]
async fn c16_nodes_of_all_pages_are_guarded() {
    let sandbox = Sandbox::builder()
        .nodes(1100)
        .deployed(1100)
        .teardown(secs(4))
        .cleaning(secs(30))
        .build();
    let servers = sandbox.deployed();
    let last = [servers[1050], servers[1099], servers[0]];
    Scene::new(&sandbox)
        .while_guarding(async {
            for (_, instance) in last {
                sandbox.with(|world, now| world.nova_delete(instance, now));
            }
            tokio::time::sleep(secs(60)).await;
        })
        .await;
    for (node, _) in last {
        assert_clean(&sandbox, node, "beyond the first page");
    }
}

/// One node's requests take a minute each; the others do not notice.
#[tokio::test(start_paused = true)]
async fn a_busy_node_delays_no_other() {
    let sandbox = cloud(10, NovaRule::Old).build();
    let slow = only(&sandbox).0;
    let path = format!("/resource_providers/{slow}/**");
    sandbox.fault(Fault::on(Service::Placement).path(path).delay(secs(60)));
    let start = sandbox.now();
    let servers = Scene::new(&sandbox)
        .while_guarding(async {
            let servers = delete_all(&sandbox);
            tokio::time::sleep(secs(300)).await;
            servers
        })
        .await;
    for (node, _) in servers.iter().filter(|(node, _)| *node != slow) {
        assert_clean(&sandbox, *node, "beside a slow one");
        let again = judge::offered_again_after(&sandbox.log(), *node, start).unwrap();
        assert!(again <= secs(1), "{again:?}");
    }
}

/// Two guards with a journal each: both recognise each other's holds, nothing is exposed, nothing is left.
#[tokio::test(start_paused = true)]
async fn two_guards_do_no_harm() {
    for rule in [NovaRule::Old, NovaRule::Current] {
        let sandbox = cloud(5, rule).reserved_in_use(false).build();
        let (first, mut second) = (Scene::new(&sandbox), Scene::new(&sandbox));
        second.who = "guard-2";
        let servers = first
            .while_guarding(second.while_guarding(async {
                tokio::time::sleep(secs(3)).await;
                let servers = delete_all(&sandbox);
                tokio::time::sleep(secs(130)).await;
                servers
            }))
            .await;
        for (node, _) in servers {
            assert_clean(&sandbox, node, &format!("{rule:?}"));
        }
    }
}

/// The bug hits hundreds at once, and the cloud answers slowly: those that are seen before Nova lets go are never exposed.
#[tokio::test(start_paused = true)]
async fn hundreds_are_held_before_nova_lets_go() {
    let sandbox = cloud(300, NovaRule::Old).teardown(secs(20)).build();
    for method in [Method::GET, Method::POST, Method::PUT] {
        let slow = Fault::on(Service::Placement).method(method).from("guard");
        sandbox.fault(slow.delay(std::time::Duration::from_millis(50)));
    }
    let settings = unprovision::guard::Settings {
        max_held_share: 1.0,
        ..Default::default()
    };
    let scene = Scene::with(&sandbox, settings);
    let servers = scene
        .while_guarding(async {
            let servers = delete_all(&sandbox);
            tokio::time::sleep(secs(200)).await;
            servers
        })
        .await;
    for (node, _) in servers {
        assert_unexposed(&sandbox, node, "one of hundreds");
        assert_clean(&sandbox, node, "one of hundreds");
    }
}
