//! Three guards on one journal on a server: one is killed, one stands still for longer than its lease runs, one is cut off from the
//! journal (rule 16).

use std::collections::BTreeMap;
use std::fs::File;
use std::sync::Arc;
use std::time::Duration;

use futures::TryStreamExt;
use rustix::process::Signal;
use tokio::process::Child;
use tokio::time::{sleep, timeout};
use unprovision::journal::Journal;
use unprovision_testkit::lab::journals::{Database, Server};
use unprovision_testkit::relay::Relay;
use unprovision_testkit::sandbox::Service;
use unprovision_testkit::sandbox::config::{NovaRule, User};
use unprovision_testkit::sandbox::ironic::State;

use crate::support::{Cloud, Deployed, finish, quick, send};

const GUARDS: [&str; 3] = ["guard-1", "guard-2", "guard-3"];
/// From one delete to the next, until all guards that are to be disturbed have got some.
const STEP: Duration = Duration::from_millis(150);
/// Longer than a guard that has died keeps a case that it had no time to hold.
const TEARDOWN: Duration = Duration::from_secs(60);
const CLEANING: Duration = Duration::from_secs(20);
/// Longer than a lease, and than others need to see that it has run out.
const AWAY: Duration = Duration::from_secs(42);
/// What a guard does not do after this time it does not do.
const A_WHILE: Duration = Duration::from_secs(8);

/// A write of a guard that was accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Write {
    guard: String,
    what: String,
}

async fn cloud(servers: usize) -> Cloud {
    let builder = quick(servers)
        .teardown(TEARDOWN)
        .cleaning(CLEANING)
        .nova(NovaRule::Off)
        .configure(|config| {
            let users = GUARDS.map(|name| User::admin(name, "secret", "admin"));
            config.keystone.users.extend(users);
        });
    Cloud::with_nova_traits(builder).await
}

/// What it says goes to a file in the cloud's home.
fn guard(cloud: &Cloud, name: &str, journal: &str) -> Child {
    let said = File::create(cloud.home().join(name)).unwrap();
    let mut command = cloud.command(&["guard"]);
    command
        .env("OS_USERNAME", name)
        .env("OS_PASSWORD", "secret")
        .env("UNPROVISION_JOURNAL", journal)
        .env("UNPROVISION_GUARD__SWEEP", "10s")
        .env("UNPROVISION_GUARD__MAX_HELD_SHARE", "1.0")
        .stderr(said);
    command.spawn().unwrap()
}

/// What the guards have changed, in order.
fn writes(cloud: &Cloud) -> Vec<Write> {
    let log = cloud.sandbox().log();
    let accepted = log
        .requests()
        .filter(|line| GUARDS.contains(&line.who) && !line.method.is_safe() && line.status.is_success());
    let mut writes = Vec::new();
    for line in accepted {
        assert_eq!(line.service, Service::Placement, "{} {}", line.method, line.path);
        writes.push(Write {
            guard: line.who.to_owned(),
            what: format!("{} {}", line.method, line.path),
        });
    }
    writes
}

fn nova_deletes(cloud: &Cloud, servers: &[Deployed]) {
    for server in servers {
        let instance = server.instance.parse().unwrap();
        cloud
            .sandbox()
            .with(|world, now| world.nova_delete(instance, now));
    }
}

/// Whether nobody but us holds the provider.
fn is_held_by_us(cloud: &Cloud, server: &Deployed) -> bool {
    let holders = cloud.sandbox().with(|world, _| world.holders(server.node));
    !holders.is_empty() && holders.iter().all(|holder| holder.to_string() != server.instance)
}

/// A cloud and a journal, and the wire by which one of the guards comes to it.
struct Scene {
    cloud: Cloud,
    journal: Arc<dyn Journal>,
    relay: Relay,
}

impl Scene {
    /// How many writes of this guard were accepted.
    fn by(&self, guard: &str) -> usize {
        writes(&self.cloud)
            .iter()
            .filter(|write| write.guard == guard)
            .count()
    }

    fn holds(&self, servers: &[Deployed]) -> bool {
        servers.iter().all(|server| is_held_by_us(&self.cloud, server))
    }

    fn offers(&self, servers: &[Deployed]) -> bool {
        let sandbox = self.cloud.sandbox();
        servers.iter().all(|server| sandbox.is_offered(server.node))
    }

    async fn until(&self, what: &str, holds: impl Fn() -> bool) {
        let reached = async {
            while !holds() {
                sleep(Duration::from_millis(20)).await;
            }
        };
        if timeout(Duration::from_secs(150), reached).await.is_err() {
            let said = |name| std::fs::read_to_string(self.cloud.home().join(name)).unwrap_or_default();
            panic!("it never came to: {what}\n{}", GUARDS.map(said).join("\n----\n"));
        }
    }

    /// Users delete their servers one after the other, and all that are left once each of the guards has written something.
    async fn are_deleted(&self, servers: &[Deployed], guards: &[&str]) {
        let before = guards.iter().map(|name| self.by(name)).collect::<Vec<_>>();
        let all_write = || {
            let mut now = guards.iter().zip(&before);
            now.all(|(name, before)| self.by(name) > *before)
        };
        let mut left = servers.iter();
        while !all_write() {
            let next = left.next().expect("each guard gets some");
            nova_deletes(&self.cloud, std::slice::from_ref(next));
            sleep(STEP).await;
        }
        nova_deletes(&self.cloud, left.as_slice());
        sleep(STEP).await;
    }

    /// One dies and one stands still, both in the middle of their writes. The third one holds what they have left.
    async fn one_dies_and_one_freezes(&self, servers: &[Deployed], killed: &mut Child, frozen: &Child) {
        self.are_deleted(servers, &GUARDS).await;
        send(frozen, Signal::STOP);
        killed.kill().await.unwrap();
        sleep(AWAY).await;
        self.until("the one that is left holds all", || self.holds(servers))
            .await;
        let before = self.by(GUARDS[1]);
        send(frozen, Signal::CONT);
        sleep(A_WHILE).await;
        assert_eq!(
            self.by(GUARDS[1]),
            before,
            "what is another's by now is left to it"
        );
    }

    /// The one that has most of them in its hands is cut off in the middle of its writes.
    async fn one_is_cut_off(&self, servers: &[Deployed], had: &[Deployed]) {
        self.are_deleted(servers, &GUARDS[1..]).await;
        self.relay.cut();
        // What it was sending just then.
        sleep(Duration::from_secs(2)).await;
        let before = self.by(GUARDS[2]);
        self.until("what it had is offered", || self.offers(had)).await;
        self.until("what it was about to hold is held", || self.holds(servers))
            .await;
        assert_eq!(self.by(GUARDS[2]), before, "without a journal nothing is sent");
        self.relay.mend();
        self.until("all are offered", || self.offers(servers)).await;
    }
}

/// All of it, on the journal of this server.
async fn three_guards(server: Server, first: usize, second: usize) {
    let database = Database::new(server).await;
    let scene = Scene {
        cloud: cloud(first + second).await,
        journal: database.open().await,
        relay: Relay::to(database.address()).await.unwrap(),
    };
    let (cloud, journal) = (&scene.cloud, &scene.journal);
    let servers = cloud.deployed();
    let (first, second) = servers.split_at(first);
    let mut killed = guard(cloud, GUARDS[0], &database.url);
    let frozen = guard(cloud, GUARDS[1], &database.url);
    let cut_off = guard(cloud, GUARDS[2], &database.at(scene.relay.address));
    while journal.leases().await.unwrap().len() < GUARDS.len() {
        sleep(Duration::from_millis(50)).await;
    }
    scene.one_dies_and_one_freezes(first, &mut killed, &frozen).await;
    scene.one_is_cut_off(second, first).await;
    for guard in [frozen, cut_off] {
        send(&guard, Signal::TERM);
        finish(guard).await.assert_code(0);
    }
    assert_all_is_well(cloud, &servers);
    let open = journal.open_cases().try_collect::<Vec<_>>().await.unwrap();
    assert!(open.is_empty(), "{open:?}");
    let cases = journal.cases().try_collect::<Vec<_>>().await.unwrap();
    assert_eq!(cases.len(), servers.len());
}

/// By the order of what the cloud has recorded: each node left once, and was held once and released once.
fn assert_all_is_well(cloud: &Cloud, servers: &[Deployed]) {
    let log = cloud.sandbox().log();
    for server in servers {
        cloud.assert_returned(server.node);
        let states = log.states(server.node);
        let left = states.iter().filter(|(_, state)| *state == State::Deleting);
        assert_eq!(left.count(), 1, "{states:?}");
    }
    let mut counts = BTreeMap::<String, usize>::new();
    for write in writes(cloud) {
        *counts.entry(write.what).or_default() += 1;
    }
    assert_eq!(
        counts.remove("POST /allocations"),
        Some(servers.len()),
        "one hold for each"
    );
    assert_eq!(counts.len(), servers.len(), "and one release: {counts:?}");
    let twice = counts.iter().filter(|(_, count)| **count > 1);
    assert_eq!(twice.count(), 0, "{counts:?}");
}

/// `cases`, `show`, `nodes`, `audit` and `doctor` promise to change nothing, also in an empty database.
#[tokio::test]
async fn whoever_only_reads_makes_no_tables() {
    for server in Server::ALL {
        let database = Database::new(server).await;
        let cloud = Cloud::with_nova_traits(quick(1)).await;
        for (args, code) in [
            (&["cases"][..], Some(0)),
            (&["show", "node-0001"], Some(2)),
            (&["nodes"], Some(0)),
            (&["audit"], Some(0)),
            (&["doctor"], None),
        ] {
            let mut command = cloud.command(args);
            command.env("UNPROVISION_JOURNAL", &database.url);
            let ran = finish(command.spawn().unwrap()).await;
            assert!(
                code.is_none_or(|code| ran.code == Some(code)),
                "{args:?}: {ran:?}"
            );
            assert_eq!(
                database.tables().await,
                Vec::<String>::new(),
                "{server:?}: {args:?}"
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_dies_one_freezes_and_one_is_cut_off_from_the_journal() {
    three_guards(Server::PostgreSql, 60, 40).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_same_on_mariadb() {
    three_guards(Server::MariaDb, 30, 20).await;
}
