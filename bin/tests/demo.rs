//! `unprovision demo`, end to end: the built binary, as a user runs it.
#![cfg(feature = "sandbox")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::process::{Command, Output};
use std::time::Duration;

use serde_json::Value;
use unprovision::cloud::{Clock, SystemClock};
use unprovision::strategy;

const BASELINE: &str = "nova-unfixed";

fn demo(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_unprovision"));
    command.arg("demo").args(args).output().unwrap()
}

fn number(row: &Value, key: &str) -> u64 {
    row[key].as_u64().unwrap_or_else(|| panic!("{key} in {row}"))
}

#[test]
fn the_baseline_exposes_nodes_and_no_strategy_does() {
    let began = SystemClock.elapsed();
    let output = demo(&["-o", "json", "--nodes", "3"]);
    let took = SystemClock.elapsed() - began;
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{words}");
    assert!(took < Duration::from_secs(60), "{took:?}");

    let rows: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    let names = rows
        .iter()
        .map(|row| row["strategy"].as_str().unwrap())
        .collect::<Vec<_>>();
    let expected = std::iter::once(BASELINE).chain(strategy::ALL.iter().map(|strategy| strategy.name()));
    assert_eq!(names, expected.collect::<Vec<_>>());

    let baseline = &rows[0];
    assert!(number(baseline, "exposed_ms") > 0);
    assert!(number(baseline, "exposed_samples") > 0);
    for row in &rows {
        assert_eq!(number(row, "nodes"), 3);
        assert!(number(row, "samples") > number(row, "exposed_samples"));
        assert!(number(row, "freed_after_ms") < 15_000);
    }
    for row in &rows[1..] {
        assert_eq!(
            (number(row, "exposed_ms"), number(row, "exposed_samples")),
            (0, 0),
            "{row}"
        );
        let tags = row["strategy"] == "trait-tagging";
        assert_eq!(row.get("exposed_samples_plain").is_some(), tags, "{row}");
        if tags {
            assert!(number(row, "exposed_samples_plain") > 0, "{row}");
        }
        let again = number(row, "offered_again_after_ms");
        assert!(again < number(baseline, "offered_again_after_ms"), "{row}");
        assert!(
            words.contains(row["strategy"].as_str().unwrap()),
            "no progress in {words}"
        );
    }
}

#[test]
fn the_table_fits_a_terminal_and_ends_with_the_next_step() {
    let output = demo(&["--nodes", "1", "--quiet"]);
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{words}");
    assert_eq!(words, "", "it was to be quiet");
    let page = String::from_utf8(output.stdout).unwrap();
    assert!(page.lines().all(|line| line.chars().count() <= 80), "{page}");
    assert!(
        !page.contains('\x1b'),
        "colours where there is no terminal:\n{page}"
    );
    let offered = page
        .lines()
        .filter(|line| line.starts_with("  offered   "))
        .collect::<Vec<_>>();
    assert_eq!(offered.len(), 1 + strategy::ALL.len());
    assert!(offered[0].contains('!'), "{page}");
    assert!(
        offered[1..]
            .iter()
            .all(|line| !line.contains('!') && line.contains('+')),
        "{page}"
    );
    assert!(page.contains("unprovision delete NODE --instance UUID"));
}

#[test]
fn a_demo_without_nodes_is_refused() {
    let output = demo(&["--nodes", "0"]);
    assert_eq!(output.status.code(), Some(2));
}
