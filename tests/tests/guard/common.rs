//! What the guard's tests share.

use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::Method;
use ironic_client::IronicClient;
use placement_client::PlacementClient;
use tokio_util::sync::CancellationToken;
use unprovision::cloud::{CloudError, OpenStack};
use unprovision::core::{Case, Entry};
use unprovision::events::EventSource;
use unprovision::guard::{Adapters, Guard, GuardObserver, Notice, Settings};
use unprovision::journal::{Journal, MemoryJournal};
use unprovision::orchestrator::Observer;
use unprovision::servers::Servers;
use unprovision_testkit::rig::SandboxClock;
use unprovision_testkit::sandbox::config::NovaRule;
use unprovision_testkit::sandbox::log::Change;
use unprovision_testkit::sandbox::nova::Stage;
use unprovision_testkit::sandbox::{Builder, Caller, Sandbox, Service, World, judge};
use uuid::Uuid;

pub(crate) fn secs(n: u64) -> Duration {
    Duration::from_secs(n)
}

/// The strategies that the guard takes.
pub(crate) fn strategies() -> impl Iterator<Item = &'static str> {
    let all = unprovision::strategy::ALL.iter();
    all.filter(|strategy| strategy.guards().is_ok())
        .map(|strategy| strategy.name())
}

/// All nodes deployed; tear-down 4 s, cleaning 30 s, Nova's passes every 60 s from the 60th second on.
pub(crate) fn cloud(nodes: usize, rule: NovaRule) -> Builder {
    Sandbox::builder()
        .nodes(nodes)
        .deployed(nodes)
        .teardown(secs(4))
        .cleaning(secs(30))
        .nova(rule)
}

/// What the guard says.
#[derive(Debug, Default)]
pub(crate) struct Ear {
    pub(crate) lines: Mutex<Vec<String>>,
}

impl Ear {
    pub(crate) fn heard(&self, what: &str) -> usize {
        self.lines
            .lock()
            .unwrap()
            .iter()
            .filter(|line| line.contains(what))
            .count()
    }
}

impl Observer for Ear {
    fn entry(&self, case: &Case, entry: &Entry) {
        let line = format!("{} {:?}", case.node, entry.event);
        self.lines.lock().unwrap().push(line);
    }

    fn waiting(&self, case: &Case, for_what: &unprovision::core::WaitFor) {
        let line = format!("{} waits: {for_what}", case.node);
        self.lines.lock().unwrap().push(line);
    }

    fn trouble(&self, case: &Case, error: &CloudError) {
        let line = format!("{} trouble: {error}", case.node);
        self.lines.lock().unwrap().push(line);
    }

    fn unchecked(&self, case: &Case, why: &str) {
        let line = format!("{} unchecked: {why}", case.node);
        self.lines.lock().unwrap().push(line);
    }
}

impl GuardObserver for Ear {
    fn notice(&self, notice: &Notice) {
        self.lines.lock().unwrap().push(notice.to_string());
    }
}

/// A guard with its journal and what it said.
#[derive(Clone, Debug)]
pub(crate) struct Scene {
    pub(crate) sandbox: Sandbox,
    pub(crate) journal: Arc<dyn Journal>,
    pub(crate) settings: Settings,
    pub(crate) ear: Arc<Ear>,
    /// Who it is in the log.
    pub(crate) who: &'static str,
    /// What wakes it, besides its own looks.
    pub(crate) events: Option<Arc<dyn EventSource>>,
    /// Whom it asks for servers.
    pub(crate) servers: Option<Arc<dyn Servers>>,
}

impl Scene {
    pub(crate) fn new(sandbox: &Sandbox) -> Self {
        Self::with(sandbox, Settings::default())
    }

    pub(crate) fn with(sandbox: &Sandbox, settings: Settings) -> Self {
        Self {
            sandbox: sandbox.clone(),
            journal: Arc::new(MemoryJournal::new()),
            settings,
            ear: Arc::default(),
            who: "guard",
            events: None,
            servers: None,
        }
    }

    pub(crate) fn by(sandbox: &Sandbox, strategy: &str) -> Self {
        let settings = Settings {
            strategy: strategy.to_owned(),
            ..Settings::default()
        };
        Self::with(sandbox, settings)
    }

    /// A new process on the same cloud, with the same journal.
    pub(crate) fn guard(&self) -> Arc<Guard> {
        let clock = Arc::new(SandboxClock(self.sandbox.clone()));
        let to = |service| self.sandbox.transport(service, self.who);
        let openstack = Arc::new(OpenStack::new(
            Arc::new(IronicClient::new(to(Service::Ironic))),
            Arc::new(PlacementClient::new(to(Service::Placement))),
            Arc::clone(&clock) as _,
        ));
        let adapters = Adapters {
            cloud: Arc::<OpenStack>::clone(&openstack),
            fleet: openstack,
            journal: Arc::clone(&self.journal),
            clock,
            observer: Arc::<Ear>::clone(&self.ear),
            identity: None,
            events: self.events.clone(),
            servers: self.servers.clone(),
        };
        Arc::new(Guard::new(adapters, self.settings.clone()))
    }

    /// Guards while this happens, then stops as by SIGTERM.
    pub(crate) async fn while_guarding<T>(&self, events: impl Future<Output = T>) -> T {
        let guard = self.guard();
        self.with_guard(&guard, events).await
    }

    pub(crate) async fn with_guard<T>(&self, guard: &Guard, events: impl Future<Output = T>) -> T {
        let stop = CancellationToken::new();
        let guarding = guard.run(&stop);
        let events = async {
            let result = events.await;
            stop.cancel();
            result
        };
        let (guarded, result) = tokio::join!(guarding, events);
        guarded.unwrap();
        result
    }

    /// Guards while this happens, then dies as by `kill -9`.
    pub(crate) async fn until_killed<T>(&self, events: impl Future<Output = T>) -> T {
        let guard = self.guard();
        let stop = CancellationToken::new();
        tokio::select! {
            biased;
            result = events => result,
            _ = guard.run(&stop) => panic!("the guard ended by itself"),
        }
    }
}

/// Nova deletes all servers.
pub(crate) fn delete_all(sandbox: &Sandbox) -> Vec<(Uuid, Uuid)> {
    let deployed = sandbox.deployed();
    for (_, instance) in &deployed {
        sandbox.with(|world, now| world.nova_delete(*instance, now));
    }
    deployed
}

/// The only deployed node and its instance.
pub(crate) fn only(sandbox: &Sandbox) -> (Uuid, Uuid) {
    sandbox.deployed().remove(0)
}

/// A request of an operator's to Ironic; it must be accepted.
pub(crate) fn by_operator(sandbox: &Sandbox, call: &str, body: &serde_json::Value) {
    let (method, path) = call.split_once(' ').unwrap();
    let request = http::Request::builder()
        .method(method)
        .uri(path)
        .header("X-OpenStack-Ironic-API-Version", "1.90")
        .header("Content-Type", "application/json")
        .extension(Caller("operator".into()))
        .body(bytes::Bytes::from(body.to_string()))
        .unwrap();
    let answer = sandbox.with(|world, now| world.handle(Service::Ironic, &request, now));
    assert!(answer.status().is_success(), "{call}: {:?}", answer.body());
}

pub(crate) fn edit(
    sandbox: &Sandbox,
    node: Uuid,
    change: impl FnOnce(&mut unprovision_testkit::sandbox::ironic::Node),
) {
    sandbox.with(|world, _| world.edit_node(node, change));
}

pub(crate) fn assert_unexposed(sandbox: &Sandbox, node: Uuid, what: &str) {
    let exposure = judge::exposure(&sandbox.log(), node);
    assert!(exposure.is_none(), "{what}: falsely offered {exposure:?}");
}

/// Never falsely offered, offered in the end, and nothing of ours is left.
pub(crate) fn assert_clean(sandbox: &Sandbox, node: Uuid, what: &str) {
    assert_unexposed(sandbox, node, what);
    assert!(sandbox.is_offered(node), "{what}: the node is not offered again");
    let left = sandbox.with(|world: &mut World, _| world.holders(node));
    assert!(left.is_empty(), "{what}: {left:?} still hold the provider");
}

/// The writes of the guard, as `METHOD service path`.
pub(crate) fn writes(sandbox: &Sandbox) -> Vec<String> {
    let log = sandbox.log();
    log.requests()
        .filter(|line| line.who.starts_with("guard") && line.method != Method::GET)
        .map(|line| format!("{} {} {}", line.method, line.service, line.path))
        .collect()
}

/// Rule 1: nothing that this guard sends changes anything in Ironic.
pub(crate) fn assert_ironic_untouched(sandbox: &Sandbox) {
    let touched = writes(sandbox)
        .into_iter()
        .filter(|line| line.contains(" ironic "))
        .collect::<Vec<_>>();
    assert!(touched.is_empty(), "the guard wrote to Ironic: {touched:?}");
}

/// When Nova had done with the server, from the start.
pub(crate) fn deleted_after(sandbox: &Sandbox, instance: Uuid, since: jiff::Timestamp) -> Option<Duration> {
    let log = sandbox.log();
    let mut ends = log.iter().filter_map(|entry| match &entry.change {
        Change::Server {
            instance: of,
            stage: "deleted",
            ..
        } if *of == instance => Some(entry.at.duration_since(since).unsigned_abs()),
        _ => None,
    });
    ends.next()
}

pub(crate) fn stage(sandbox: &Sandbox, instance: Uuid) -> Option<Stage> {
    sandbox.with(|world, _| world.nova_stage(instance))
}
