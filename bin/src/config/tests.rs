use std::path::Path;

use super::*;

fn environment(variables: &[(&str, &str)]) -> Environment {
    variables
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}

fn flag(flag: &'static str, key: &'static str, value: &str) -> Flag {
    Flag {
        flag,
        key,
        value: value.to_owned(),
    }
}

/// Loads this text as the file that was asked for.
fn load_text(text: &str, variables: &[(&str, &str)], flags: &[Flag]) -> Result<Loaded, ConfigError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("some.toml");
    std::fs::write(&path, text).unwrap();
    load(Some(&path), &environment(variables), flags)
}

fn problem(text: &str, variables: &[(&str, &str)]) -> String {
    load_text(text, variables, &[]).unwrap_err().to_string()
}

fn setting(loaded: &Loaded, key: &str) -> (String, String) {
    let found = loaded.values.iter().find(|setting| setting.key == key).unwrap();
    (found.value.to_string(), found.from.clone())
}

#[test]
fn the_example_has_every_key_with_its_default() {
    let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/unprovision.example.toml"));
    let loaded = load(Some(path), &environment(&[("HOME", "/home/u")]), &[]).unwrap();
    // A scope of an example would not be the default.
    for Setting { key, from, .. } in loaded.values.iter().filter(|setting| setting.key != "scope") {
        assert_eq!(
            from,
            &path.display().to_string(),
            "`{key}` is missing in the example"
        );
    }
    let default = Config {
        journal: loaded.config.journal.clone(),
        ..Config::default()
    };
    assert_eq!(loaded.config, default);
    let text = std::fs::read_to_string(path).unwrap();
    assert!(text.contains("journal = \"\"") && text.lines().all(|line| line.len() <= 120));
}

#[test]
fn flags_win_over_the_environment_over_the_file_over_the_defaults() {
    let text = "strategy = 'reserve-on-delete'\npoll = '2s'\ndeadline = '3d'\n[ironic]\nregion = 'south'\ncloud = 'x'";
    let variables = [
        ("UNPROVISION_POLL", "3s"),
        ("UNPROVISION_DEADLINE", "2h"),
        ("UNPROVISION_IRONIC__REGION", "north"),
    ];
    let loaded = load_text(text, &variables, &[flag("--deadline", "deadline", "5m")]).unwrap();
    assert_eq!(loaded.config.strategy, "reserve-on-delete");
    assert!(setting(&loaded, "strategy").1.ends_with("/some.toml"));
    assert_eq!(
        setting(&loaded, "poll"),
        ("\"3s\"".into(), "UNPROVISION_POLL".into())
    );
    assert_eq!(
        setting(&loaded, "deadline"),
        ("\"5m\"".into(), "--deadline".into())
    );
    assert_eq!(
        setting(&loaded, "ironic.region"),
        ("\"north\"".into(), "UNPROVISION_IRONIC__REGION".into())
    );
    assert_eq!(loaded.config.ironic.cloud, "x");
    assert_eq!(setting(&loaded, "concurrency"), ("16".into(), "default".into()));
}

#[test]
fn os_cloud_of_the_shell_wins_over_the_file_only() {
    let file = "os_cloud = 'file'";
    let from = |variables: &[(&str, &str)], flags: &[Flag]| {
        setting(&load_text(file, variables, flags).unwrap(), "os_cloud")
    };
    assert_eq!(from(&[], &[]).0, "\"file\"");
    assert_eq!(from(&[("OS_CLOUD", "")], &[]).0, "\"file\"");
    assert_eq!(
        from(&[("OS_CLOUD", "shell")], &[]),
        ("\"shell\"".into(), "OS_CLOUD".into())
    );
    let both = [("OS_CLOUD", "shell"), ("UNPROVISION_OS_CLOUD", "ours")];
    assert_eq!(from(&both, &[]).1, "UNPROVISION_OS_CLOUD");
    assert_eq!(
        from(&both, &[flag("--os-cloud", "os_cloud", "123")]),
        ("\"123\"".into(), "--os-cloud".into())
    );
}

#[test]
fn variables_are_text_that_means_numbers_and_truth_values() {
    let variables = [
        ("UNPROVISION_CONCURRENCY", "4"),
        ("UNPROVISION_MAX_TEAR_DOWNS", "7"),
        ("UNPROVISION_RELEASE_NOVA_RESERVATIONS", "false"),
        ("UNPROVISION_OS_CLOUD", "1e5"),
        ("UNPROVISION_LOG__FORMAT", "json"),
    ];
    let config = load_text("", &variables, &[]).unwrap().config;
    assert_eq!((config.concurrency.get(), config.max_tear_downs), (4, 7));
    assert!(!config.release_nova_reservations);
    assert_eq!(
        (config.os_cloud.as_str(), config.log.format),
        ("1e5", LogFormat::Json)
    );
}

#[test]
fn an_unknown_key_is_refused_with_the_nearest() {
    for (text, variables, key, from, nearest) in [
        ("stratgy = 'x'", [].as_slice(), "stratgy", "some.toml", "strategy"),
        (
            "[ironic]\nendpont = 'x'",
            &[],
            "ironic.endpont",
            "some.toml",
            "ironic.endpoint",
        ),
        (
            "",
            &[("UNPROVISION_IRONIC_CLOUD", "x")],
            "ironic_cloud",
            "UNPROVISION_IRONIC_CLOUD",
            "ironic.cloud",
        ),
        (
            "",
            &[("UNPROVISION_PLACEMENT__REGIO", "x")],
            "placement.regio",
            "UNPROVISION_PLACEMENT__REGIO",
            "placement.region",
        ),
    ] {
        let said = problem(text, variables);
        for part in [
            format!("`{key}`"),
            from.to_owned(),
            format!("did you mean `{nearest}`?"),
        ] {
            assert!(said.contains(&part), "{said}");
        }
    }
}

#[test]
fn a_value_that_cannot_be_used_names_its_key_and_where_it_is() {
    for (text, variables, parts) in [
        (
            "deadline = '90'",
            [].as_slice(),
            ["`deadline`", "some.toml", "such as 90s"],
        ),
        (
            "deadline = 90",
            &[],
            ["`deadline`", "some.toml", "number 90 is not what it takes"],
        ),
        ("concurrency = 0", &[], ["`concurrency`", "some.toml", "0"]),
        (
            "strategy = 'hand-ower'",
            &[],
            ["`strategy`", "some.toml", "did you mean `hand-over`?"],
        ),
        (
            "[log]\nformat = 'xml'",
            &[],
            ["`log.format`", "some.toml", "json"],
        ),
        (
            "[guard]\nuser_id = ''",
            &[],
            ["`guard.user_id`", "some.toml", "255"],
        ),
        (
            "ironic = 'x'",
            &[],
            ["`ironic`", "some.toml", "a section: `[ironic]`"],
        ),
        (
            "",
            &[("UNPROVISION_POLL", "often")],
            ["`poll`", "UNPROVISION_POLL", "such as 90s"],
        ),
        ("nonsense", &[], ["some.toml", "cannot be read", "expected"]),
    ] {
        let said = problem(text, variables);
        for part in parts {
            assert!(said.contains(part), "`{part}` in {said}");
        }
    }
}

/// Variable, value, key, and what is said.
const WRONG: &[(&str, &str, &str, &str)] = &[
    ("DEADLINE", "1ns", "deadline", "1s at least"),
    ("POLL", "1us", "poll", "10ms at least"),
    ("IRONIC__TIMEOUT", "5ms", "ironic.timeout", "1s at least"),
    (
        "IRONIC__ENDPOINT",
        "ironic",
        "ironic.endpoint",
        "https://host:port/path",
    ),
    (
        "PLACEMENT__ENDPOINT",
        "ftp://h",
        "placement.endpoint",
        "neither http nor https",
    ),
    (
        "PLACEMENT__ENDPOINT",
        "https://u:s3cr3t@h",
        "placement.endpoint",
        "user name or password",
    ),
    (
        "IRONIC__INTERFACE",
        "privat",
        "ironic.interface",
        "public, internal, admin",
    ),
    ("GUARD__PROJECT_ID", "service", "guard.project_id", "not a UUID"),
    ("LOG__LEVEL", "wran", "log.level", "`wran` is not a level"),
    (
        "LOG__LEVEL",
        "warn,a=b=c",
        "log.level",
        "error, warn, info, debug, trace",
    ),
    (
        "JOURNAL",
        "oracle://u:s3cr3t@h/db",
        "journal",
        "the path of a file, postgres://",
    ),
    (
        "JOURNAL",
        "memory:x",
        "journal",
        "the path of a file, postgres://",
    ),
    ("JOURNAL", "/tmp", "journal", "/tmp is a folder"),
    (
        "JOURNAL",
        "/dev/null/journal.sqlite",
        "journal",
        "/dev/null is not a folder",
    ),
];

/// All that can be known to be wrong is told when the configuration is read.
#[test]
fn a_value_that_would_fail_later_is_refused_now() {
    for (variable, value, key, says) in WRONG {
        let variable = format!("UNPROVISION_{variable}");
        let said = problem("", &[(&variable, value)]);
        assert!(said.starts_with(&format!("`{key}` in {variable}: ")), "{said}");
        assert!(said.contains(says) && !said.contains("s3cr3t"), "{said}");
    }
}

#[test]
fn what_is_right_is_taken() {
    for (variable, value) in [
        ("JOURNAL", "postgres://u:p@h/db"),
        ("JOURNAL", "mysql://u@h:3306/db?ssl-mode=disabled"),
        ("LOG__LEVEL", "WARN"),
        (
            "LOG__LEVEL",
            "warn,unprovision=debug,hyper::client=off,[span]=trace",
        ),
        ("IRONIC__ENDPOINT", "https://h/baremetal/v1/"),
        ("IRONIC__INTERFACE", "internal"),
        ("GUARD__PROJECT_ID", "2f9b6d4e7b1a5c3d8e0fa1b2c3d4e5f6"),
        ("JOURNAL", "not/there/yet.sqlite"),
    ] {
        load_text("", &[(&format!("UNPROVISION_{variable}"), value)], &[]).unwrap();
    }
}

#[test]
fn what_is_wrong_is_said_without_the_words_of_types() {
    for (text, says) in [
        (
            "concurrency = 'many'",
            "`many` is not what it takes; write a whole number, 1 or more",
        ),
        (
            "concurrency = 0",
            "the number 0 is not what it takes; write a whole number, 1 or more",
        ),
        ("max_tear_downs = -1", "write a whole number, 0 or more"),
        (
            "release_nova_reservations = 'perhaps'",
            "`perhaps` is not what it takes; write true or false",
        ),
        (
            "os_cloud = ['a']",
            "a list is not what it takes; write a text in quotes",
        ),
        ("poll = true", "write a duration with a unit"),
        ("log = 'warn'", "write a section: `[log]`"),
        (
            "[log]\nformat = 'xml'",
            "`xml` is not what it takes; write text or json",
        ),
    ] {
        let said = problem(text, &[]);
        assert!(said.contains(says), "{said}");
        for word in [
            "string",
            "usize",
            "u64",
            "struct",
            "bool",
            "variant",
            "invalid type",
            "sequence",
        ] {
            assert!(!said.contains(word), "{said}");
        }
    }
}

#[test]
fn the_file_is_the_one_asked_for_or_the_first_of_the_usual_places() {
    let folder = tempfile::tempdir().unwrap();
    let own = folder.path().join(".config/unprovision");
    std::fs::create_dir_all(&own).unwrap();
    std::fs::write(own.join("config.toml"), "poll = '7s'").unwrap();
    std::fs::write(folder.path().join("named.toml"), "poll = '8s'").unwrap();
    let home = folder.path().to_str().unwrap();
    let named = format!("{home}/named.toml");
    let poll = |variables: &[(&str, &str)]| {
        load(None, &environment(variables), &[])
            .unwrap()
            .config
            .poll
            .to_string()
    };
    assert_eq!(poll(&[("HOME", home)]), "7s");
    assert_eq!(poll(&[("XDG_CONFIG_HOME", &format!("{home}/.config"))]), "7s");
    assert_eq!(poll(&[("XDG_CONFIG_HOME", "/nonexistent"), ("HOME", home)]), "1s");
    assert_eq!(poll(&[("HOME", home), ("UNPROVISION_CONFIG", &named)]), "8s");
    let missing = load(
        Some(Path::new("/nonexistent/x.toml")),
        &Environment::default(),
        &[],
    )
    .unwrap_err();
    assert!(
        missing.to_string().contains("/nonexistent/x.toml cannot be read"),
        "{missing}"
    );
}

#[test]
fn a_journal_in_the_home_may_be_written_with_a_tilde() {
    let journal = |text: &str| {
        load_text(text, &[("HOME", "/home/u")], &[])
            .unwrap()
            .config
            .journal
    };
    assert_eq!(&*journal("journal = '~/j.sqlite'"), "/home/u/j.sqlite");
    assert_eq!(&*journal("journal = 'memory:'"), "memory:");
    assert!(journal("").ends_with("/unprovision/journal.sqlite"));
    let own = [("HOME", "/home/u"), ("XDG_STATE_HOME", "/state")];
    let config = load_text("", &own, &[]).unwrap().config;
    assert_eq!(
        &*config.journal, "/state/unprovision/journal.sqlite",
        "also for root"
    );
}

#[test]
fn debug_shows_no_password_of_the_journals_server() {
    let place = "mysql://me:very-secret@db/journal?password=secret";
    let config = load_text(&format!("journal = '{place}'"), &[], &[])
        .unwrap()
        .config;
    let debug = format!("{config:?}");
    assert!(debug.contains("mysql://me@db/journal") && !debug.contains("secret"));
}
