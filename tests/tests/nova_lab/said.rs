//! What a real Ironic says over its RabbitMQ is enough for the guard: here it never looks by itself.

use std::sync::Arc;
use std::time::Duration;

use unprovision::cloud::SystemClock;
use unprovision::events::{Contact, RabbitMq, RabbitMqSettings};
use unprovision::guard::{Adapters, Guard, Settings, Unobserved};
use unprovision::journal::MemoryJournal;
use unprovision_testkit::lab::{Lab, Proxies, Setup};

use crate::common::until;

/// So long that no look and no sweep of the clock comes to its help.
const NEVER: Duration = Duration::from_secs(100_000);

/// A guard that looks only when Ironic says something.
async fn told_by(lab: &Lab, proxies: &Proxies, url: &str) -> Guard {
    let openstack = Arc::new(lab.openstack(proxies, &Setup::default()).await.unwrap());
    let listens = RabbitMqSettings {
        queue: Lab::unique("said-queue"),
        ..RabbitMqSettings::new(vec![url.parse().unwrap()])
    };
    let adapters = Adapters {
        cloud: Arc::clone(&openstack) as _,
        fleet: openstack,
        journal: Arc::new(MemoryJournal::new()),
        clock: Arc::new(SystemClock),
        observer: Arc::new(Unobserved),
        identity: None,
        events: Some(Arc::new(RabbitMq::new(listens, Arc::new(SystemClock)))),
        servers: None,
    };
    let settings = Settings {
        look: NEVER,
        sweep: NEVER,
        ..Settings::default()
    };
    Guard::new(adapters, settings)
}

#[tokio::test]
async fn c20_what_a_real_ironic_says_wakes_the_guard() {
    let lab = Lab::with_nova_from_env().unwrap_or_else(|error| panic!("{error}"));
    let url = lab
        .amqp_url()
        .unwrap_or_else(|| panic!("start the lab with --notify"));
    let (api, proxies) = (lab.api().await.unwrap(), lab.proxies().await.unwrap());
    let shape = ["--step-seconds", "5", "--knob", "lab_tear_down_seconds=4"];
    let nodes = lab.seed(1, &Lab::unique("said"), &shape).await.unwrap();
    let deployed = lab.deploy(&nodes).await.unwrap().remove(0);
    let class = deployed.class().unwrap();

    let guard = told_by(&lab, &proxies, url).await;
    let (node, instance) = (deployed.node, deployed.instance);
    let stop = tokio_util::sync::CancellationToken::new();
    let told = async {
        until("it listens", async || {
            let heard = guard.status().events.unwrap();
            matches!(heard.contact, Contact::Since(_))
        })
        .await;
        // The sweep that follows has found an active node, and nothing to do for it.
        tokio::time::sleep(Duration::from_secs(3)).await;
        api.provision(node, "deleted").await.unwrap();
        let held = until("it is held", async || {
            let holders = api.holders(node).await.unwrap();
            !holders.is_empty() && !holders.contains(&instance)
        })
        .await;
        let state = api.node(node).await.unwrap()["provision_state"].clone();
        assert_ne!(state, "available", "held while it is on its way");
        until("it is available", async || {
            api.node(node).await.unwrap()["provision_state"] == "available"
        })
        .await;
        let offered = until("it is offered", async || {
            api.candidates(class.as_str()).await.unwrap().contains(&node)
        })
        .await;
        println!("held {held:?} after the delete, offered {offered:?} after it was available");
    };
    tokio::select! {
        ended = guard.run(&stop) => panic!("the guard has ended: {ended:?}"),
        () = told => {}
    }
    let heard = guard.status().events.unwrap();
    assert!(heard.hints >= 4 && heard.unreadable == 0, "{heard}");
}
