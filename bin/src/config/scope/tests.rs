use std::path::Path;

use super::super::{Environment, load};
use super::*;

fn loaded(text: &str) -> Result<Scopes, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("some.toml");
    std::fs::write(&path, text).unwrap();
    let loaded = load(Some(&path), &Environment::default(), &[]).map_err(|error| error.to_string())?;
    Ok(loaded.config.scopes().unwrap())
}

#[test]
fn what_a_scope_does_not_say_is_as_in_the_guards_section() {
    let scopes = loaded(
        "release_nova_reservations = false\n[guard]\nstrategy = 'reserve-on-delete'\nmax_held_share = 0.3\n\
         [[scope]]\nname = 'a'\nconductor_group = 'rack-a'\nstrategy = 'hand-over'\nmax_held_floor = 1\n\
         [[scope]]\nname = 'b'\nnames = ['x-*', 'y']\n\
         [[scope]]\nname = 'c'\nowner = ''\nstrategy = 'audit-only'",
    )
    .unwrap();
    let all = scopes.iter().collect::<Vec<_>>();
    let care = |strategy: &str, floor| {
        Some(Care {
            strategy: strategy.to_owned(),
            release_nova_reservations: false,
            max_held_share: 0.3,
            max_held_floor: floor,
        })
    };
    assert_eq!(all[0].care, care("hand-over", 1));
    assert_eq!(all[1].care, care("reserve-on-delete", 10));
    assert_eq!(all[1].nodes.names.as_ref().unwrap(), &["x-*", "y"]);
    assert_eq!(
        (&all[2].care, all[2].nodes.owners.as_deref()),
        (&None, Some(&[String::new()][..]))
    );
}

#[test]
fn a_scope_that_cannot_be_meant_so_is_refused_when_it_is_read() {
    for (text, parts) in [
        ("name = 'a'", ["`a`", "does not say which nodes"]),
        ("shard = 's'", ["scope", "needs a `name`"]),
        (
            "name = 'a'\nconducter_group = 'x'",
            [
                "`scope.0.conducter_group`",
                "did you mean `scope.0.conductor_group`?",
            ],
        ),
        (
            "name = 'a'\nshard = 's'\nstrategy = 'hand-ower'",
            ["`a`", "did you mean `hand-over`?"],
        ),
        (
            "name = 'a'\nshard = 's'\nstrategy = 'wait-for-available'",
            ["`a`", "whoever deletes the server drops"],
        ),
        (
            "name = 'a'\nshard = 's'\nmax_held_share = 1.5",
            ["`a`", "is no share"],
        ),
        (
            "name = 'a'\nshard = 's'\nstrategy = 'audit-only'\nmax_held_floor = 3",
            ["`a`", "limits mean nothing"],
        ),
        ("name = 'a'\nshard = 7", ["`scope.0.shard`", "a list of such"]),
        ("name = 'a'\nnames = []", ["`a`", "empty list"]),
        (
            "name = 'a'\nnames = '*'\n[[scope]]\nname = 'b'\nshard = 's'",
            ["scope `b`", "never be reached"],
        ),
    ] {
        let said = loaded(&format!("[[scope]]\n{text}")).unwrap_err();
        for part in parts {
            assert!(said.contains(part), "{text}\n{said}");
        }
        assert!(said.contains("some.toml"), "{said}");
    }
}

/// The example's scope is a comment, since without scopes the whole cloud is guarded.
#[test]
fn the_scope_of_the_example_is_one_and_has_every_key() {
    let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/unprovision.example.toml"));
    let text = std::fs::read_to_string(path).unwrap();
    let sample = text.split_once("# [[scope]]").unwrap().1;
    let lines = sample.lines().map(|line| line.trim_start_matches("# "));
    let sample = format!("[[scope]]{}", lines.collect::<Vec<_>>().join("\n"));
    let sample = sample
        .replace("A strategy of the guard", "# A strategy")
        .replace("The same as", "# The same as");
    assert_eq!(loaded(&sample).unwrap().iter().count(), 1);
    for key in Scope::KEYS {
        assert!(sample.contains(&format!("\n{key} = ")), "{key}");
    }
}
