//! The first judge: whether what was said to the services was said in the right order.
//!
//! Nothing that makes the provider offered may leave before an answer of Ironic has said that the node is free, and
//! no tear-down may leave before Placement has confirmed a hold.

use std::collections::BTreeSet;

use http::Method;
use serde_json::Value;
use unprovision::core::DEFAULT_TAG;
use unprovision_session::Service;
use uuid::Uuid;

use super::is_free;
use crate::proxy::{Answer, Exchange};

/// What is known of a provider before the log begins.
#[derive(Clone, Debug)]
pub struct Before {
    /// The node, and its provider.
    pub node: Uuid,
    /// Who holds it: the instance.
    pub instance: Uuid,
    /// The units that are reserved, of one.
    pub reserved: u64,
}

/// What a strategy promises, as far as the order goes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Promise {
    /// A tag on the provider counts as a hold: it is one for the queries that forbid it.
    pub tag: bool,
    /// The instance's own allocation counts as the hold before the tear-down.
    pub instance: bool,
}

impl Promise {
    /// That of a strategy; for any other name the strictest.
    pub fn of(strategy: &str) -> Self {
        Self {
            tag: strategy == "trait-tagging",
            instance: strategy == "wait-for-available",
        }
    }
}

/// What was wrong with the order as far as this node goes; empty where nothing was.
pub fn faults(log: &[Exchange], before: &Before) -> Vec<String> {
    faults_of(log, before, Promise::default())
}

/// The same, where less was promised.
pub fn faults_of(log: &[Exchange], before: &Before, promise: Promise) -> Vec<String> {
    let mut judge = Judge {
        promise,
        tagged: false,
        node: before.node,
        instance: before.instance,
        holders: BTreeSet::from([before.instance]),
        reserved: before.reserved,
        free: None,
        faults: Vec::new(),
    };
    for event in in_order(log) {
        match event {
            Event::Sent(exchange) => judge.sent(exchange),
            Event::Answered(exchange, answer) => judge.answered(exchange, answer),
        }
    }
    judge.faults
}

/// Whether all these nodes were held before the first of them was torn down.
pub fn all_held_first(log: &[Exchange], nodes: &[(Before, Promise)]) -> bool {
    let of = |exchange: &&Exchange| {
        nodes
            .iter()
            .any(|(before, _)| exchange.asks(before.node, "deleted"))
    };
    let Some(first) = log.iter().filter(of).map(|exchange| exchange.sent).min() else {
        return true;
    };
    let is_held = |(before, promise): &(Before, Promise)| {
        let held = log.iter().any(|exchange| {
            let answered = exchange.answer.as_ref().is_some_and(|answer| answer.at < first);
            let tags = promise.tag && tags(exchange, before.node) == Some(true);
            answered && exchange.is_accepted() && (tags || holds(exchange, before.node, before.instance))
        });
        held || promise.instance
    };
    nodes.iter().all(is_held)
}

/// The accepted requests for this provision state of the node.
pub fn accepted(log: &[Exchange], node: Uuid, target: &str) -> usize {
    log.iter()
        .filter(|exchange| exchange.asks(node, target) && exchange.is_accepted())
        .count()
}

/// One thing that happened.
pub(super) enum Event<'a> {
    Sent(&'a Exchange),
    Answered(&'a Exchange, &'a Answer),
}

/// All that happened, one after the other.
pub(super) fn in_order(log: &[Exchange]) -> impl Iterator<Item = Event<'_>> {
    let sent = log
        .iter()
        .map(|exchange| (exchange.sent.seq, Event::Sent(exchange)));
    let answered = log.iter().filter_map(|exchange| {
        let answer = exchange.answer.as_ref()?;
        Some((answer.at.seq, Event::Answered(exchange, answer)))
    });
    let mut events = sent.chain(answered).collect::<Vec<_>>();
    events.sort_by_key(|(seq, _)| *seq);
    events.into_iter().map(|(_, event)| event)
}

struct Judge {
    node: Uuid,
    instance: Uuid,
    holders: BTreeSet<Uuid>,
    reserved: u64,
    promise: Promise,
    /// Whether the provider carries a tag that counts.
    tagged: bool,
    /// What the newest look at the node said.
    free: Option<bool>,
    faults: Vec<String>,
}

impl Judge {
    fn sent(&mut self, exchange: &Exchange) {
        if exchange.asks(self.node, "deleted") {
            let others = self.holders.iter().any(|holder| *holder != self.instance);
            let own = self.promise.instance && self.holders.contains(&self.instance);
            if !others && !own && !self.tagged && self.reserved == 0 {
                self.faults
                    .push(format!("{}: torn down without a hold", exchange.sent.seq));
            }
            // Whatever was seen before is no news any more.
            self.free = None;
        }
        let (holders, reserved) = self.after(exchange);
        let offers = holders.is_empty() && reserved == 0 && !self.tagged_after(exchange);
        let offered = self.holders.is_empty() && self.reserved == 0 && !self.tagged;
        if offers && !offered && self.free != Some(true) {
            let what = format!("{} {}", exchange.call.method, exchange.call.path);
            self.faults.push(format!(
                "{}: {what} offers a node that was not seen free",
                exchange.sent.seq
            ));
        }
    }

    fn answered(&mut self, exchange: &Exchange, answer: &Answer) {
        if !answer.status.is_success() {
            return;
        }
        self.tagged = self.tagged_after(exchange);
        (self.holders, self.reserved) = self.after(exchange);
        let looks = exchange.call.service == Service::Ironic && exchange.call.method == Method::GET;
        if let Some(node) = looks.then(|| shown(&answer.body, self.node)).flatten() {
            self.free = Some(is_free(node));
        }
    }

    /// Whether a tag would count once this is applied.
    fn tagged_after(&self, exchange: &Exchange) -> bool {
        let tags = tags(exchange, self.node).unwrap_or(self.tagged);
        self.promise.tag && tags
    }

    /// Who would hold the provider, and how much of it would be reserved, once this is applied.
    fn after(&self, exchange: &Exchange) -> (BTreeSet<Uuid>, u64) {
        let (mut holders, (consumers, reserved)) = (self.holders.clone(), writes(exchange, self.node));
        for (consumer, holds) in consumers {
            if holds {
                holders.insert(consumer);
            } else {
                holders.remove(&consumer);
            }
        }
        (holders, reserved.unwrap_or(self.reserved))
    }
}

/// What a request changes of a provider, if Placement takes it: consumers and whether each holds it then, and the units
/// that are reserved then.
pub(super) fn writes(exchange: &Exchange, provider: Uuid) -> (Vec<(Uuid, bool)>, Option<u64>) {
    if exchange.call.service == Service::Placement && exchange.is_write() {
        return (consumers(exchange, provider), reservation(exchange, provider));
    }
    (Vec::new(), None)
}

/// The node in an answer: the whole answer, or one of a list.
pub(super) fn shown(body: &Value, node: Uuid) -> Option<&Value> {
    let is_it = |shown: &&Value| shown["uuid"] == node.to_string() && shown["provision_state"].is_string();
    let listed = body["nodes"].as_array().into_iter().flatten();
    std::iter::once(body).chain(listed).find(is_it)
}

/// The consumers that a request writes, and whether each holds the provider then.
fn consumers(exchange: &Exchange, provider: Uuid) -> Vec<(Uuid, bool)> {
    let holds = |body: &Value| !body["allocations"][provider.to_string()].is_null();
    let (path, body) = (exchange.call.path.as_str(), &exchange.call.body);
    if path == "/allocations" {
        let all = body.as_object().into_iter().flatten();
        return all
            .filter_map(|(uuid, body)| Some((uuid.parse().ok()?, holds(body))))
            .collect();
    }
    let one = path
        .strip_prefix("/allocations/")
        .and_then(|uuid| uuid.parse().ok());
    one.map(|uuid| (uuid, holds(body))).into_iter().collect()
}

/// The reserved units that a request sets: of all classes at once, or of one.
fn reservation(exchange: &Exchange, provider: Uuid) -> Option<u64> {
    let inventories = format!("/resource_providers/{provider}/inventories");
    let class = exchange.call.path.strip_prefix(&inventories)?;
    let body = &exchange.call.body;
    if !class.is_empty() {
        return body["reserved"].as_u64();
    }
    let reserved = body["inventories"].as_object()?.values();
    Some(
        reserved
            .filter_map(|inventory| inventory["reserved"].as_u64())
            .max()
            .unwrap_or(0),
    )
}

/// Whether the provider carries the tag after this request, where it sets the provider's traits.
fn tags(exchange: &Exchange, provider: Uuid) -> Option<bool> {
    let sets = exchange.is_write() && exchange.call.path == format!("/resource_providers/{provider}/traits");
    let traits = exchange.call.body["traits"].as_array().filter(|_| sets)?;
    Some(traits.iter().any(|name| name == DEFAULT_TAG))
}

/// Whether the request holds the provider otherwise than for the instance.
fn holds(exchange: &Exchange, provider: Uuid, instance: Uuid) -> bool {
    let consumers = consumers(exchange, provider);
    let held = consumers
        .into_iter()
        .any(|(consumer, holds)| holds && consumer != instance);
    exchange.call.method != Method::GET
        && (held || reservation(exchange, provider).is_some_and(|units| units > 0))
}
