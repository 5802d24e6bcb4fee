//! The same random requests to the sandbox and to the real Ironic and Placement: both answer alike, and end alike.
//!
//! The contract files state facts that somebody thought of; this looks for those that nobody did. `tests/run` asks a few
//! hundred requests, `tests/measure diff` many thousands. `UNPROVISION_DIFF=SEED:COUNT` repeats what was found; several of them
//! are asked one after the other, each of a new world.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking, also in its helpers"
)]
#![allow(clippy::too_many_lines, reason = "a generator is a table of requests")]

mod ironic;
mod placement;
mod shape;
mod sides;

use unprovision_testkit::simulate::Dice;

use sides::{Call, Pair};

/// So many differences are told.
const AT_MOST: usize = 10;
/// Requests of each service in an ordinary run.
const COUNT: u64 = 150;

/// Seeds and counts: of the environment, or those of every run.
fn asked_for() -> Vec<(u64, u64)> {
    let text = std::env::var("UNPROVISION_DIFF").unwrap_or_else(|_| format!("1:{COUNT}"));
    let pair = |word: &str| {
        let (seed, count) = word.split_once(':').unwrap();
        (seed.parse().unwrap(), count.parse().unwrap())
    };
    text.split_whitespace().map(pair).collect()
}

/// Asks one request after the other, made from what was answered before.
async fn alike(
    name: &str,
    (seed, count): (u64, u64),
    pair: &mut Pair,
    mut next: impl FnMut(&mut Dice, &Pair) -> Call,
) {
    let mut dice = Dice::of(seed, 0);
    let mut found = Vec::new();
    for number in 0..count {
        let call = next(&mut dice, pair);
        let different = pair.ask(&call).await;
        if !different.is_empty() {
            let what = different.join("\n");
            found.push(format!(
                "request {number}: {call}\n{what}\nafter:\n{}\n",
                pair.story()
            ));
        }
    }
    assert!(
        found.is_empty(),
        "{name}: {} of {count} requests of UNPROVISION_DIFF={seed}:{count} were answered differently; what comes later may \
         follow from the first:\n\n{}",
        found.len(),
        found[..found.len().min(AT_MOST)].join("\n"),
    );
    println!("{name}: {count} requests of seed {seed} were answered alike");
}

#[tokio::test]
async fn placement_and_the_sandbox_answer_alike() {
    for asked in asked_for() {
        let mut pair = Pair::start().await;
        let world = placement::World::make(&mut pair).await;
        alike("Placement", asked, &mut pair, |dice, pair| world.next(dice, pair)).await;
    }
}

#[tokio::test]
async fn ironic_and_the_sandbox_answer_alike() {
    for asked in asked_for() {
        let mut pair = Pair::start().await;
        let world = ironic::World::make(&mut pair).await;
        alike("Ironic", asked, &mut pair, |dice, _| world.next(dice)).await;
    }
}
