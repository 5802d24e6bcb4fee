//! When a node was offered that was not free, by the order of all that was said to Ironic and Placement, whoever
//! said it: Nova, the program under test, a witness.
//!
//! Doubt counts against the program. What offers a node counts from when it was sent, and what keeps it from when it
//! was answered; a node is free from the answer that says so, and no more from when a change of it was asked.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::Value;
use unprovision_session::Service;
use uuid::Uuid;

use super::is_free;
use super::order::{Event, in_order, shown, writes};
use crate::proxy::{Exchange, Mark};

/// A time in which a node was offered and not free.
#[derive(Clone, Debug)]
pub struct Exposure {
    /// Since the log began.
    pub from: Duration,
    /// Until it was kept again, or seen free.
    pub until: Duration,
    /// What began it.
    pub by: String,
}

impl Exposure {
    /// Its length.
    pub fn length(&self) -> Duration {
        self.until.saturating_sub(self.from)
    }
}

/// All times in which this node was exposed. When the log began it was free, and nothing kept it.
pub fn exposures(log: &[Exchange], node: Uuid) -> Vec<Exposure> {
    let mut judge = Judge {
        node,
        holders: BTreeSet::new(),
        reserved: 0,
        free: true,
        changed: 0,
        open: None,
        closed: Vec::new(),
    };
    let mut last = Duration::ZERO;
    for event in in_order(log) {
        match event {
            Event::Sent(exchange) if exchange.is_accepted() => judge.sent(exchange),
            Event::Answered(exchange, answer) if exchange.is_accepted() => {
                judge.answered(exchange, answer.at, &answer.body);
                last = answer.at.at;
            }
            _ => {}
        }
    }
    if let Some(open) = judge.open.take() {
        judge.closed.push(Exposure { until: last, ..open });
    }
    judge.closed
}

struct Judge {
    node: Uuid,
    holders: BTreeSet<Uuid>,
    reserved: u64,
    free: bool,
    /// When the newest change of the node was asked: what was read before is no news any more.
    changed: u64,
    open: Option<Exposure>,
    closed: Vec<Exposure>,
}

impl Judge {
    fn sent(&mut self, exchange: &Exchange) {
        let path = format!("/v1/nodes/{}", self.node);
        if exchange.is_write() && exchange.call.path.starts_with(&path) {
            self.changed = exchange.sent.seq;
            self.free = false;
        }
        // What ends in a hold counts from its answer. A unit that changes hands in one request is never without one.
        let (holders, reserved) = self.after(exchange);
        if holders.is_empty() && reserved == 0 {
            (self.holders, self.reserved) = (holders, reserved);
        }
        self.judge(exchange, exchange.sent);
    }

    fn answered(&mut self, exchange: &Exchange, at: Mark, body: &Value) {
        (self.holders, self.reserved) = self.after(exchange);
        let reads = exchange.call.service == Service::Ironic && !exchange.is_write();
        if reads
            && exchange.sent.seq > self.changed
            && let Some(node) = shown(body, self.node).filter(|node| is_whole(node))
        {
            self.free = is_free(node);
        }
        self.judge(exchange, at);
    }

    fn judge(&mut self, exchange: &Exchange, at: Mark) {
        let exposed = self.holders.is_empty() && self.reserved == 0 && !self.free;
        if exposed && self.open.is_none() {
            let call = &exchange.call;
            let by = format!("{}: {} {} of {}", at.seq, call.method, call.path, call.agent);
            self.open = Some(Exposure {
                from: at.at,
                until: at.at,
                by,
            });
        }
        if !exposed && let Some(open) = self.open.take() {
            self.closed.push(Exposure { until: at.at, ..open });
        }
    }

    /// Who holds the provider, and how much of it is reserved, once this is applied.
    fn after(&self, exchange: &Exchange) -> (BTreeSet<Uuid>, u64) {
        let mut holders = self.holders.clone();
        let (consumers, reserved) = writes(exchange, self.node);
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

/// Whether an answer has all that says whether the node is free.
fn is_whole(node: &Value) -> bool {
    let fields = ["provision_state", "instance_uuid", "maintenance", "power_state"];
    fields.iter().all(|field| node.get(field).is_some())
}

#[cfg(test)]
mod tests {
    use http::{Method, StatusCode};
    use serde_json::json;

    use super::*;
    use crate::proxy::{Answer, Call};

    const NODE: Uuid = Uuid::from_u128(1);
    const INSTANCE: Uuid = Uuid::from_u128(2);
    const OURS: Uuid = Uuid::from_u128(3);

    fn mark(seq: u64) -> Mark {
        Mark {
            seq,
            at: Duration::from_secs(seq),
        }
    }

    /// A request that is sent and answered at these places.
    fn exchange(sent: u64, answered: u64, method: Method, path: &str, status: u16, body: Value) -> Exchange {
        let reads = method == Method::GET;
        let service = if path.starts_with("/v1/") {
            Service::Ironic
        } else {
            Service::Placement
        };
        let (body, shown) = if reads {
            (Value::Null, body)
        } else {
            (body, Value::Null)
        };
        Exchange {
            call: Call {
                service,
                method,
                path: path.to_owned(),
                body,
                token: None,
                agent: String::new(),
            },
            sent: mark(sent),
            answer: Some(Answer {
                headers: http::HeaderMap::new(),
                at: mark(answered),
                status: StatusCode::from_u16(status).unwrap_or_default(),
                body: shown,
            }),
        }
    }

    fn claim(at: u64) -> Exchange {
        let body = json!({ "allocations": { NODE.to_string(): { "resources": { "CUSTOM_X": 1 } } } });
        exchange(
            at,
            at + 1,
            Method::PUT,
            &format!("/allocations/{INSTANCE}"),
            204,
            body,
        )
    }

    fn release(sent: u64, answered: u64, status: u16) -> Exchange {
        let path = format!("/allocations/{INSTANCE}");
        exchange(sent, answered, Method::DELETE, &path, status, Value::Null)
    }

    fn hand_over(sent: u64, answered: u64) -> Exchange {
        let body = json!({
            INSTANCE.to_string(): { "allocations": {} },
            OURS.to_string(): { "allocations": { NODE.to_string(): { "resources": { "CUSTOM_X": 1 } } } },
        });
        exchange(sent, answered, Method::POST, "/allocations", 204, body)
    }

    fn tear_down(at: u64) -> Exchange {
        let path = format!("/v1/nodes/{NODE}/states/provision");
        exchange(
            at,
            at + 1,
            Method::PUT,
            &path,
            202,
            json!({ "target": "deleted" }),
        )
    }

    fn seen(sent: u64, answered: u64, state: &str) -> Exchange {
        let node = json!({
            "uuid": NODE, "provision_state": state, "instance_uuid": null, "maintenance": false,
            "power_state": "power off",
        });
        exchange(
            sent,
            answered,
            Method::GET,
            "/v1/nodes",
            200,
            json!({ "nodes": [node] }),
        )
    }

    fn lengths(log: &[Exchange]) -> Vec<u64> {
        let exposures = exposures(log, NODE);
        exposures
            .iter()
            .map(|exposure| exposure.length().as_secs())
            .collect()
    }

    #[test]
    fn a_unit_that_is_given_up_while_the_node_is_cleaned_exposes_it_until_it_is_seen_free() {
        let log = [
            claim(1),
            tear_down(3),
            release(5, 7, 204),
            seen(8, 9, "cleaning"),
            seen(10, 12, "available"),
        ];
        assert_eq!(lengths(&log), [7]);
    }

    #[test]
    fn a_hand_over_leaves_no_gap_and_what_is_refused_changes_nothing() {
        let log = [
            claim(1),
            tear_down(3),
            hand_over(5, 8),
            release(6, 9, 404),
            seen(10, 11, "available"),
        ];
        assert!(lengths(&log).is_empty());
    }

    #[test]
    fn a_hold_counts_from_its_answer() {
        let reserve = json!({ "inventories": { "CUSTOM_X": { "total": 1, "reserved": 1 } } });
        let path = format!("/resource_providers/{NODE}/inventories");
        let late = exchange(7, 9, Method::PUT, &path, 200, reserve);
        let log = [
            claim(1),
            tear_down(3),
            release(5, 6, 204),
            late,
            seen(10, 11, "available"),
        ];
        assert_eq!(lengths(&log), [4]);
    }

    #[test]
    fn a_look_from_before_the_tear_down_does_not_make_the_node_free() {
        let log = [
            claim(1),
            seen(3, 6, "available"),
            tear_down(4),
            release(7, 8, 204),
        ];
        assert_eq!(lengths(&log), [1], "until the end of the log");
    }

    #[test]
    fn a_release_of_a_free_node_is_no_exposure() {
        let log = [
            claim(1),
            tear_down(3),
            seen(5, 6, "available"),
            release(7, 8, 204),
            claim(9),
        ];
        assert!(lengths(&log).is_empty());
    }
}
