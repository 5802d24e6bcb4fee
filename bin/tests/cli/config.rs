//! The configuration, seen from outside.

use serde_json::Value;

use crate::support::{Cloud, Ran, bare, bare_in, finish, quick};

/// Runs the command in this folder, with these variables and nothing else.
async fn run(folder: &std::path::Path, args: &[&str], variables: &[(&str, &str)]) -> Ran {
    let mut command = bare(args);
    command
        .current_dir(folder)
        .env("HOME", folder)
        .envs(variables.iter().copied());
    finish(command.spawn().unwrap()).await
}

#[tokio::test]
async fn each_value_is_shown_with_where_it_came_from() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(
        folder.path().join("unprovision.toml"),
        "poll = '2s'\n[ironic]\ncloud = 'http://u:s3cr3t@h'",
    )
    .unwrap();
    let variables = [
        ("UNPROVISION_DEADLINE", "2h"),
        ("UNPROVISION_PLACEMENT__REGION", "north"),
    ];
    let ran = run(
        folder.path(),
        &["config", "--os-cloud", "prod", "-o", "json"],
        &variables,
    )
    .await;
    let shown: Value = serde_json::from_str(&ran.assert_code(0).stdout).unwrap();
    for (key, value, from) in [
        ("os_cloud", Value::from("prod"), "--os-cloud"),
        ("poll", "2s".into(), "unprovision.toml"),
        ("deadline", "2h".into(), "UNPROVISION_DEADLINE"),
        (
            "placement.region",
            "north".into(),
            "UNPROVISION_PLACEMENT__REGION",
        ),
        ("strategy", "hand-over".into(), "default"),
        ("concurrency", 16.into(), "default"),
        ("ironic.cloud", "http://***@h".into(), "unprovision.toml"),
    ] {
        assert_eq!(shown[key]["value"], value, "{key}");
        assert!(
            shown[key]["from"].as_str().unwrap().ends_with(from),
            "{key}: {}",
            shown[key]
        );
    }
    assert!(!ran.stdout.contains("s3cr3t"));
}

#[tokio::test]
async fn what_is_shown_is_a_file_that_can_be_used() {
    let folder = tempfile::tempdir().unwrap();
    let ran = run(folder.path(), &["config"], &[("UNPROVISION_POLL", "5s")]).await;
    assert!(
        ran.assert_code(0)
            .stdout
            .contains("poll = \"5s\" # UNPROVISION_POLL\n"),
        "{}",
        ran.stdout
    );
    std::fs::write(folder.path().join("copy.toml"), &ran.stdout).unwrap();
    let again = run(folder.path(), &["--config", "copy.toml", "config"], &[]).await;
    let plain = |text: &str| {
        text.lines()
            .map(|line| line.split(" # ").next().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(plain(&again.assert_code(0).stdout), plain(&ran.stdout));
}

#[tokio::test]
async fn an_unknown_key_is_refused_with_the_nearest() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("bad.toml"), "[placement]\nendpont = 'x'").unwrap();
    let named = [("UNPROVISION_CONFIG", "bad.toml")];
    for (args, variables) in [
        (vec!["--config", "bad.toml", "config"], [].as_slice()),
        (vec!["delete", "n", "--yes"], &named),
    ] {
        let ran = run(folder.path(), &args, variables).await;
        ran.assert_code(2).assert_says(&[
            "`placement.endpont`",
            "bad.toml",
            "did you mean `placement.endpoint`?",
        ]);
    }
    run(folder.path(), &["config"], &[("UNPROVISION_STRATEGI", "x")])
        .await
        .assert_code(2)
        .assert_says(&["`strategy`?"]);
    run(folder.path(), &["--config", "none.toml", "config"], &[])
        .await
        .assert_code(2)
        .assert_says(&["none.toml cannot be read"]);
    run(folder.path(), &["config"], &[("RUST_LOG", "a=b=c")])
        .await
        .assert_code(2)
        .assert_says(&["RUST_LOG"]);
}

/// `unprovision config | head -1`
#[tokio::test]
async fn whoever_does_not_read_to_the_end_hears_no_complaint() {
    let folder = tempfile::tempdir().unwrap();
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = bare_in(folder.path(), &["config"]);
    command.stdout(writer);
    let ran = finish(command.spawn().unwrap()).await;
    assert_eq!(ran.assert_code(0).stderr, "");
}

#[tokio::test]
async fn the_strategy_of_a_flag_wins_over_the_environment_over_the_file() {
    let cloud = Cloud::start(quick(3)).await;
    std::fs::write(
        cloud.home().join("unprovision.toml"),
        "strategy = 'reserve-on-delete'",
    )
    .unwrap();
    let strategy = async |args: &[&str], variable: Option<&str>| {
        let mut command = cloud.command(&[args, &["--yes", "-o", "json"]].concat());
        command.envs(variable.map(|value| ("UNPROVISION_STRATEGY", value)));
        finish(command.spawn().unwrap()).await.assert_code(0).row()["strategy"].clone()
    };
    assert_eq!(
        strategy(&["delete", "node-0001"], None).await,
        "reserve-on-delete"
    );
    assert_eq!(
        strategy(&["delete", "node-0002"], Some("hand-over")).await,
        "hand-over"
    );
    let flag = ["delete", "node-0003", "--strategy", "reserve-on-delete"];
    assert_eq!(strategy(&flag, Some("hand-over")).await, "reserve-on-delete");
}

/// With another one a brake of the guard would hold always, or never.
#[tokio::test]
async fn a_share_is_from_0_to_1() {
    let folder = tempfile::tempdir().unwrap();
    for (key, value, code) in [
        ("MAX_HELD_SHARE", "nan", 2),
        ("MAX_HELD_SHARE", "-1", 2),
        ("MAX_HELD_SHARE", "half", 2),
        ("MAX_HELD_SHARE", "1", 0),
        ("MIN_NODES_SHARE", "7.0", 2),
        ("MIN_NODES_SHARE", "inf", 2),
        ("MIN_NODES_SHARE", "0", 0),
    ] {
        let variable = format!("UNPROVISION_GUARD__{key}");
        let ran = run(folder.path(), &["config"], &[(&variable, value)]).await;
        ran.assert_code(code);
        if code == 2 {
            let key = format!("`guard.{}` in {variable}", key.to_lowercase());
            ran.assert_says(&[&key, "a number from 0 to 1"]);
        }
    }
}

/// What a machine reads is for machines to the last line, and what cannot be printed is told with where it should have gone.
#[tokio::test]
async fn errors_are_json_too_and_say_where_the_output_should_have_gone() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = bare(&["config", "--log-format", "json"]);
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    command.env("HOME", folder.path()).stdout(full);
    let ran = finish(command.spawn().unwrap()).await;
    let said: Value = serde_json::from_str(&ran.assert_code(1).stderr).unwrap();
    let said = said["message"].as_str().unwrap();
    assert!(
        said.starts_with("error: cannot write to standard output: No space left"),
        "{said}"
    );
    let variables = [("UNPROVISION_POLL", "never")];
    let ran = run(folder.path(), &["config", "--log-format", "json"], &variables).await;
    let said: Value = serde_json::from_str(&ran.assert_code(2).stderr).unwrap();
    assert!(said["message"].as_str().unwrap().contains("`poll`"), "{said}");
}
