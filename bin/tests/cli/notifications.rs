//! `[notifications]`: checked before anything is touched, never shown with a password, and no harm where there is no broker.

use std::time::Duration;

use rustix::process::Signal;
use tokio::time::timeout;

use crate::support::{Cloud, bare_in, finish, quick, send};

const SECRET: &str = "hunter2";
const URL: &str = "UNPROVISION_NOTIFICATIONS__URL";

#[tokio::test]
async fn no_password_of_a_broker_is_shown() {
    let folder = tempfile::tempdir().unwrap();
    for format in ["toml", "json"] {
        let mut command = bare_in(folder.path(), &["config", "-o", format]);
        command.env(
            URL,
            format!("amqps://me:{SECRET}@one/ amqp://me:{SECRET}@two:1/v"),
        );
        let ran = finish(command.spawn().unwrap()).await;
        ran.assert_code(0);
        assert!(
            ran.stdout.contains("amqps://***@one/ amqp://***@two:1/v"),
            "{}",
            ran.stdout
        );
        assert!(!ran.stdout.contains(SECRET), "{}", ran.stdout);
    }
}

#[tokio::test]
async fn what_cannot_be_used_is_refused_before_anything_is_touched() {
    let cloud = Cloud::start(quick(1)).await;
    for (key, value, says) in [
        (
            "URL",
            format!("rabbit://me:{SECRET}@one/"),
            "neither amqp nor amqps",
        ),
        ("URL", format!("amqp://me:{SECRET}@one/ {SECRET}"), "no URL"),
        ("QUEUE", "q".repeat(300), "1 to 200 characters"),
        ("EXCHANGE", " ".repeat(201), "1 to 200 characters"),
        ("CA_FILE", "/does/not/exist".to_owned(), "cannot be read"),
        ("CA_FILE", "/dev/null".to_owned(), "no certificate"),
        ("MAX_LENGTH", "0".to_owned(), "a whole number, 1 or more"),
        ("EXPIRES", "1ms".to_owned(), "too short"),
        ("SILENCE", "soon".to_owned(), "notifications.silence"),
    ] {
        let mut command = cloud.command(&["guard"]);
        command.env(format!("UNPROVISION_NOTIFICATIONS__{key}"), value);
        let ran = finish(command.spawn().unwrap()).await;
        ran.assert_code(2).assert_says(&[says]);
        assert!(!ran.stderr.contains(SECRET), "{}", ran.stderr);
    }
    assert_eq!(cloud.sandbox().log().requests().count(), 0, "nothing was asked");
}

/// The broker is not there: that is said, without the password however much is logged, and the guard guards.
#[tokio::test]
async fn without_its_broker_the_guard_guards() {
    let cloud = Cloud::with_nova_traits(quick(1).teardown(Duration::from_secs(2))).await;
    let one = cloud.only();
    let mut command = cloud.command(&["-vvv", "guard"]);
    command
        .env(URL, format!("amqp://me:{SECRET}@127.0.0.1:1/"))
        .env("UNPROVISION_GUARD__LOOK", "100ms");
    let guard = command.spawn().unwrap();
    let instance = one.instance.parse().unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    cloud
        .sandbox()
        .with(|world, now| world.nova_delete(instance, now));
    let back = async {
        while !cloud.sandbox().is_offered(one.node)
            || !cloud
                .sandbox()
                .with(|world, _| world.holders(one.node))
                .is_empty()
        {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(Duration::from_secs(60), back)
        .await
        .expect("it comes back");
    send(&guard, Signal::TERM);
    let ran = finish(guard).await;
    ran.assert_code(0).assert_says(&[
        "hears nothing of RabbitMQ at amqp://127.0.0.1:1/",
        "not connected",
    ]);
    assert!(!ran.stderr.contains(SECRET), "{}", ran.stderr);
}
