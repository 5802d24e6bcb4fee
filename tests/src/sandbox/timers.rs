//! What is due later: an ordered queue of events, with a number that keeps equal times in order.

use bytes::Bytes;
use http::Request;
use jiff::Timestamp;
use std::collections::BTreeMap;
use uuid::Uuid;

use super::Service;
use super::ironic::step;
use super::nova;

/// Something that happens by itself at its time.
#[derive(Clone, Debug)]
pub(crate) enum Event {
    /// A conductor goes on with a node.
    Ironic(Uuid, step::Step),
    /// Nova goes on with one of its tasks.
    Nova(nova::Task),
    /// A request arrives that was long on its way.
    Request(Service, Box<Request<Bytes>>),
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Timers {
    queue: BTreeMap<(Timestamp, u64), Event>,
    next: u64,
}

impl Timers {
    pub(crate) fn add(&mut self, at: Timestamp, event: Event) {
        self.queue.insert((at, self.next), event);
        self.next += 1;
    }

    pub(crate) fn next_time(&self) -> Option<Timestamp> {
        self.queue.keys().next().map(|(at, _)| *at)
    }

    /// Takes the first event that is due at `now` or before.
    pub(crate) fn pop_due(&mut self, now: Timestamp) -> Option<(Timestamp, Event)> {
        let first = self.queue.first_entry()?;
        let at = first.key().0;
        (at <= now).then(|| (at, first.remove()))
    }

    pub(crate) fn cancel(&mut self, unwanted: impl Fn(&Event) -> bool) {
        self.queue.retain(|_, event| !unwanted(event));
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (Timestamp, &Event)> {
        self.queue.iter().map(|((at, _), event)| (*at, event))
    }
}
