//! The table of what deletions cost and showed.

use std::fmt::Write;
use std::path::Path;
use std::time::Duration;

use unprovision_testkit::lab::sampler::Samples;

use crate::common::{Deletion, Placed, Stage};
use crate::story::{Figures, figures, median};
use crate::tally::{Since, errors, writes};

/// One deletion.
#[derive(Clone, Copy, Debug)]
pub(crate) struct One {
    pub(crate) figures: Figures,
    writes: usize,
    errors: usize,
}

/// What each of these deletions cost and showed.
pub(crate) fn ones(
    stage: &Stage,
    servers: &[Placed],
    deletions: &[Deletion],
    since: Since,
    samples: &Samples,
) -> Vec<One> {
    let figures = figures(stage, deletions, since.mark, samples);
    let one = |(figures, placed): (Figures, &Placed)| One {
        figures,
        writes: writes(stage, placed, since),
        errors: errors(stage, placed, since),
    };
    figures.into_iter().zip(servers).map(one).collect()
}

/// One line of the table.
pub(crate) fn row(table: &mut String, nova: &str, who: &str, ones: &[One]) {
    let spread = |of: &dyn Fn(&Figures) -> Option<Duration>, unit: f64| {
        let times = ones.iter().filter_map(|one| of(&one.figures)).collect::<Vec<_>>();
        let max = times.iter().max().copied().unwrap_or_default();
        let show = |time: Duration| format!("{:.*}", usize::from(unit < 10.0), time.as_secs_f64() * unit);
        format!("{} / {}", show(median(times)), show(max))
    };
    let exposed = ones
        .iter()
        .filter(|one| one.figures.exposed > Duration::ZERO)
        .count();
    let sampled = ones
        .iter()
        .map(|one| one.figures.sampled)
        .max()
        .unwrap_or_default();
    let writes = ones.iter().map(|one| one.writes);
    writeln!(
        table,
        "| {nova} | {who} | {} | {exposed} | {} | {:.0} | {} | {} | {} / {} | {} |",
        ones.len(),
        spread(&|figures| Some(figures.exposed), 1000.0),
        sampled.as_secs_f64() * 1000.0,
        spread(&|figures| Some(figures.gone), 1.0),
        spread(&|figures| figures.offered, 1.0),
        writes.clone().min().unwrap_or_default(),
        writes.max().unwrap_or_default(),
        ones.iter().map(|one| one.errors).sum::<usize>(),
    )
    .unwrap();
}

/// Writes `target/nova-lab-measured/KEY.md`.
pub(crate) fn keep(key: &str, table: &str) {
    println!("{table}");
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    let folder = target.join("nova-lab-measured");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join(format!("{key}.md")), table).unwrap();
}
