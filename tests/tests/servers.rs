//! Whoever tells of servers does what it must.
#![allow(clippy::unwrap_used, reason = "helpers of tests are not seen as tests")]

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use http::StatusCode;
use unprovision::NodeUuid;
use unprovision::core::{Server, Tie};
use unprovision::servers::{MemoryServers, NovaServers, Servers, ServersError};
use unprovision_session::{Auth, Clouds, HttpTransport, RetryPolicy, Service as Of};
use unprovision_testkit::conformance::servers::{Hand, run_all, run_all_without_right};
use unprovision_testkit::sandbox::config::User;
use unprovision_testkit::sandbox::serve::{Served, real_clock, serve};
use unprovision_testkit::sandbox::{Builder, Fault, Sandbox, Service};
use uuid::Uuid;

/// The sandbox's Nova deletes in its own time; the one in memory is told.
#[derive(Debug)]
struct InSandbox(Sandbox);

#[async_trait]
impl Hand for InSandbox {
    async fn server(&self) -> (Uuid, NodeUuid) {
        let (node, instance) = self.0.deployed().remove(0);
        (instance, NodeUuid(node))
    }

    async fn delete(&self, server: Uuid) {
        self.0.with(|world, now| world.nova_delete(server, now));
    }

    async fn wait(&self) {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[derive(Debug)]
struct InMemory(Arc<MemoryServers>);

#[async_trait]
impl Hand for InMemory {
    async fn server(&self) -> (Uuid, NodeUuid) {
        let (server, node) = (Uuid::from_u128(1), Uuid::from_u128(2));
        self.0.set(server, Some(shown("ACTIVE", None, Some(node))));
        (server, NodeUuid(node))
    }

    async fn delete(&self, server: Uuid) {
        self.0.set(server, None);
    }

    async fn wait(&self) {}
}

fn shown(status: &str, task: Option<&str>, node: Option<Uuid>) -> Server {
    Server {
        status: status.to_owned(),
        task: task.map(str::to_owned),
        host: node.map(|node| node.to_string()),
    }
}

fn cloud() -> Builder {
    Sandbox::builder()
        .nodes(1)
        .deployed(1)
        .teardown(Duration::from_millis(200))
        .configure(|config| {
            config.nova.in_catalog = true;
            config.nova.poll = Duration::from_millis(200);
            config.keystone.strict_scopes = true;
            let member = User {
                roles: vec!["member".into()],
                ..User::admin("member", "secret", "other")
            };
            config.keystone.users.push(member);
        })
}

/// What the user sees, over sockets.
async fn by(user: &str, project: Option<&str>, served: &Served) -> NovaServers {
    let mut clouds = Clouds::new(|_| None)
        .set("auth_url", served.url(Service::Keystone))
        .set("username", user)
        .set("password", "secret");
    clouds = match project {
        Some(project) => clouds.set("project_name", project),
        None => clouds.set("system_scope", "all"),
    };
    let transport = HttpTransport::builder(Of::Nova, Auth::new(clouds.load().unwrap()).unwrap());
    let once = RetryPolicy {
        attempts: 1,
        ..RetryPolicy::default()
    };
    NovaServers::new(Arc::new(transport.retry(once).build().await.unwrap()))
}

#[tokio::test]
async fn servers_in_memory() {
    let servers = Arc::new(MemoryServers::new());
    run_all(&*servers, &InMemory(Arc::clone(&servers))).await;
    servers.fail(Some(ServersError::Unreadable("not for you".into())));
    run_all_without_right(&*servers, &InMemory(Arc::clone(&servers))).await;
}

#[tokio::test(start_paused = true)]
async fn novas_servers_within_the_process() {
    let sandbox = cloud().build();
    let servers = NovaServers::new(sandbox.transport(Service::Nova, "client"));
    run_all(&servers, &InSandbox(sandbox)).await;
}

#[tokio::test]
async fn novas_servers_over_http() {
    let served = serve(cloud().clock(real_clock()).build()).await.unwrap();
    let hand = InSandbox(served.sandbox().clone());
    let member = by("member", Some("other"), &served).await;
    let system = by("admin", None, &served).await;
    let (server, node) = hand.server().await;
    for without in [&member, &system] {
        run_all_without_right(without, &Idle(server, node)).await;
    }
    run_all(&by("admin", Some("admin"), &served).await, &hand).await;
}

/// Somebody whose server stays.
#[derive(Debug)]
struct Idle(Uuid, NodeUuid);

#[async_trait]
impl Hand for Idle {
    async fn server(&self) -> (Uuid, NodeUuid) {
        (self.0, self.1)
    }

    async fn delete(&self, _: Uuid) {}

    async fn wait(&self) {}
}

/// Nova gives a service that is not in the catalog no answer, and so it is said.
#[tokio::test]
async fn without_a_nova_in_the_catalog_servers_cannot_be_seen() {
    let sandbox = cloud().configure(|config| config.nova.in_catalog = false);
    let served = serve(sandbox.clock(real_clock()).build()).await.unwrap();
    let servers = by("admin", Some("admin"), &served).await;
    let error = servers.can_be_seen().await.unwrap_err();
    assert!(matches!(error, ServersError::Unreadable(_)), "{error:?}");
    assert!(
        error.to_string().contains("no service of the type `compute`"),
        "{error}"
    );
}

/// What is in the way of Nova's word is none: no 404 of a proxy, no page, no error, no word of a part only.
#[tokio::test(start_paused = true)]
async fn only_novas_own_word_counts() {
    let sandbox = cloud().build();
    let (_, instance) = sandbox.deployed().remove(0);
    let servers = NovaServers::new(sandbox.transport(Service::Nova, "client"));
    let one = || Fault::on(Service::Nova).path("/v2.1/servers/*");
    let with_host = |host: &str| format!(r#"{{"server": {{"id": "{instance}", "status": "ACTIVE"{host}}}}}"#);
    let faults = [
        (
            one().status(StatusCode::NOT_FOUND, "<html>not here</html>"),
            false,
        ),
        (one().status(StatusCode::NOT_FOUND, "{}"), false),
        (one().status(StatusCode::OK, "<html>hello</html>"), false),
        (one().status(StatusCode::OK, "{}"), false),
        (one().status(StatusCode::INTERNAL_SERVER_ERROR, "{}"), false),
        (one().lose_reply(), false),
        (one().status(StatusCode::FORBIDDEN, "{}"), true),
        (one().status(StatusCode::UNAUTHORIZED, "{}"), false),
        (one().status(StatusCode::OK, &with_host("")), true),
    ];
    for (fault, unreadable) in faults {
        sandbox.fault(fault.clone());
        let error = servers.server(instance).await.unwrap_err();
        let is = matches!(error, ServersError::Unreadable(_));
        assert_eq!(is, unreadable, "{fault:?}: {error}");
        sandbox.clear_faults();
    }
    // Not there, and nobody may see whether it is there for others.
    let hidden = Fault::on(Service::Nova).path("/v2.1/servers/detail");
    sandbox.fault(hidden.status(
        StatusCode::FORBIDDEN,
        r#"{"forbidden": {"message": "no\u001b[2J"}}"#,
    ));
    let error = servers.server(Uuid::from_u128(7)).await.unwrap_err();
    assert!(matches!(error, ServersError::Unreadable(_)), "{error:?}");
    assert!(!error.to_string().contains('\u{1b}'), "{error:?}");
    assert!(
        servers.server(instance).await.unwrap().is_some(),
        "it is shown all the same"
    );
}

#[test]
fn what_a_server_has_to_do_with_a_node() {
    let here = Uuid::from_u128(2);
    let tie = |status, task, on| shown(status, task, on).tie(NodeUuid(here));
    for (status, task, expected) in [
        ("ACTIVE", None, Tie::Lives),
        ("SHUTOFF", None, Tie::Lives),
        ("BUILD", Some("spawning"), Tie::Lives),
        ("UNKNOWN", None, Tie::Lives),
        ("REBUILD", Some("rebuild_spawning"), Tie::Lives),
        ("ACTIVE", Some("deleting"), Tie::Deleting),
        ("ERROR", Some("deleting"), Tie::Deleting),
        ("SOFT_DELETED", Some("deleting"), Tie::Deleting),
        ("ACTIVE", Some("soft-deleting"), Tie::Deleting),
        ("DELETED", None, Tie::Deleting),
        ("SOFT_DELETED", None, Tie::SoftDeleted),
        ("SOFT_DELETED", Some("restoring"), Tie::Lives),
        ("ERROR", None, Tie::Failed),
    ] {
        assert_eq!(tie(status, task, Some(here)), expected, "{status} {task:?}");
        assert_eq!(tie(status, task, Some(Uuid::from_u128(3))), Tie::Elsewhere);
        assert_eq!(tie(status, task, None), Tie::Elsewhere);
    }
    let on_a_hypervisor = Server {
        host: Some("compute-7".into()),
        ..shown("ACTIVE", None, None)
    };
    assert_eq!(on_a_hypervisor.tie(NodeUuid(here)), Tie::Elsewhere);
}
