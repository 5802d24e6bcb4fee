//! What a strategy promises, held against what was found.

use serde::Serialize;
use unprovision::strategy::{Gap, Strategy};

use super::scope::Scope;
use super::search::{Report, check};
use crate::model::{Breach, Product};

/// What is to be said of a strategy after all searches.
#[derive(Clone, Debug, Serialize)]
pub struct Verdict {
    /// The strategy.
    pub strategy: &'static str,
    /// How many different states there are, over all worlds.
    pub states: usize,
    /// How many moves lead from one to another.
    pub moves: usize,
    /// The worlds that were searched.
    pub worlds: Vec<World>,
    /// What was broken and is not declared: how many kinds, in how many worlds.
    pub violations: usize,
    /// The window that was found where the strategy declares one; the shortest.
    pub window: Option<Window>,
    /// Those that it declares besides.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub further_windows: Vec<Window>,
    /// What it declares and nothing shows.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_found: Vec<&'static str>,
    /// The violations, each with the shortest way there.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub violated: Vec<Violation>,
}

/// A world that was searched.
#[derive(Clone, Debug, Serialize)]
pub struct World {
    /// Its name.
    pub world: &'static str,
    /// How much may go wrong.
    pub disturbances: String,
    /// How many different states there are.
    pub states: usize,
    /// How many moves lead from one to another.
    pub moves: usize,
    /// The longest of the shortest ways to a state.
    pub depth: usize,
}

impl From<&Report> for World {
    fn from(report: &Report) -> Self {
        Self {
            world: report.scope.name,
            disturbances: report.scope.budget.words(),
            states: report.states,
            moves: report.moves,
            depth: report.depth,
        }
    }
}

/// A window: where, and the shortest way into it.
#[derive(Clone, Debug, Serialize)]
pub struct Window {
    /// Beside whom it is open.
    pub beside: &'static str,
    /// The world it was found in.
    pub world: &'static str,
    /// The way into it.
    pub trace: Vec<String>,
}

/// A rule that was broken.
#[derive(Clone, Debug, Serialize)]
pub struct Violation {
    /// Which.
    pub breach: String,
    /// The world it was found in.
    pub world: &'static str,
    /// How many moves lead into it.
    pub count: usize,
    /// The shortest way there.
    pub trace: Vec<String>,
}

impl Verdict {
    /// Whether all is as promised, and every window as declared.
    pub fn is_good(&self) -> bool {
        self.violations == 0 && self.not_found.is_empty()
    }
}

/// Searches all these worlds.
pub fn examine(
    product: &dyn Product,
    strategy: &dyn Strategy,
    scopes: &[Scope],
    mut told: impl FnMut(&Report),
) -> Verdict {
    let reports = scopes
        .iter()
        .map(|scope| check(product, strategy, scope))
        .inspect(|report| told(report))
        .collect::<Vec<_>>();
    let gaps = strategy.gaps();
    let broken = reports.iter().flat_map(|report| {
        let all = report.broken.iter();
        all.filter(|(breach, _)| !is_declared(gaps, **breach, &report.scope))
            .map(|(breach, (count, trace))| Violation {
                breach: breach.to_string(),
                world: report.scope.name,
                count: *count,
                trace: trace.lines.clone(),
            })
    });
    let violated: Vec<_> = broken.collect();
    let mut windows: Vec<_> = gaps
        .iter()
        .filter_map(|gap| window(*gap, gaps, &reports))
        .collect();
    windows.sort_by_key(|window| window.trace.len());
    let found = |gap: &Gap| windows.iter().any(|window| window.beside == gap.name());
    let not_found = gaps
        .iter()
        // A world without that rival cannot show it.
        .filter(|gap| !found(gap) && reports.iter().any(|report| report.scope.has(**gap)))
        .map(|gap| gap.name())
        .collect();
    let mut windows = windows.into_iter();
    Verdict {
        strategy: strategy.name(),
        states: reports.iter().map(|report| report.states).sum(),
        moves: reports.iter().map(|report| report.moves).sum(),
        worlds: reports.iter().map(World::from).collect(),
        violations: violated.len(),
        window: windows.next(),
        further_windows: windows.collect(),
        not_found,
        violated,
    }
}

/// Which breach a declared gap explains.
pub fn breach_of(gap: Gap) -> Breach {
    match gap {
        Gap::OldTracker | Gap::Tracker | Gap::NovaDeletes | Gap::AdoptedReservation => Breach::Exposed,
        Gap::PlainQueries => Breach::ExposedToPlainQueries,
        Gap::FrozenWriter => Breach::ByFrozenWriter,
    }
}

fn is_declared(gaps: &[Gap], breach: Breach, scope: &Scope) -> bool {
    gaps.iter()
        .any(|gap| scope.has(*gap) && breach_of(*gap) == breach)
}

/// The shortest way into a declared gap, in a world without the other rivals.
fn window(gap: Gap, gaps: &[Gap], reports: &[Report]) -> Option<Window> {
    // What a frozen writer breaks may look like an exposure that somebody else makes.
    let alike = |other: Gap| {
        breach_of(other) == breach_of(gap) || gap == Gap::FrozenWriter && breach_of(other) == Breach::Exposed
    };
    let alone = |report: &&Report| {
        let mut others = gaps.iter().filter(|other| **other != gap);
        others.all(|other| !alike(*other) || !report.scope.has(*other))
    };
    let inside = reports
        .iter()
        .filter(|report| report.scope.has(gap))
        .filter(alone);
    let ways = inside.filter_map(|report| {
        let (_, trace) = report.broken.get(&breach_of(gap))?;
        Some((report.scope.name, trace))
    });
    let (world, trace) = ways.min_by_key(|(_, trace)| trace.moves.len())?;
    Some(Window {
        beside: gap.name(),
        world,
        trace: trace.lines.clone(),
    })
}
