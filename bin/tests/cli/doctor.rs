//! `unprovision doctor`: what it says of clouds that fit, and of those that do not.

use http::header::DATE;
use serde_json::{Value, json};
use unprovision_testkit::sandbox::config::{Auth, NovaRule, User};
use unprovision_testkit::sandbox::{Fault, Service};

use crate::support::{Cloud, Ran, bare_in, finish, quick};

/// What it says, as an object.
fn report(ran: &Ran) -> Value {
    serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran:?}"))
}

/// All that is broken, and what it says of that.
fn broken(ran: &Ran) -> Vec<(String, String)> {
    let report = report(ran);
    let checks = report["checks"].as_array().unwrap().iter();
    let broken = checks.filter(|check| check["verdict"] == "broken");
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    broken
        .map(|check| {
            let says = format!("{} -> {}", text(&check["says"]), text(&check["advice"]));
            (text(&check["about"]), says)
        })
        .collect()
}

async fn ask(cloud: &Cloud) -> Ran {
    cloud.run(&["doctor", "-o", "json"]).await
}

fn assert_broken(ran: &Ran, about: &str, words: &str) {
    ran.assert_code(3);
    let all = broken(ran);
    assert!(
        all.iter()
            .any(|(what, said)| what == about && said.contains(words)),
        "{about}: `{words}` in {all:#?}"
    );
}

/// All writes of the doctor are refused, and no journal is made.
fn assert_untouched(cloud: &Cloud) {
    let log = cloud.sandbox().log();
    for line in log.requests().filter(|line| line.service != Service::Keystone) {
        assert!(
            line.method.is_safe() || line.status.is_client_error(),
            "{line:?} had an effect"
        );
    }
    assert!(!cloud.home().join("journal.sqlite").exists());
}

#[tokio::test]
async fn a_good_cloud_is_told_how_to_begin_by_what_its_nova_does() {
    for (rule, says) in [
        (NovaRule::Old, "Nova does not reserve nodes in use"),
        (
            NovaRule::Current,
            "Nova reserves nodes in use, as it does since 26.1",
        ),
    ] {
        let cloud = Cloud::with_nova_traits(quick(2).nodes(4).nova(rule)).await;
        let ran = ask(&cloud).await;
        ran.assert_code(0);
        assert!(ran.stdout.contains(says), "{}", ran.stdout);
        let advice = &report(&ran)["advice"];
        assert_eq!(advice["strategy"], "hand-over");
        let begin = json!([
            "unprovision audit",
            "unprovision guard --dry-run",
            "unprovision guard"
        ]);
        assert_eq!(advice["commands"], begin);
        assert_untouched(&cloud);
    }
    let cloud = Cloud::start(quick(2)).await;
    cloud.sandbox().with(|world, _| {
        for node in world
            .nodes()
            .into_iter()
            .map(|node| node.uuid)
            .collect::<Vec<_>>()
        {
            world.deallocate(node);
        }
    });
    let ran = cloud.run(&["doctor"]).await;
    ran.assert_code(0);
    for words in [
        "no trace of a Nova",
        "use hand-over: never offered",
        "\n    unprovision delete NODE",
    ] {
        assert!(ran.stdout.contains(words), "`{words}` in {}", ran.stdout);
    }
    assert_untouched(&cloud);
}

#[tokio::test]
async fn a_wrong_password_and_a_dead_service_are_told() {
    let cloud = Cloud::start(quick(1)).await;
    let args = ["doctor", "-o", "json"];
    let wrong = cloud.command(&args).env("OS_PASSWORD", "wrong").spawn().unwrap();
    let ran = finish(wrong).await;
    assert_broken(&ran, "ironic", "HTTP 401");
    assert_broken(&ran, "placement", "correct auth_url, user, domains, password");
    let nowhere = cloud
        .command(&args)
        .env("UNPROVISION_IRONIC__ENDPOINT", "http://127.0.0.1:1")
        .spawn()
        .unwrap();
    let ran = finish(nowhere).await;
    assert_broken(&ran, "ironic", "look whether ironic is up");
    assert!(
        !broken(&ran).iter().any(|(about, _)| about == "placement"),
        "{}",
        ran.stdout
    );
    assert_untouched(&cloud);
}

#[tokio::test]
async fn each_missing_right_is_told_with_what_the_service_said() {
    let reader = || User {
        roles: vec!["reader".to_owned()],
        ..User::admin("admin", "secret", "admin")
    };
    let cloud = Cloud::start(quick(1).configure(|config| config.keystone.users = vec![reader()])).await;
    let ran = ask(&cloud).await;
    assert_broken(&ran, "ironic", "may NOT change provision states: ");
    assert_broken(&ran, "ironic", "[req-");
    for words in [
        "may NOT write allocations",
        "may NOT write inventories",
        "role `admin`",
    ] {
        assert_broken(&ran, "placement", words);
    }
    assert_eq!(report(&ran)["advice"]["strategy"], Value::Null);
    assert_untouched(&cloud);
}

#[tokio::test]
async fn a_scope_that_shows_no_nodes_is_told() {
    let cloud = Cloud::start(quick(1).configure(|config| config.keystone.strict_scopes = true)).await;
    let ran = ask(&cloud).await;
    assert_broken(&ran, "nodes", "`system_scope: all`");
    assert!(
        ran.stdout.contains("there is no node to try it at"),
        "{}",
        ran.stdout
    );
}

#[tokio::test]
async fn a_placement_too_old_for_reserving_is_told() {
    let cloud = Cloud::start(quick(1).configure(|config| config.placement.max_minor = 25)).await;
    let ran = ask(&cloud).await;
    assert_broken(
        &ran,
        "placement",
        "this client speaks API 1.28 to 1.39, the service 1.0 to 1.25",
    );
    assert_broken(&ran, "versions", "reserved as a whole (API 1.26)");
}

#[tokio::test]
async fn an_ironic_without_placement_is_told_what_is_enough() {
    let cloud = Cloud::start(quick(1).configure(|config| config.ironic.auth = Auth::Off)).await;
    let child = bare_in(cloud.home(), &["doctor", "-o", "json"])
        .env("OS_AUTH_TYPE", "none")
        .env("OS_ENDPOINT", cloud.served().url(Service::Ironic))
        .spawn()
        .unwrap();
    let ran = finish(child).await;
    assert_broken(&ran, "placement", "Ironic without Placement");
    assert_eq!(
        report(&ran)["advice"]["commands"],
        json!(["openstack baremetal node undeploy NODE"])
    );
    assert!(
        ran.stdout.contains("may change provision states"),
        "{}",
        ran.stdout
    );
}

/// A broker is no need: the guard works without, only slower.
#[tokio::test]
async fn the_broker_is_told_as_it_is() {
    let cloud = Cloud::start(quick(1)).await;
    let none = ask(&cloud).await;
    let says = "no broker is configured: the guard works, and finds nodes by looking";
    assert!(none.assert_code(0).stdout.contains(says), "{}", none.stdout);
    let dead = cloud
        .command(&["doctor", "-o", "json"])
        .env(
            "UNPROVISION_NOTIFICATIONS__URL",
            "amqp://guest:hunter2@127.0.0.1:1/",
        )
        .spawn()
        .unwrap();
    let ran = finish(dead).await;
    ran.assert_code(0);
    for words in [
        "a broker is configured, and the guard would hear nothing of it",
        "cannot be reached",
    ] {
        assert!(ran.stdout.contains(words), "`{words}` in {}", ran.stdout);
    }
    assert!(!ran.stdout.contains("hunter2"), "{}", ran.stdout);
}

#[tokio::test]
async fn the_journal_and_the_clock_are_looked_at() {
    let cloud = Cloud::start(quick(1)).await;
    let late = Fault::on(Service::Ironic).path("/v1").nth(1);
    let late = late.status(http::StatusCode::OK, "{}");
    cloud
        .sandbox()
        .fault(late.header(DATE, "Mon, 30 Nov 2020 10:00:00 GMT"));
    let journal = cloud.home().join("journal.sqlite");
    std::fs::write(&journal, "this is no journal").unwrap();
    let ran = ask(&cloud).await;
    assert_broken(&ran, "journal", "another one would know nothing of what is held");
    assert!(ran.stdout.contains("s behind ours"), "{}", ran.stdout);

    std::fs::remove_file(&journal).unwrap();
    let delete = ["delete", "node-0001", "--yes"];
    cloud.run(&delete).await.assert_code(0);
    let ran = ask(&cloud).await;
    ran.assert_code(0);
    assert!(ran.stdout.contains("1 cases, 0 of them open"), "{}", ran.stdout);
}
