//! The table and the time lines, for a terminal of 80 columns.

use std::io::IsTerminal;

use comfy_table::{Cell, CellAlignment, Table, presets};
use jiff::Timestamp;

use super::story::{Figures, Story, View};

/// How many columns a time line has; with the label in front it fits into 80.
const COLUMNS: u32 = 66;

const RED: &str = "1;31";
const GREEN: &str = "32";
const BOLD: &str = "1";

/// Whether there are colours.
#[derive(Clone, Copy, Debug)]
pub(super) struct Paint {
    on: bool,
}

impl Paint {
    /// Colours for a terminal whose user has not asked for none (<https://no-color.org>).
    pub(super) fn for_stdout() -> Self {
        let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        Self {
            on: std::io::stdout().is_terminal() && !set("NO_COLOR") && !dumb,
        }
    }

    fn text(self, style: &str, text: &str) -> String {
        if self.on {
            format!("\x1b[{style}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }
}

/// All figures; the names are those of the objects, in words.
pub(super) fn table(rows: &[Figures]) -> String {
    let mut table = Table::new();
    table.load_style(presets::ASCII_FULL_CONDENSED);
    table.set_header([
        "strategy",
        "nodes",
        "samples",
        "exposed\nsamples",
        "exposed\nms",
        "freed\nafter\nms",
        "offered\nagain\nafter ms",
    ]);
    for row in rows {
        let ms = |ms: Option<u64>| ms.map_or_else(|| "never".to_owned(), |ms| ms.to_string());
        let number = |text: String| Cell::new(text).set_alignment(CellAlignment::Right);
        table.add_row([
            Cell::new(row.strategy),
            number(row.nodes.to_string()),
            number(row.samples.to_string()),
            number(row.exposed_samples.to_string()),
            number(row.exposed_ms.to_string()),
            number(ms(row.freed_after_ms)),
            number(ms(row.offered_again_after_ms)),
        ]);
    }
    table.to_string()
}

/// The stories, one below the other, all to the same scale.
pub(super) fn stories(stories: &[Story], paint: Paint) -> String {
    let longest = stories
        .iter()
        .map(|story| nanos(story.began, story.ended))
        .max()
        .unwrap_or(1)
        .max(1);
    // Rounded up, so that the longest one fits.
    let column = longest / i128::from(COLUMNS) + 1;
    let mut text = format!(
        "One character is {:.2} s. `!`: offered although not free; `+`: offered, and free.\n\
         Times are seconds from the request to tear the node down.\n",
        seconds(column)
    );
    for story in stories {
        text.push_str(&draw(story, column, paint));
    }
    text
}

fn draw(story: &Story, column: i128, paint: Paint) -> String {
    let columns = (0..COLUMNS)
        .map(|index| Column::new(story, column, index))
        .take_while(|column| column.from < story.ended);
    let columns = columns.collect::<Vec<_>>();
    let row = |pick: fn(&View) -> &'static str| segments(columns.iter().map(|column| pick(column.view)));
    let offers = columns.iter().map(Column::offer).collect::<String>();
    format!(
        "\n{}, {}\n  node      {}\n  kept by   {}\n  offered   {}\n  {}\n",
        paint.text(BOLD, story.strategy),
        story.node,
        row(|view| view.state),
        row(|view| view.kept_by),
        paint_offers(&offers, paint),
        times(story)
    )
}

/// What is seen of a node in one column of its time line.
#[derive(Debug)]
struct Column<'a> {
    from: Timestamp,
    view: &'a View,
    exposed: bool,
}

impl<'a> Column<'a> {
    fn new(story: &'a Story, width: i128, index: u32) -> Self {
        let edge = |index: u32| {
            let at = story.began.as_nanosecond() + width * i128::from(index);
            Timestamp::from_nanosecond(at).unwrap_or(Timestamp::MAX)
        };
        let (from, to) = (edge(index), edge(index + 1));
        let view = story
            .views
            .iter()
            .rev()
            .find(|(at, _)| *at < to)
            .or(story.views.first());
        const UNKNOWN: &View = &View {
            state: "",
            kept_by: "",
            free: false,
            offered: false,
        };
        // However short it was: no exposure falls between two columns.
        let exposed = story
            .exposure
            .windows
            .iter()
            .any(|(start, end)| *start < to && *end >= from);
        Self {
            from,
            view: view.map_or(UNKNOWN, |(_, view)| view),
            exposed,
        }
    }

    fn offer(&self) -> char {
        match (self.exposed, self.view.offered) {
            (true, _) => '!',
            (false, true) => '+',
            (false, false) => '.',
        }
    }
}

/// The labels, each stretched over the columns that it holds for: `|active--|del|cleaning------`.
fn segments(labels: impl Iterator<Item = &'static str>) -> String {
    let mut row = String::new();
    let mut rest = "".chars();
    let mut before = None;
    for label in labels {
        if before == Some(label) {
            row.push(rest.next().unwrap_or('-'));
        } else {
            row.push('|');
            rest = label.chars();
            before = Some(label);
        }
    }
    row
}

fn paint_offers(offers: &str, paint: Paint) -> String {
    let runs = offers
        .as_bytes()
        .chunk_by(|a, b| a == b)
        .map(String::from_utf8_lossy);
    let painted = runs.map(|run| match run.as_bytes() {
        [b'!', ..] => paint.text(RED, &run),
        [b'+', ..] => paint.text(GREEN, &run),
        _ => run.into_owned(),
    });
    painted.collect()
}

/// The same in numbers.
fn times(story: &Story) -> String {
    let at = |at: Timestamp| format!("{:.2}", seconds(nanos(story.asked, at)));
    let or_never = |time: Option<Timestamp>| time.map_or_else(|| "never".to_owned(), at);
    let mut parts = vec![format!("freed {}", or_never(story.freed))];
    let windows = story
        .exposure
        .windows
        .iter()
        .map(|(from, to)| format!("{}-{}", at(*from), at(*to)));
    let windows = windows.collect::<Vec<_>>();
    if !windows.is_empty() {
        parts.push(format!("falsely offered {}", windows.join(" and ")));
    }
    parts.push(format!("available {}", or_never(story.available)));
    parts.push(format!("offered again {}", or_never(story.offered_again)));
    parts.join(", ")
}

fn nanos(from: Timestamp, to: Timestamp) -> i128 {
    to.as_nanosecond() - from.as_nanosecond()
}

#[allow(clippy::cast_precision_loss, reason = "shown with two digits")]
fn seconds(nanos: i128) -> f64 {
    nanos as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_stretched_and_cut() {
        let labels = ["active"; 9]
            .into_iter()
            .chain(["deleting"; 4])
            .chain(["cleaning"; 1])
            .chain(["active"; 2]);
        assert_eq!(segments(labels), "|active--|del||a");
    }

    #[test]
    fn nothing_is_painted_where_nobody_asked() {
        assert_eq!(paint_offers("..!!++", Paint { on: false }), "..!!++");
        assert_eq!(
            paint_offers(".!+", Paint { on: true }),
            ".\x1b[1;31m!\x1b[0m\x1b[32m+\x1b[0m"
        );
    }
}
