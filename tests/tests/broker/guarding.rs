//! The guard beside a broker: woken by it, and not lost without it.

use std::time::Duration;

use async_trait::async_trait;
use unprovision::NodeUuid;
use unprovision::guard::Settings;
use unprovision_testkit::conformance::events::{Mouth, run_all};
use unprovision_testkit::lab::broker::{Broker, Ironic, change};
use unprovision_testkit::sandbox::judge;
use uuid::Uuid;

use crate::common::{Scene, broker, quick, secs, source, told, until};

#[derive(Debug)]
struct Ours(Ironic);

#[async_trait]
impl Mouth for Ours {
    async fn hint(&self, node: NodeUuid) {
        self.0.changes(node.0, "active", "deleting").await.unwrap();
    }

    async fn garbage(&self) {
        self.0.says("info", b"\xff garbage").await.unwrap();
    }
}

#[tokio::test]
async fn rabbitmq_is_a_source_of_events() {
    let broker = broker();
    run_all(async || {
        let settings = broker.settings("conformance").unwrap();
        let ironic = broker.ironic(&settings).await.unwrap();
        (source(settings), Box::new(Ours(ironic)) as Box<dyn Mouth>)
    })
    .await;
}

/// Looks and sweeps never come: what is done is done because of what was said. With and without the envelope, as any priority.
#[tokio::test]
async fn c20_a_message_wakes_the_guard_before_its_look() {
    let broker = broker();
    let settings = broker.settings("wakes").unwrap();
    let ironic = broker.ironic(&settings).await.unwrap();
    let scene = Scene::new(quick(2), told(), settings);
    let servers = scene.sandbox.deployed();
    scene
        .while_guarding(async {
            scene.until_it_listens().await;
            for (priority, (node, instance)) in ["info", "error"].into_iter().zip(&servers) {
                let (node, instance) = (*node, *instance);
                let says = async |from, to| {
                    let plain = change(node, from, to).to_string();
                    match priority {
                        "info" => ironic.changes(node, from, to).await.unwrap(),
                        _ => ironic.says(priority, plain.as_bytes()).await.unwrap(),
                    }
                };
                scene.delete(instance);
                tokio::time::sleep(Duration::from_millis(300)).await;
                assert!(!scene.is_held(node, instance), "nobody has said anything yet");
                says("active", "deleting").await;
                let took = until("it is held", async || scene.is_held(node, instance)).await;
                println!("held {took:?} after it was said");
                until("it is free", async || scene.state(node) == "available").await;
                says("cleaning", "available").await;
                let took = until("it is offered", async || scene.sandbox.is_offered(node)).await;
                println!("offered {took:?} after it was said");
            }
        })
        .await;
    for (node, _) in servers {
        assert!(judge::exposure(&scene.sandbox.log(), node).is_none());
    }
    let heard = scene.guard.status().events.unwrap();
    assert_eq!((heard.hints, heard.unreadable), (4, 0), "{heard}");
}

/// A thousand messages that nobody can read are set aside one by one, and the next good one is heard.
#[tokio::test]
async fn c20_poison_is_set_aside_once() {
    let broker = broker();
    let settings = broker.settings("poison").unwrap();
    let ironic = broker.ironic(&settings).await.unwrap();
    let queue = settings.queue.clone();
    let scene = Scene::new(quick(1), told(), settings);
    let (node, instance) = scene.sandbox.deployed().remove(0);
    scene
        .while_guarding(async {
            scene.until_it_listens().await;
            for number in 0..1000 {
                let body = format!("{{\"password\": \"hunter{number}");
                ironic.says("info", body.as_bytes()).await.unwrap();
            }
            scene.delete(instance);
            ironic.changes(node, "active", "deleting").await.unwrap();
            until("it is held", async || scene.is_held(node, instance)).await;
            until("nothing is left", async || {
                broker.queue(&queue).await.unwrap() == Some((0, 1))
            })
            .await;
        })
        .await;
    let heard = scene.guard.status().events.unwrap();
    assert_eq!((heard.unreadable, heard.hints), (1000, 1), "{heard}");
    assert_eq!(scene.ear.heard("nobody can read"), 10, "{}", scene.ear.all());
    assert!(!scene.ear.all().contains("hunter"), "{}", scene.ear.all());
}

/// The broker dies and comes back. Meanwhile looks do; once it is back, everything is looked at: what was said meanwhile is lost.
#[tokio::test]
async fn c20_a_broker_that_dies_and_comes_back_is_followed_by_a_full_sweep() {
    let folder = tempfile::tempdir().unwrap();
    let broker = Broker::start(folder.path()).await.unwrap();
    let settings = broker.settings("dies").unwrap();
    let first = broker.ironic(&settings).await.unwrap();
    let scene = Scene::new(quick(2), told(), settings.clone());
    let servers = scene.sandbox.deployed();
    let held = |at: usize| scene.is_held(servers[at].0, servers[at].1);
    scene
        .while_guarding(async {
            scene.until_it_listens().await;
            broker.stop().await.unwrap();
            until("it is told", async || scene.ear.heard("hears nothing") > 0).await;
            first.goes().await;
            scene.delete(servers[0].1);
            // Ironic's exchange is gone with the broker until Ironic says something.
            Broker::start(folder.path()).await.unwrap();
            until("it misses the exchange", async || {
                scene.ear.heard("no exchange") > 0
            })
            .await;
            assert!(!held(0), "nothing has told it, and it never looks");
            let again = broker.ironic(&settings).await.unwrap();
            until("it listens again", async || scene.ear.heard("listens to") == 2).await;
            until("the sweep has found it, or it is over", async || {
                held(0) || scene.sandbox.is_offered(servers[0].0)
            })
            .await;
            scene.delete(servers[1].1);
            again.changes(servers[1].0, "active", "deleting").await.unwrap();
            until("it is held", async || held(1)).await;
        })
        .await;
    assert!(!scene.ear.all().contains("guest:"), "{}", scene.ear.all());
    broker.wipe().await.unwrap();
}

/// There is no broker, ever: everything is as it is without one.
#[tokio::test]
async fn c20_without_a_broker_the_guard_does_the_same() {
    let mut settings = broker().settings("never").unwrap();
    settings.urls = vec!["amqp://me:hunter2@127.0.0.1:1/".parse().unwrap()];
    let looks = Settings {
        look: Duration::from_millis(200),
        sweep: secs(1),
        ..Settings::default()
    };
    let scene = Scene::new(quick(3), looks, settings);
    let servers = scene.sandbox.deployed();
    scene
        .while_guarding(async {
            servers.iter().for_each(|(_, instance)| scene.delete(*instance));
            until("all are offered again", async || {
                let back = |(node, _): &(Uuid, Uuid)| {
                    scene.state(*node) == "available" && scene.sandbox.is_offered(*node)
                };
                servers.iter().all(back)
            })
            .await;
        })
        .await;
    for (node, _) in servers {
        assert!(judge::exposure(&scene.sandbox.log(), node).is_none());
    }
    let said = scene.ear.all();
    assert!(
        said.contains("hears nothing of RabbitMQ at amqp://127.0.0.1:1/"),
        "{said}"
    );
    assert!(!said.contains("hunter2"), "{said}");
    assert!(
        scene.guard.status().to_string().contains("not connected"),
        "{}",
        scene.guard.status()
    );
}
