//! Every error that comes from a service names the node (where there is one), the service, the request, what the server said,
//! and what to do next: many faults, and every command that asks a service.

use std::time::Duration;

use futures::future::join_all;
use http::{HeaderName, StatusCode};
use unprovision::audit::FindingKind;
use unprovision_testkit::sandbox::{Fault, Service, World};

use crate::audit::plant;
use crate::support::{Cloud, Ran, finish_within, quick};

/// What goes wrong, at which of the two services.
struct Wrong {
    what: &'static str,
    service: Service,
    fault: Option<Fault>,
    /// What is changed in the cloud.
    edit: Option<fn(&mut World, Service)>,
    env: Vec<(String, String)>,
    /// How the command ends; the doctor has a status of its own.
    code: i32,
    /// What everybody says of it.
    says: Vec<&'static str>,
}

/// All of them at the same time take longer on a busy machine than one does.
const LIMIT: Duration = Duration::from_secs(180);

/// The commands, with the node that each is about.
const COMMANDS: [(&[&str], Option<&str>); 8] = [
    (&["delete", "node-0002", "--yes"], Some("node-0002")),
    (&["audit", "--grace", "1ms"], None),
    (
        &["audit", "--grace", "1ms", "--fix", "offered-not-free", "--yes"],
        None,
    ),
    (&["nodes"], None),
    (&["doctor"], None),
    (&["guard", "--once"], None),
    (
        &["abandon", "node-0001", "--reason", "sold", "--yes"],
        Some("node-0001"),
    ),
    (&["show", "node-0001", "--look"], Some("node-0001")),
];

/// A case that waits for a person, a node in use, and one that is offered although it is not free.
async fn prepared() -> Cloud {
    let cloud = Cloud::start(quick(2).nodes(4)).await;
    let first = cloud.sandbox().nodes()[0];
    cloud
        .sandbox()
        .with(|world, _| world.edit_node(first, |node| node.behaviour.clean_failures = 1));
    cloud.run(&["delete", "node-0001", "--yes"]).await.assert_code(3);
    plant(&cloud, &[FindingKind::OfferedNotFree]);
    cloud
}

fn name(service: Service) -> &'static str {
    match service {
        Service::Keystone => "keystone",
        Service::Ironic => "ironic",
        Service::Placement => "placement",
        Service::Nova => "nova",
    }
}

/// Whatever is asked of the service, once both have agreed on a version.
fn calls(service: Service) -> Fault {
    Fault::on(service).path(match service {
        Service::Ironic => "/v1/nodes/**",
        Service::Placement => "/resource_providers/**",
        Service::Keystone | Service::Nova => "/**",
    })
}

fn genuine(service: Service, fault: Fault) -> Fault {
    let (name, value) = match service {
        Service::Placement => ("openstack-api-version", "placement 1.39"),
        _ => ("x-openstack-ironic-api-version", "1.115"),
    };
    fault.header(HeaderName::from_static(name), value)
}

impl Wrong {
    fn with(what: &'static str, service: Service, fault: Fault) -> Self {
        Self {
            what,
            service,
            fault: Some(fault),
            edit: None,
            env: Vec::new(),
            code: 1,
            says: Vec::new(),
        }
    }

    /// The service answers so.
    fn status(service: Service, status: StatusCode, body: &'static str) -> Self {
        let mut wrong = Self::with("an answer", service, calls(service).status(status, body));
        wrong.says = vec!["[req-fault]", "(HTTP "];
        if body.contains("the server's own words") {
            wrong.says.push("the server's own words");
        }
        wrong
    }

    /// The cloud is changed so.
    fn edited(what: &'static str, service: Service, code: i32, edit: fn(&mut World, Service)) -> Self {
        Self {
            code,
            edit: Some(edit),
            ..Self::with(what, service, calls(service).times(0))
        }
    }

    /// All commands, at the same time.
    async fn run(self) {
        let cloud = prepared().await;
        cloud.sandbox().clear_faults();
        if let Some(fault) = &self.fault {
            cloud.sandbox().fault(fault.clone());
        }
        if let Some(edit) = self.edit {
            cloud.sandbox().with(|world, _| edit(world, self.service));
        }
        let ran = COMMANDS.map(|(args, node)| {
            let mut command = cloud.command(args);
            command.envs(self.env.iter().cloned());
            async move { (args, node, finish_within(command.spawn().unwrap(), LIMIT).await) }
        });
        for (args, node, ran) in join_all(ran).await {
            self.check(args, node, &ran);
        }
    }

    fn check(&self, args: &[&str], node: Option<&str>, ran: &Ran) {
        let is_doctor = args == ["doctor"];
        let said = format!("{}{}", ran.stdout, ran.stderr);
        let at = format!("{} of {}: {}", self.what, name(self.service), args.join(" "));
        let code = match args[0] {
            "doctor" => 3,
            "audit" => 1,
            _ => self.code,
        };
        assert_eq!(ran.code, Some(code), "{at}:\n{said}");
        let next = if is_doctor { "-> " } else { "next: " };
        // Of a login or a place it is said which service it was for, and nobody knows which is asked first.
        let service = Some(name(self.service)).filter(|_| self.service != Service::Keystone);
        let all = service.into_iter().chain([next]).chain(node);
        for words in all.chain(self.says.iter().copied()) {
            assert!(said.contains(words), "{at}: `{words}` is not in:\n{said}");
        }
        assert!(
            !said.contains("secret") && !said.contains("gAAAA"),
            "{at}:\n{said}"
        );
    }
}

const BOTH: [Service; 2] = [Service::Ironic, Service::Placement];

#[tokio::test]
async fn what_a_service_answers_is_told_with_all_that_a_log_is_searched_for() {
    let json = r#"{"error_message": {"faultstring": "the server's own words"}, "errors": [{"detail": "the server's own words"}]}"#;
    let html = "<html><body><h1>the server's own words</h1></body></html>";
    let all = BOTH.into_iter().flat_map(|service| {
        let status = |code: StatusCode, body| Wrong::status(service, code, body);
        let garbled = genuine(service, calls(service).status(StatusCode::OK, "{\"nodes\": ["));
        let mut garbled = Wrong::with("a garbled answer", service, garbled);
        garbled.says = vec!["[req-fault]", "cannot be read"];
        [
            status(StatusCode::FORBIDDEN, json),
            status(StatusCode::NOT_FOUND, html),
            status(StatusCode::CONFLICT, json),
            status(StatusCode::INTERNAL_SERVER_ERROR, html),
            garbled,
        ]
    });
    for wrong in all {
        wrong.run().await;
    }
}

/// Where a service is, by the catalog.
fn place(world: &mut World, service: Service) -> &mut String {
    match service {
        Service::Placement => &mut world.config.placement.base_url,
        _ => &mut world.config.ironic.base_url,
    }
}

#[tokio::test]
async fn a_service_that_is_busy_is_told() {
    let words =
        r#"{"error_message": "the server's own words", "errors": [{"detail": "the server's own words"}]}"#;
    let busy = |service| Wrong::status(service, StatusCode::SERVICE_UNAVAILABLE, words);
    join_all(BOTH.map(|service| busy(service).run())).await;
}

#[tokio::test]
async fn a_service_that_does_not_answer_is_told() {
    let silent = |service| {
        let mut wrong = Wrong::with(
            "a time-out",
            service,
            calls(service).delay_reply(Duration::from_secs(60)),
        );
        let key = format!("UNPROVISION_{}__TIMEOUT", name(service).to_uppercase());
        wrong.env = vec![(key, "1s".to_owned())];
        wrong.says = vec!["no whole answer within 1"];
        wrong
    };
    join_all(BOTH.map(|service| silent(service).run())).await;
}

#[tokio::test]
async fn a_service_that_refuses_connections_is_told() {
    let refused = |service| {
        let mut wrong = Wrong::edited("a refused connection", service, 1, |world, service| {
            *place(world, service) = "http://127.0.0.1:1".to_owned();
        });
        wrong.says = vec!["was not reached", "127.0.0.1:1"];
        wrong
    };
    join_all(BOTH.map(|service| refused(service).run())).await;
}

/// The service speaks no TLS.
#[tokio::test]
async fn a_tls_that_does_not_work_is_told() {
    let broken = |service| {
        let mut wrong = Wrong::edited("TLS", service, 1, |world, service| {
            let place = place(world, service);
            *place = place.replace("http://", "https://");
        });
        wrong.says = vec!["was not reached", "https://127.0.0.1"];
        wrong
    };
    join_all(BOTH.map(|service| broken(service).run())).await;
}

#[tokio::test]
async fn a_service_that_is_not_there_or_too_old_is_told() {
    for service in BOTH {
        let mut old = Wrong::edited("an old API", service, 2, |world, service| match service {
            Service::Placement => world.config.placement.max_minor = 20,
            _ => world.config.ironic.max_minor = 30,
        });
        old.says = vec!["this client speaks API"];
        old.run().await;
    }
    let mut missing = Wrong::edited("a missing endpoint", Service::Keystone, 2, |world, _| {
        world.config.keystone.region = "elsewhere".to_owned();
    });
    missing.says = vec!["no endpoint for", "RegionOne"];
    missing.run().await;
}

/// Whatever Keystone says, it is told whose login it was.
#[tokio::test]
async fn a_login_that_fails_is_told() {
    let keystone = |status: StatusCode, body| Fault::on(Service::Keystone).status(status, body);
    let words = r#"{"error": {"message": "the server's own words"}}"#;
    for (fault, code, says) in [
        (
            keystone(StatusCode::UNAUTHORIZED, words),
            2,
            &["the server's own words", "HTTP 401"][..],
        ),
        (
            keystone(StatusCode::INTERNAL_SERVER_ERROR, "<html></html>"),
            1,
            &["HTTP 500"],
        ),
    ] {
        let mut wrong = Wrong::with("a login", Service::Keystone, fault);
        wrong.code = code;
        wrong.says = [&["no login for", "Keystone at http://", "[req-fault]"], says].concat();
        wrong.run().await;
    }
}
