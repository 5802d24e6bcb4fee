//! The result as a picture, for a ticket.

use anyhow::anyhow;
use jiff::Timestamp;
use plotters::coord::Shift;
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;
use unprovision::watch::{Phase, Span};

use super::result::{Story, name};
use crate::output::plain;

const WIDTH: u32 = 1000;
/// What is above and below the bands.
const FRAME: u32 = 110;
/// A node's title, its states, and its windows below them.
const NODE: u32 = 96;
/// About how wide a letter is.
const LETTER: f64 = 6.5;
const FONT: &str = "sans-serif";

const STATE: RGBColor = RGBColor(214, 226, 240);
const BORDER: RGBColor = RGBColor(120, 140, 165);
const PHASES: [Phase; 4] = [Phase::Exposed, Phase::Held, Phase::IdleWhileFree, Phase::Offered];

type Chart<'a> = ChartContext<'a, SVGBackend<'a>, Cartesian2d<RangedCoordf64, RangedCoordf64>>;

fn colour(phase: Phase) -> RGBColor {
    match phase {
        Phase::Exposed => RGBColor(200, 35, 45),
        Phase::Held => RGBColor(150, 155, 165),
        Phase::IdleWhileFree => RGBColor(235, 170, 50),
        Phase::Offered => RGBColor(70, 150, 85),
    }
}

/// Draws a pair of bands for each node: its provision states, and what it was to those who might get it.
pub(super) fn draw(stories: &[Story]) -> anyhow::Result<String> {
    let mut text = String::new();
    let height = FRAME + NODE * u32::try_from(stories.len())?;
    {
        let root = SVGBackend::with_string(&mut text, (WIDTH, height)).into_drawing_area();
        root.fill(&WHITE).map_err(failed)?;
        legend(&root).map_err(failed)?;
        chart(&root, stories).map_err(failed)?;
        root.present().map_err(failed)?;
    }
    Ok(text.trim_end().to_owned())
}

fn failed(error: impl std::fmt::Display) -> anyhow::Error {
    anyhow!("the picture cannot be drawn: {error}")
}

type Drawn = Result<(), DrawingAreaErrorKind<std::io::Error>>;

fn legend(root: &DrawingArea<SVGBackend<'_>, Shift>) -> Drawn {
    let mut x = 20;
    for phase in PHASES {
        root.draw(&Rectangle::new([(x, 14), (x + 14, 28)], colour(phase).filled()))?;
        let what = match phase {
            Phase::Exposed => "exposed: offered although not free",
            Phase::Held => "held: neither free nor offered",
            phase => name(phase),
        };
        root.draw(&Text::new(what.to_owned(), (x + 20, 15), (FONT, 13)))?;
        x += 46 + (what.len() as f64 * LETTER) as i32;
    }
    Ok(())
}

fn chart(root: &DrawingArea<SVGBackend<'_>, Shift>, stories: &[Story]) -> Drawn {
    let ends = stories
        .iter()
        .flat_map(|story| &story.windows)
        .map(|window| (window.from, window.to));
    let (began, ended) = ends
        .reduce(|all, one| (all.0.min(one.0), all.1.max(one.1)))
        .unwrap_or((Timestamp::UNIX_EPOCH, Timestamp::UNIX_EPOCH));
    // One look alone has no length.
    let length = ended.duration_since(began).as_secs_f64().max(0.001);
    let mut chart = ChartBuilder::on(root)
        .margin_top(36)
        .margin_left(20)
        .margin_right(20)
        .x_label_area_size(44)
        .build_cartesian_2d(0.0..length, 0.0..stories.len() as f64)?;
    chart
        .configure_mesh()
        .disable_y_mesh()
        .light_line_style(TRANSPARENT)
        .x_labels(12)
        .x_label_formatter(&|seconds| format!("{seconds:.0}"))
        .x_desc(format!("seconds since {began:.1}"))
        .axis_desc_style((FONT, 13))
        .label_style((FONT, 12))
        .draw()?;
    for (index, story) in stories.iter().enumerate() {
        let bottom = (stories.len() - 1 - index) as f64;
        bands(&mut chart, story, bottom, began, length)?;
    }
    Ok(())
}

/// A node's title, and its two bands below.
fn bands(chart: &mut Chart<'_>, story: &Story, bottom: f64, began: Timestamp, length: f64) -> Drawn {
    let at = |time: Timestamp| time.duration_since(began).as_secs_f64();
    let title = Text::new(story.summary(), (0.0, bottom + 0.97), (FONT, 14));
    chart.draw_series([title])?;
    for span in &story.provision_states {
        let corners = [(at(span.from), bottom + 0.42), (at(span.to), bottom + 0.75)];
        chart.draw_series([
            Rectangle::new(corners, STATE.filled()),
            Rectangle::new(corners, BORDER),
        ])?;
        let state = span.what.as_deref().map_or_else(|| "?".to_owned(), plain);
        if width(span, length) > state.len() as f64 * LETTER {
            let place = (at(span.from) + length * 0.003, bottom + 0.66);
            chart.draw_series([Text::new(state, place, (FONT, 12))])?;
        }
    }
    for window in &story.windows {
        let corners = [(at(window.from), bottom + 0.1), (at(window.to), bottom + 0.4)];
        let style = colour(window.what).filled().stroke_width(1);
        chart.draw_series([Rectangle::new(corners, style)])?;
    }
    Ok(())
}

/// How wide a span is drawn.
fn width<K>(span: &Span<K>, length: f64) -> f64 {
    span.duration().as_secs_f64() / length * f64::from(WIDTH - 40)
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;
    use unprovision::NodeUuid;
    use unprovision::ProvisionState;
    use unprovision::core::NotFree;
    use unprovision::watch::{Look, Sample};

    use super::super::Watched;
    use super::*;

    fn story(phases: &str, name: &str) -> Story {
        let node = NodeUuid(uuid::Uuid::from_u128(1));
        let began: Timestamp = "2026-11-30T08:00:00Z".parse().unwrap();
        let samples = (0..).zip(phases.chars()).map(|(second, phase)| {
            let free = matches!(phase, 'i' | 'o');
            let state = if free {
                ProvisionState::Available
            } else {
                ProvisionState::Cleaning
            };
            let look = Look {
                not_free: (!free).then(|| NotFree::State(state.clone())),
                provision_state: Some(state),
                offered: matches!(phase, 'e' | 'o'),
            };
            Sample {
                at: began + SignedDuration::from_secs(second),
                looks: (phase != '.').then(|| [(node, look)].into()),
            }
        });
        let watched = Watched {
            node,
            name: name.to_owned(),
            class: "CUSTOM_BAREMETAL".parse().unwrap(),
        };
        Story::read(&watched, &samples.collect::<Vec<_>>())
    }

    /// How many rectangles of this colour there are, the one in the legend aside.
    fn drawn(svg: &str, phase: Phase) -> usize {
        let RGBColor(red, green, blue) = colour(phase);
        svg.matches(&format!("fill=\"#{red:02X}{green:02X}{blue:02X}\""))
            .count()
            - 1
    }

    #[test]
    fn each_window_is_a_rectangle_and_the_totals_are_words() {
        let svg = draw(&[story("hheeee..hhiiiooo", "node-0001")]).unwrap();
        assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>"), "{svg}");
        assert_eq!(PHASES.map(|phase| drawn(&svg, phase)), [1, 2, 1, 1], "{svg}");
        for words in [
            "exposed 3.0 s",
            "cleaning",
            "available",
            "seconds since 2026-11-30T08:00:00.0Z",
        ] {
            assert!(svg.contains(words), "`{words}` in {svg}");
        }
    }

    #[test]
    fn the_names_of_others_are_text() {
        let svg = draw(&[story("h", "<b>&\u{1b}[2J"), story("eo", "n")]).unwrap();
        assert!(!svg.contains("<b>") && !svg.contains('\u{1b}'), "{svg}");
        assert!(svg.contains("&lt;b&gt;&amp;"), "{svg}");
    }
}
