//! A way through a world, for people.

use std::fmt;

use super::moves::Move;
use super::state::{FIRST, NODE, SECOND, State};
use super::step::Rules;
use crate::model::Author;
use crate::model::worker::Phase;

/// The moves of a way, with what each did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// One line for each move.
    pub lines: Vec<String>,
    /// The moves.
    pub moves: Vec<Move>,
}

impl Trace {
    pub(super) fn of(way: &[Move], last: Move, rules: Rules<'_>) -> Self {
        let mut state = State::begin(rules.scope);
        let mut moves = way.to_vec();
        moves.push(last);
        let mut lines = Vec::new();
        for mv in &moves {
            let Some((next, _)) = state.after(*mv, rules) else {
                break;
            };
            lines.push(line(*mv, &state, &next));
            state = next;
        }
        Self { lines, moves }
    }
}

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, line) in self.lines.iter().enumerate() {
            writeln!(f, "{:>3}  {line}", number + 1)?;
        }
        Ok(())
    }
}

fn line(mv: Move, before: &State, after: &State) -> String {
    let mut text = mv.to_string();
    let written = match mv {
        Move::ReadNode => after.outgoing(),
        Move::FrozenSends => before.frozen.as_ref().map(|frozen| &frozen.outgoing.action),
        _ => before.outgoing(),
    };
    if let Some(action) = written {
        text = format!("{text}: {action}");
    } else if mv == Move::ReadNode {
        text.push_str(if after.worker.is_some() { ": wait" } else { ": end" });
    }
    if let Some(Phase::Knows(unprovision::core::Event::Refused { refusal })) = &after.worker
        && mv == Move::Send
    {
        text = format!("{text}; refused ({:?})", refusal.kind);
    }
    let (was, is) = (world(before), world(after));
    if was != is {
        text = format!("{text}  [{is}]");
    }
    let names = [
        (FIRST.to_string(), "`first`"),
        (SECOND.to_string(), "`second`"),
        (
            unprovision::core::guard_consumer(NODE, FIRST).to_string(),
            "`ours`",
        ),
        (NODE.to_string(), "`node`"),
    ];
    names
        .iter()
        .fold(text, |text, (uuid, name)| text.replace(uuid, name))
}

/// The node, who holds it, and whether it is offered.
fn world(state: &State) -> String {
    let (node, provider) = (&state.bay.node, &state.bay.provider);
    let mut words = vec![node.state.to_string()];
    words.extend(node.instance.map(|instance| format!("carries {instance}")));
    if node.maintenance != crate::model::Maintenance::No {
        words.push("in maintenance".to_owned());
    }
    let holders = provider.holders.iter().filter(|(_, held)| held.here);
    words.extend(holders.map(|(consumer, _)| format!("held by {consumer}")));
    words.extend(match provider.by {
        Author::Nobody => None,
        Author::Us => Some("reserved by us".to_owned()),
        Author::Nova => Some("reserved by Nova".to_owned()),
        Author::Operator | Author::Unclear => Some("reserved by a person".to_owned()),
    });
    if provider.is_offered() {
        words.push("OFFERED".to_owned());
    }
    words.join(", ")
}
