//! What the tests share.

use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures::StreamExt;
use futures::stream::BoxStream;
use ironic_client::IronicClient;
use placement_client::PlacementClient;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use unprovision::cloud::{OpenStack, SystemClock};
use unprovision::events::{EventSource, RabbitMq, RabbitMqSettings, Said};
use unprovision::guard::{Adapters, Guard, GuardObserver, Notice, Settings};
use unprovision::journal::MemoryJournal;
use unprovision::orchestrator::Observer;
use unprovision_testkit::lab::broker::Broker;
use unprovision_testkit::rig::SandboxClock;
use unprovision_testkit::sandbox::{Sandbox, Service};
use uuid::Uuid;

/// How long anything may take on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
/// So long that no look and no sweep of the clock comes to a test's help.
pub(crate) const NEVER: Duration = Duration::from_secs(100_000);

pub(crate) fn secs(n: u64) -> Duration {
    Duration::from_secs(n)
}

pub(crate) fn broker() -> Broker {
    Broker::from_env().unwrap_or_else(|error| panic!("{error}"))
}

pub(crate) fn source(settings: RabbitMqSettings) -> RabbitMq {
    RabbitMq::new(settings, Arc::new(SystemClock))
}

/// Asks until the answer is yes; returns how long it took.
pub(crate) async fn until<F: Future<Output = bool>>(what: &str, mut ask: impl FnMut() -> F) -> Duration {
    #[allow(
        clippy::disallowed_methods,
        reason = "how long a test has waited in real time"
    )]
    let began = Instant::now();
    while !ask().await {
        assert!(began.elapsed() < PATIENCE, "in vain: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    began.elapsed()
}

pub(crate) async fn next(said: &mut BoxStream<'_, Said>) -> Said {
    let next = tokio::time::timeout(PATIENCE, said.next()).await;
    next.expect("it says nothing").expect("it never ends")
}

/// Why it does not listen.
pub(crate) async fn deaf(settings: RabbitMqSettings) -> String {
    let source = source(settings);
    let mut said = source.listen();
    match next(&mut said).await {
        Said::Deaf(why) => why,
        other => panic!("it listens: {other:?}"),
    }
}

/// Listens once, so that the queue is there, and goes.
pub(crate) async fn listen_once(settings: &RabbitMqSettings) {
    let source = source(settings.clone());
    let mut said = source.listen();
    assert_eq!(next(&mut said).await, Said::Listens);
}

/// A port whose connections lead to the broker, or nowhere any more.
pub(crate) async fn way_to(broker: &Broker) -> (u16, tokio::task::JoinHandle<()>) {
    let target = broker.url().rsplit('@').next().unwrap();
    let target = target.split('/').next().unwrap().to_owned();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let way = tokio::spawn(async move {
        let mut open = tokio::task::JoinSet::new();
        while let Ok((mut here, _)) = listener.accept().await {
            let target = target.clone();
            open.spawn(async move {
                let Ok(mut there) = TcpStream::connect(target).await else {
                    return;
                };
                let _ = copy_bidirectional(&mut here, &mut there).await;
            });
        }
    });
    (port, way)
}

/// What the guard says of itself.
#[derive(Debug, Default)]
pub(crate) struct Ear(Mutex<Vec<String>>);

impl Ear {
    pub(crate) fn heard(&self, what: &str) -> usize {
        let lines = self.0.lock().unwrap();
        lines.iter().filter(|line| line.contains(what)).count()
    }

    pub(crate) fn all(&self) -> String {
        self.0.lock().unwrap().join("\n")
    }
}

impl Observer for Ear {}

impl GuardObserver for Ear {
    fn notice(&self, notice: &Notice) {
        self.0.lock().unwrap().push(notice.to_string());
    }
}

/// A cloud in real time, and a guard that listens to a broker.
pub(crate) struct Scene {
    pub(crate) sandbox: Sandbox,
    pub(crate) guard: Guard,
    pub(crate) ear: Arc<Ear>,
}

impl Scene {
    pub(crate) fn new(sandbox: Sandbox, settings: Settings, listens: RabbitMqSettings) -> Self {
        let clock = Arc::new(SandboxClock(sandbox.clone()));
        let to = |service| sandbox.transport(service, "guard");
        let openstack = Arc::new(OpenStack::new(
            Arc::new(IronicClient::new(to(Service::Ironic))),
            Arc::new(PlacementClient::new(to(Service::Placement))),
            Arc::clone(&clock) as _,
        ));
        let ear = Arc::new(Ear::default());
        let adapters = Adapters {
            cloud: Arc::<OpenStack>::clone(&openstack),
            fleet: openstack,
            journal: Arc::new(MemoryJournal::new()),
            clock,
            observer: Arc::<Ear>::clone(&ear),
            identity: None,
            events: Some(Arc::new(source(listens))),
            servers: None,
        };
        let guard = Guard::new(adapters, settings);
        Self { sandbox, guard, ear }
    }

    /// Guards while this happens.
    pub(crate) async fn while_guarding<T>(&self, events: impl Future<Output = T>) -> T {
        let stop = tokio_util::sync::CancellationToken::new();
        tokio::select! {
            ended = self.guard.run(&stop) => panic!("the guard has ended: {ended:?}"),
            result = events => result,
        }
    }

    /// Who holds the node's unit, other than its instance.
    pub(crate) fn is_held(&self, node: Uuid, instance: Uuid) -> bool {
        let holders = self.sandbox.with(|world, _| world.holders(node));
        !holders.is_empty() && !holders.contains(&instance)
    }

    pub(crate) async fn until_it_listens(&self) {
        until("the guard listens", async || self.ear.heard("listens to") > 0).await;
    }

    pub(crate) fn delete(&self, instance: Uuid) {
        self.sandbox.with(|world, now| world.nova_delete(instance, now));
    }

    /// In which state the node is.
    pub(crate) fn state(&self, node: Uuid) -> String {
        self.sandbox
            .with(|world, _| world.node(node).unwrap().provision_state.to_string())
    }
}

/// Nodes that are torn down and cleaned within seconds.
pub(crate) fn quick(nodes: usize) -> Sandbox {
    Sandbox::builder()
        .nodes(nodes)
        .deployed(nodes)
        .teardown(secs(2))
        .cleaning(secs(2))
        .build()
}

/// A guard that looks only when it is told to.
pub(crate) fn told() -> Settings {
    Settings {
        look: NEVER,
        sweep: NEVER,
        ..Settings::default()
    }
}
