//! Some thousand files by chance, made from the example; with `FUZZ_SECONDS` it goes on for so long.

use std::time::Duration;

use unprovision::cloud::{Clock, SystemClock};
use unprovision_testkit::fuzz::changed;
use unprovision_testkit::simulate::Dice;

use super::*;

/// Every setting, as a file that is meant to be copied.
const EXAMPLE: &str = include_str!("../../unprovision.example.toml");
/// So much time in an ordinary run.
const SECONDS: u64 = 3;

#[test]
fn a_file_is_read_or_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("some.toml");
    let set = EXAMPLE
        .lines()
        .map(|line| line.strip_prefix("# ").unwrap_or(line));
    let seeds = [
        EXAMPLE.to_owned(),
        set.map(|line| format!("{line}\n")).collect::<String>(),
        "journal = \"mysql://me:pass@db/journal\"\n[notifications]\nurl = \"amqp://u:pass@broker\"\n"
            .to_owned(),
    ]
    .map(String::into_bytes);
    let seconds = std::env::var("FUZZ_SECONDS").ok();
    let seconds = seconds.map_or(SECONDS, |text| text.parse().unwrap());
    let end = SystemClock.elapsed() + Duration::from_secs(seconds);
    let (mut number, mut loaded) = (0, 0);
    while SystemClock.elapsed() < end {
        let input = changed(&mut Dice::of(20_261_201, number), &seeds);
        std::fs::write(&path, &input).unwrap();
        let read = std::panic::catch_unwind(|| load(Some(&path), &Environment::default(), &[]));
        let text = String::from_utf8_lossy(&input);
        match read.unwrap_or_else(|_| panic!("file {number}: {text:?}")) {
            Ok(_) => loaded += 1,
            Err(error) => assert!(!error.to_string().is_empty(), "file {number}: {text}"),
        }
        number += 1;
    }
    println!("{number} files, {loaded} of them loaded, in {seconds} s");
    assert!(
        number > 100 && loaded > 0,
        "{number} files, {loaded} of them loaded"
    );
}
