//! The contract files, asked of the sandbox and of real services.
//!
//! `UNPROVISION_CONTRACT=placement` in the environment runs only the files whose names begin so.

#![allow(
    clippy::unwrap_used,
    reason = "a test fails by panicking, also in its helpers"
)]

use async_trait::async_trait;
use bytes::Bytes;
use futures::StreamExt;
use http::{Method, Request, Response};
use serde_json::Value;
use std::path::Path;
use std::time::Duration;
use unprovision_testkit::contract::{
    Error, File, HttpTarget, Identity, Report, Seed, Service, Target, load_dir, run_file,
};
use unprovision_testkit::sandbox::config::{Auth, User};
use unprovision_testkit::sandbox::ironic::{Behaviour, CleanFailure, Style};
use unprovision_testkit::sandbox::{self, Sandbox, serve};
use uuid::Uuid;

/// How many files run at once: most of the time they wait for the services.
const AT_ONCE: usize = 6;

fn files() -> Vec<File> {
    let mut files = load_dir(&Path::new(env!("CARGO_MANIFEST_DIR")).join("contract")).unwrap();
    if let Ok(prefix) = std::env::var("UNPROVISION_CONTRACT") {
        files.retain(|file| file.name.starts_with(&prefix));
    }
    files
}

/// Runs files, several at once, and fails with the reports of those that failed.
async fn run_all(files: Vec<File>, target: impl Target + Clone) {
    let (count, seed) = (files.len(), &Seed::random());
    assert!(count > 0, "there are no contract files of that name");
    let run = async |file: File| run_file(&file, &mut target.clone(), seed).await;
    let mut reports: Vec<Report> = futures::stream::iter(files)
        .map(run)
        .buffer_unordered(AT_ONCE)
        .collect()
        .await;
    reports.retain(|report| !report.is_ok());
    let failed: Vec<String> = reports.iter().map(ToString::to_string).collect();
    assert!(
        failed.is_empty(),
        "{} of {count} files failed\n\n{}",
        failed.len(),
        failed.join("\n")
    );
}

#[tokio::test(start_paused = true)]
async fn the_sandbox_keeps_the_contract() {
    let sandbox = strict_sandbox();
    let roots = sandbox.with(|world, _| {
        let config = &world.config;
        [
            &config.keystone.base_url,
            &config.ironic.base_url,
            &config.placement.base_url,
        ]
        .map(Clone::clone)
    });
    run_all(
        files(),
        InProcess {
            sandbox,
            roots,
            identity: identity(),
        },
    )
    .await;
}

/// The same through sockets, where time is real: without the files that wait for much of it.
#[tokio::test]
async fn the_served_sandbox_keeps_the_contract() {
    let mut files = files();
    files.retain(|file| !file.name.starts_with("lab-") && file.name != "ironic-lock");
    let served = serve::serve(strict_sandbox()).await.unwrap();
    let urls = [
        sandbox::Service::Keystone,
        sandbox::Service::Ironic,
        sandbox::Service::Placement,
    ];
    let [keystone, ironic, placement] = urls.map(|service| served.url(service));
    run_all(
        files,
        HttpTarget::new(&keystone, &ironic, &placement, identity()).unwrap(),
    )
    .await;
}

#[tokio::test]
async fn the_real_services_keep_the_contract() {
    let Some(lab) = std::env::var_os("UNPROVISION_LAB") else {
        panic!(
            "there are no real services to ask; start them with: export UNPROVISION_LAB=$(tests/lab/lab up)"
        );
    };
    run_all(files(), HttpTarget::from_lab(lab.as_ref()).unwrap()).await;
}

fn identity() -> Identity {
    Identity {
        username: "admin".into(),
        password: "secret".into(),
        user_domain_id: "default".into(),
        project_name: "admin".into(),
        project_domain_id: "default".into(),
    }
}

/// The users besides the administrator, under the names that files know them by.
const OTHERS: [(&str, &str); 7] = [
    ("reader_username", "reader"),
    ("reader_password", "reader's"),
    ("service_username", "unprovision"),
    ("service_password", "service's"),
    ("service_project", "service"),
    ("application_id", "21dced0fd20347869b93710d2b98aae0"),
    ("application_secret", "application's"),
];

fn users() -> Vec<User> {
    let of = |name: &str| OTHERS.iter().find(|(key, _)| *key == name).unwrap().1.to_owned();
    let who = identity();
    let admin = User::admin(&who.username, &who.password, &who.project_name);
    let credential = (
        of("application_id"),
        "application".to_owned(),
        of("application_secret"),
    );
    let reader = User {
        name: of("reader_username"),
        password: of("reader_password"),
        roles: vec!["reader".into()],
        ..admin.clone()
    };
    let service = User {
        name: of("service_username"),
        password: of("service_password"),
        project: of("service_project"),
        roles: vec!["service".into()],
        system: false,
        ..admin.clone()
    };
    vec![
        User {
            application_credential: Some(credential),
            ..admin
        },
        reader,
        service,
    ]
}

/// A sandbox without nodes, as strict about tokens as services are by default.
fn strict_sandbox() -> Sandbox {
    Sandbox::builder()
        .teardown(Duration::from_millis(500))
        .cleaning(Duration::from_secs(3))
        .configure(|config| {
            config.keystone.users = users();
            config.keystone.strict_scopes = true;
            config.ironic.auth = Auth::Keystone;
            config.placement.auth = Auth::Keystone;
        })
        .build()
}

/// The sandbox without sockets, so that time can be skipped. Its nodes obey the lab's keys in `driver_info`.
#[derive(Clone, Debug)]
struct InProcess {
    sandbox: Sandbox,
    roots: [String; 3],
    identity: Identity,
}

const SERVICES: [(Service, sandbox::Service); 3] = [
    (Service::Keystone, sandbox::Service::Keystone),
    (Service::Ironic, sandbox::Service::Ironic),
    (Service::Placement, sandbox::Service::Placement),
];

#[async_trait]
impl Target for InProcess {
    fn root(&self, service: Service) -> &str {
        &self.roots[SERVICES.iter().position(|(name, _)| *name == service).unwrap()]
    }

    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn variables(&self) -> Vec<(String, String)> {
        OTHERS
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect()
    }

    async fn send(&mut self, mut request: Request<Bytes>) -> Result<Response<Bytes>, Error> {
        let url = request.uri().to_string();
        let (service, path) = SERVICES
            .iter()
            .zip(&self.roots)
            .find_map(|((_, service), root)| Some((*service, url.strip_prefix(root)?)))
            .unwrap();
        *request.uri_mut() = path.parse().unwrap();
        Ok(self.sandbox.with(|world, now| {
            let response = world.handle(service, &request, now);
            if let Some((node, behaviour)) = new_node(&request, path) {
                world.edit_node(node, |node| node.behaviour = behaviour);
            }
            response
        }))
    }
}

/// The node that a request creates, and how it is to behave.
fn new_node(request: &Request<Bytes>, path: &str) -> Option<(Uuid, Behaviour)> {
    if request.method() != Method::POST || path != "/v1/nodes" {
        return None;
    }
    let body: Value = serde_json::from_slice(request.body()).ok()?;
    Some((
        body["uuid"].as_str()?.parse().ok()?,
        behaviour(&body["driver_info"]),
    ))
}

/// What the keys of the lab's driver mean for a node of the sandbox.
fn behaviour(info: &Value) -> Behaviour {
    let seconds = |key: &str| info[key].as_f64().map(Duration::from_secs_f64);
    let count = |key: &str| info[key].as_u64().unwrap_or(0).try_into().unwrap();
    let (boot, wait) = (seconds("lab_boot_seconds"), seconds("lab_wait_seconds"));
    let agent = boot.is_some() || wait.is_some();
    let timeouts = count("lab_boot_timeouts");
    let waits = boot.unwrap_or_default() + wait.unwrap_or_default();
    Behaviour {
        style: if agent { Style::Agent } else { Style::Fake },
        teardown: seconds("lab_tear_down_seconds"),
        cleaning: seconds("lab_clean_seconds").map(|cleaning| cleaning + waits),
        teardown_failures: count("lab_tear_down_failures"),
        clean_failures: count("lab_clean_failures") + timeouts,
        clean_failure: if timeouts > 0 {
            CleanFailure::Timeout
        } else {
            CleanFailure::Step
        },
        deploy_failures: count("lab_deploy_failures"),
        hold: count("lab_clean_holds") > 0,
        ..Behaviour::default()
    }
}
