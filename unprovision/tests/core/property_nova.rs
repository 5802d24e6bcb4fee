//! What must never be sent, whatever Nova says: its part of the property.

use unprovision::core::{NovaAnswer, NovaSays, Observation, Server};
use uuid::Uuid;

use crate::build::{INSTANCE, NODE, STRANGER};
use crate::property::Dice;

/// What Nova may say of the instance, and of another.
pub(crate) fn some_answer(dice: &mut Dice) -> NovaSays {
    let there = |status: &str, task: Option<&str>, on: Uuid| {
        NovaAnswer::Server(Server {
            status: status.to_owned(),
            task: task.map(str::to_owned),
            host: Some(on.to_string()),
        })
    };
    let answer = match dice.roll(7) {
        0 => NovaAnswer::NoServer,
        1 => NovaAnswer::Silent("away".to_owned()),
        2 => NovaAnswer::Unreadable,
        3 => there("ACTIVE", None, NODE.0),
        4 => there("ACTIVE", Some("deleting"), NODE.0),
        5 => there("ERROR", None, NODE.0),
        _ => there("ACTIVE", None, STRANGER),
    };
    let server = if dice.one_in(8) { STRANGER } else { INSTANCE };
    NovaSays { server, answer }
}

/// Whether Nova has said one of these of the instance.
pub(crate) fn says(seen: &Observation, words: &[&str]) -> bool {
    let said = seen.nova.as_ref().filter(|said| said.server == INSTANCE);
    let word = said.map(|said| match &said.answer {
        NovaAnswer::NoServer => "gone",
        NovaAnswer::Silent(_) | NovaAnswer::Unreadable => "nothing",
        NovaAnswer::Server(server) if server.host != Some(NODE.0.to_string()) => "elsewhere",
        NovaAnswer::Server(server) if server.task.is_some() => "deleting",
        NovaAnswer::Server(server) if server.status == "ACTIVE" => "active",
        NovaAnswer::Server(_) => "failed",
    });
    word.is_some_and(|word| words.contains(&word))
}
