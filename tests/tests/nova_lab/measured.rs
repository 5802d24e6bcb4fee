//! The larger matrix: what a deletion costs and shows under both rules, by Nova alone and with the guard beside it.
//! `tests/measure guard` runs it.

use std::fmt::Write;
use std::path::Path;
use std::time::Duration;

use unprovision_testkit::lab::nova::Rule;

use crate::common::{Group, Stage, secs};
use crate::guard::Guard;
use crate::story::{Figures, median, watched};

/// As many as are built, deleted and cleaned between two passes on a busy machine.
const AT_ONCE: usize = 5;
/// Twenty deletions for each row.
const ROUNDS: usize = 4;
/// Nova's own.
const INTERVAL: u64 = 60;
const SHAPE: [&str; 4] = ["--step-seconds", "30", "--knob", "lab_tear_down_seconds=4"];

#[tokio::test]
#[ignore = "takes a quarter of an hour: `tests/measure guard`"]
async fn guard_measured_beside_the_old_rule() {
    measured(Rule::Old, "old rule, settled servers", "1-old").await;
}

#[tokio::test]
#[ignore = "takes a quarter of an hour: `tests/measure guard`"]
async fn guard_measured_beside_todays_nova() {
    measured(
        Rule::Current,
        "as shipped, servers claimed during a pass",
        "2-current",
    )
    .await;
}

/// Writes `target/nova-lab-measured/KEY.md`.
async fn measured(rule: Rule, name: &str, key: &str) {
    let (without, with) = rounds(rule).await;
    let mut table = String::new();
    row(&mut table, name, "alone", &without);
    row(&mut table, name, "guard", &with);
    println!("{table}");
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    let folder = target.join("nova-lab-measured");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join(format!("{key}.md")), table).unwrap();
    assert!(without.iter().any(|figures| figures.exposed > Duration::ZERO));
    assert!(
        with.iter().all(|figures| figures.exposed == Duration::ZERO),
        "{with:?}"
    );
}

async fn rounds(rule: Rule) -> (Vec<Figures>, Vec<Figures>) {
    let groups: [(&str, usize, &[&str]); 3] = [
        ("alone", AT_ONCE, &SHAPE),
        ("guarded", AT_ONCE, &SHAPE),
        ("others", 4, &[]),
    ];
    let (stage, groups) = Stage::new(rule, secs(INTERVAL), &groups).await;
    let [control, ours, others] = &groups[..] else {
        unreachable!()
    };
    if rule == Rule::Current {
        stage.slow_visits(&others.nodes, secs(3));
    }
    let (mut without, mut with) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let servers = servers(&stage, rule, control, others).await;
        without.extend(watched(&stage, control, &servers, true).await);
        let guard = Guard::start(&stage).await;
        let servers = self::servers(&stage, rule, ours, others).await;
        with.extend(watched(&stage, ours, &servers, true).await);
        assert!(guard.stop().await.success());
    }
    (without, with)
}

/// Servers as the rule needs them to show the bug.
async fn servers(stage: &Stage, rule: Rule, group: &Group, others: &Group) -> Vec<crate::common::Placed> {
    if rule == Rule::Current {
        stage.visit(&others.nodes).await;
    }
    let servers = stage.servers(group).await;
    if rule == Rule::Old {
        stage.pass().await;
    }
    servers
}

fn row(table: &mut String, nova: &str, who: &str, figures: &[Figures]) {
    let spread = |of: &dyn Fn(&Figures) -> Option<Duration>, unit: f64| {
        let times = figures.iter().filter_map(of).collect::<Vec<_>>();
        let max = times.iter().max().copied().unwrap_or_default();
        let show = |time: Duration| format!("{:.*}", usize::from(unit < 10.0), time.as_secs_f64() * unit);
        format!("{} / {}", show(median(times)), show(max))
    };
    let sampled = figures
        .iter()
        .map(|figures| figures.sampled)
        .max()
        .unwrap_or_default();
    writeln!(
        table,
        "| {nova} | {who} | {} | {} | {:.0} | {} | {} |",
        figures.len(),
        spread(&|figures| Some(figures.exposed), 1000.0),
        sampled.as_secs_f64() * 1000.0,
        spread(&|figures| Some(figures.gone), 1.0),
        spread(&|figures| figures.offered, 1.0),
    )
    .unwrap();
}
