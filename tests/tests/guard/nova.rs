//! Rule 10 beside a Nova that can be asked: it is where there is doubt, and nothing is done against its word.

use std::sync::Arc;

use http::StatusCode;
use serde_json::json;
use tokio_util::sync::CancellationToken;
use unprovision::core::Server;
use unprovision::guard::Settings;
use unprovision::servers::{MemoryServers, NovaServers, ServersError};
use unprovision_testkit::sandbox::config::NovaRule;
use unprovision_testkit::sandbox::ironic::State;
use unprovision_testkit::sandbox::nova::Stage;
use unprovision_testkit::sandbox::{Fault, Sandbox, Service};
use uuid::Uuid;

use crate::common::{
    Scene, assert_clean, assert_unexposed, by_operator, cloud, delete_all, edit, only, secs, strategies,
    writes,
};

/// A guard that may ask the sandbox's Nova.
fn asking(sandbox: &Sandbox, strategy: &str, required: bool) -> Scene {
    let settings = Settings {
        strategy: strategy.to_owned(),
        nova_required: required,
        ..Settings::default()
    };
    let mut scene = Scene::with(sandbox, settings);
    let transport = sandbox.transport(Service::Nova, scene.who);
    scene.servers = Some(Arc::new(NovaServers::new(transport)));
    scene
}

/// How often the guard has asked for a server.
fn asked(sandbox: &Sandbox) -> usize {
    let log = sandbox.log();
    let of_servers = log
        .requests()
        .filter(|line| line.service == Service::Nova && line.who == "guard");
    of_servers.filter(|line| !line.path.contains("limit=1")).count()
}

fn holders(sandbox: &Sandbox, node: Uuid) -> Vec<Uuid> {
    sandbox.with(|world, _| world.holders(node))
}

fn undeploy(sandbox: &Sandbox, node: Uuid) {
    let path = format!("PUT /v1/nodes/{node}/states/provision");
    by_operator(sandbox, &path, &json!({ "target": "deleted" }));
}

/// The node seems to leave, is held, and is in use again by the same instance.
async fn leaves_and_is_back(sandbox: &Sandbox, node: Uuid) {
    edit(sandbox, node, |node| node.provision_state = State::Deleting);
    tokio::time::sleep(secs(10)).await;
    sandbox.with(|world, now| {
        world.edit_node(node, |node| {
            node.provision_state = State::Active;
            node.provision_updated_at = Some(now);
        });
    });
    tokio::time::sleep(secs(10)).await;
}

/// An ordinary delete costs no request; where Nova's word is required, one for each write that lifts something.
#[tokio::test(start_paused = true)]
async fn an_ordinary_delete_costs_no_request_unless_novas_word_is_required() {
    for strategy in strategies() {
        for (rule, required) in [
            (NovaRule::Off, false),
            (NovaRule::Current, false),
            (NovaRule::Off, true),
            (NovaRule::Current, true),
        ] {
            let sandbox = cloud(3, rule).build();
            let scene = asking(&sandbox, strategy, required);
            let servers = scene
                .while_guarding(async {
                    let servers = delete_all(&sandbox);
                    tokio::time::sleep(secs(250)).await;
                    servers
                })
                .await;
            let what = format!("{strategy} {rule:?} {required}");
            for (node, _) in servers {
                assert_clean(&sandbox, node, &what);
            }
            // The server is gone by then, so there are two requests: it is not shown, nor in the list of all.
            let expected = if required { 2 * 3 } else { 0 };
            assert_eq!(asked(&sandbox), expected, "{what}");
            let says = if required {
                "before each release"
            } else {
                "where there is doubt"
            };
            assert_eq!(
                scene.ear.heard(&format!("Nova is asked for the server {says}")),
                1,
                "{what}"
            );
        }
    }
}

/// The unit goes back only to a server that is there. If not, it stays with us until somebody has looked, or Nova says otherwise.
#[tokio::test(start_paused = true)]
async fn a_unit_goes_back_only_to_a_server_that_is_there() {
    for strategy in strategies() {
        for (stage, goes_back, told) in [
            (Stage::Active, true, "in use again"),
            (Stage::SoftDeleted, true, "in use again"),
            (Stage::Error, true, "in use again"),
            (Stage::Deleting, false, "Nova is deleting server"),
            (Stage::Deleted, false, "Nova does not know server"),
        ] {
            let sandbox = cloud(1, NovaRule::Off).build();
            let scene = asking(&sandbox, strategy, false);
            let (node, instance) = only(&sandbox);
            let what = format!("{strategy} {stage:?}");
            scene
                .while_guarding(async {
                    sandbox.with(|world, _| world.nova_set(instance, stage));
                    leaves_and_is_back(&sandbox, node).await;
                    let before = writes(&sandbox).len();
                    assert_eq!(before, if goes_back { 2 } else { 1 }, "{what}");
                    tokio::time::sleep(secs(200)).await;
                    assert_eq!(writes(&sandbox).len(), before, "{what}: it changed its mind");
                    assert!(!sandbox.is_offered(node), "{what}");
                    sandbox.with(|world, _| world.nova_set(instance, Stage::Active));
                    tokio::time::sleep(secs(100)).await;
                })
                .await;
            assert_eq!(
                holders(&sandbox, node),
                [instance],
                "{what}: in the end it is there"
            );
            assert_eq!(writes(&sandbox).len(), 2, "{what}");
            assert!(scene.ear.heard(told) >= 1, "{what}: {told}");
            assert_unexposed(&sandbox, node, &what);
        }
    }
}

/// A server that lives on another node by now, as after an evacuation or a rebuild elsewhere, does not get this one back.
#[tokio::test(start_paused = true)]
async fn a_server_that_has_moved_does_not_get_its_old_node_back() {
    let sandbox = cloud(1, NovaRule::Off).nodes(2).build();
    let scene = asking(&sandbox, "hand-over", false);
    let (node, instance) = only(&sandbox);
    let other = sandbox.nodes()[1];
    scene
        .while_guarding(async {
            sandbox.with(|world, _| world.nova_move(instance, Some(other)));
            leaves_and_is_back(&sandbox, node).await;
            tokio::time::sleep(secs(100)).await;
        })
        .await;
    assert!(scene.ear.heard(&format!("is on {other}")) >= 1);
    assert_ne!(holders(&sandbox, node), [instance]);
    assert!(!sandbox.is_offered(node));
}

/// An operator tears the node down, and Nova's server is still there: its allocation stays, or our hold, until the server is
/// deleted. Then the node is offered within a minute or so.
#[tokio::test(start_paused = true)]
async fn a_live_server_keeps_a_node_that_looks_free_until_a_person_has_looked() {
    for (strategy, required) in [
        ("reserve-on-delete", false),
        ("reserve-on-delete", true),
        ("hand-over", true),
    ] {
        let sandbox = cloud(1, NovaRule::Off).build();
        let scene = asking(&sandbox, strategy, required);
        let (node, instance) = only(&sandbox);
        let what = format!("{strategy} {required}");
        scene
            .while_guarding(async {
                undeploy(&sandbox, node);
                tokio::time::sleep(secs(400)).await;
                assert!(!sandbox.is_offered(node), "{what}");
                assert_eq!(scene.ear.heard("torn down behind Nova's back"), 1, "{what}: once");
                assert_eq!(scene.ear.heard("Closed"), 0, "{what}");
                // Nova sees nothing to tear down, and drops its record and its allocation.
                sandbox.with(|world, now| world.nova_delete(instance, now));
                tokio::time::sleep(secs(130)).await;
            })
            .await;
        assert_clean(&sandbox, node, &what);
        assert!(scene.ear.heard("is available and offered") >= 1, "{what}");
    }
}

/// Nova has given up after its two minutes: the node comes back all the same, and what Nova keeps of it is named.
#[tokio::test(start_paused = true)]
async fn a_server_in_error_does_not_hold_a_free_node_but_its_allocation_does() {
    for (strategy, offered) in [("hand-over", true), ("reserve-on-delete", false)] {
        let sandbox = cloud(1, NovaRule::Off).build();
        let scene = asking(&sandbox, strategy, true);
        let (node, instance) = only(&sandbox);
        scene
            .while_guarding(async {
                undeploy(&sandbox, node);
                sandbox.with(|world, _| world.nova_set(instance, Stage::Error));
                tokio::time::sleep(secs(400)).await;
                assert_eq!(sandbox.is_offered(node), offered, "{strategy}");
                sandbox.with(|world, now| world.nova_delete(instance, now));
                tokio::time::sleep(secs(130)).await;
            })
            .await;
        assert_eq!(
            scene.ear.heard("delete it once more"),
            usize::from(!offered),
            "{strategy}"
        );
        assert_clean(&sandbox, node, strategy);
    }
}

/// Deferred delete: the server is kept for a while, and its node is used; nothing is told, nothing is taken.
#[tokio::test(start_paused = true)]
async fn a_server_that_may_be_restored_keeps_its_allocation_until_nova_reclaims_it() {
    let sandbox = cloud(1, NovaRule::Off).build();
    let scene = asking(&sandbox, "reserve-on-delete", false);
    let (node, instance) = only(&sandbox);
    scene
        .while_guarding(async {
            sandbox.with(|world, _| world.nova_set(instance, Stage::SoftDeleted));
            undeploy(&sandbox, node);
            tokio::time::sleep(secs(400)).await;
            assert_eq!(holders(&sandbox, node), [instance]);
            assert_eq!(scene.ear.heard("keeps server"), 1);
            sandbox.with(|world, now| world.nova_delete(instance, now));
            tokio::time::sleep(secs(130)).await;
        })
        .await;
    assert_clean(&sandbox, node, "reclaimed");
}

/// Nova does not answer, or a Keystone that is not well lets nobody in any more: what is in doubt waits, and goes on once it does.
#[tokio::test(start_paused = true)]
async fn while_nova_does_not_answer_what_is_in_doubt_waits() {
    let away = (StatusCode::BAD_GATEWAY, "<html>away</html>", "HTTP 502");
    let storm = (StatusCode::UNAUTHORIZED, "{}", "HTTP 401");
    for (required, (status, body, told)) in [(false, away), (true, away), (false, storm), (true, storm)] {
        let sandbox = cloud(2, NovaRule::Off).build();
        let scene = asking(&sandbox, "hand-over", required);
        let (node, instance) = only(&sandbox);
        let (other, its) = sandbox.deployed()[1];
        scene
            .while_guarding(async {
                tokio::time::sleep(secs(1)).await;
                sandbox.fault(Fault::on(Service::Nova).status(status, body));
                sandbox.with(|world, now| world.nova_delete(its, now));
                leaves_and_is_back(&sandbox, node).await;
                tokio::time::sleep(secs(200)).await;
                assert_ne!(holders(&sandbox, node), [instance], "{required}");
                assert_eq!(sandbox.is_offered(other), !required, "{required}: no doubt there");
                sandbox.clear_faults();
                tokio::time::sleep(secs(100)).await;
            })
            .await;
        assert_eq!(holders(&sandbox, node), [instance], "{required}");
        assert_clean(&sandbox, other, "answers again");
        assert!(scene.ear.heard(told) >= 1, "{required}, {told}");
    }
}

/// These credentials may not ask: that is said at the start, and all is decided without it. Where Nova's word is required nothing
/// is begun.
#[tokio::test(start_paused = true)]
async fn a_nova_that_may_not_be_asked_is_a_missing_check() {
    let sandbox = cloud(1, NovaRule::Off).build();
    let forbidden = Fault::on(Service::Nova).status(StatusCode::FORBIDDEN, "{}");
    sandbox.fault(forbidden);
    let scene = asking(&sandbox, "hand-over", false);
    let (node, instance) = only(&sandbox);
    sandbox.with(|world, _| world.nova_set(instance, Stage::Deleted));
    scene.while_guarding(leaves_and_is_back(&sandbox, node)).await;
    assert_eq!(scene.ear.heard("Not checked: whether a server is there"), 1);
    assert_eq!(scene.ear.heard("HTTP 403"), 1, "once");
    assert_eq!(holders(&sandbox, node), [instance], "as without Nova");

    let required = asking(&sandbox, "hand-over", true);
    let stop = CancellationToken::new();
    let refused = required.guard().run(&stop).await.unwrap_err();
    assert!(
        refused.to_string().contains("before each release, and cannot be"),
        "{refused}"
    );
    let silent = Scene::new(&sandbox);
    silent.guard().once(&stop).await.unwrap();
    assert_eq!(silent.ear.heard("Nova is not asked: it is switched off"), 1);
}

/// A right that is taken away later is told once, when it is missed.
#[tokio::test(start_paused = true)]
async fn a_right_that_is_lost_on_the_way_is_told_once() {
    let sandbox = cloud(2, NovaRule::Off).build();
    let mut scene = Scene::new(&sandbox);
    let nova = Arc::new(MemoryServers::new());
    scene.servers = Some(nova.clone());
    let servers = sandbox.deployed();
    scene
        .while_guarding(async {
            tokio::time::sleep(secs(1)).await;
            nova.fail(Some(ServersError::Unreadable("no more".to_owned())));
            for (node, _) in &servers {
                leaves_and_is_back(&sandbox, *node).await;
            }
        })
        .await;
    assert_eq!(scene.ear.heard("unchecked: no more"), 1);
    for (node, instance) in servers {
        assert_eq!(holders(&sandbox, node), [instance]);
    }
}

/// Another scheduler's providers are nothing that Nova could tell of.
#[tokio::test(start_paused = true)]
async fn without_novas_traits_nova_is_not_asked() {
    let sandbox = cloud(1, NovaRule::Off).build();
    let (node, instance) = only(&sandbox);
    sandbox.with(|world, _| {
        world.edit_provider(node, |provider| provider.traits.clear());
        world.nova_set(instance, Stage::Deleted);
    });
    let scene = asking(&sandbox, "hand-over", false);
    scene.while_guarding(leaves_and_is_back(&sandbox, node)).await;
    assert_eq!((asked(&sandbox), holders(&sandbox, node)), (0, vec![instance]));
}

/// A node in use that Placement offers is told with what Nova knows of its server; nothing is written either way.
#[tokio::test(start_paused = true)]
async fn a_missing_allocation_is_told_with_what_nova_knows_of_the_server() {
    for (server, told) in [
        (Some("ACTIVE"), "is `ACTIVE` on it"),
        (None, "it was deleted while nova-compute was away"),
    ] {
        let sandbox = cloud(1, NovaRule::Off).build();
        let (node, instance) = only(&sandbox);
        let nova = Arc::new(MemoryServers::new());
        nova.set(
            instance,
            server.map(|status| Server {
                status: status.to_owned(),
                task: None,
                host: Some(node.to_string()),
            }),
        );
        let mut scene = Scene::new(&sandbox);
        scene.servers = Some(nova.clone());
        scene
            .while_guarding(async {
                sandbox.with(|world, now| world.nova_release(instance, now));
                tokio::time::sleep(secs(150)).await;
            })
            .await;
        assert_eq!(scene.ear.heard("its allocation is missing"), 1, "{told}");
        assert_eq!(scene.ear.heard(told), 1, "{told}");
        assert_eq!(writes(&sandbox), Vec::<String>::new(), "{told}");
        assert!(nova.asked() <= 2, "{}: not at each sweep", nova.asked());
    }
}
