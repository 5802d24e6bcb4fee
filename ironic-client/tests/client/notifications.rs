//! What Ironic says over a message queue: real messages first (`tests/lab/capture`), then what is wrong with them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use ironic_client::{NotANotification, Notification, ProvisionState};
use serde_json::{Value, json};

/// The bodies of a recorded trace, in the order in which they came.
fn trace() -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/traces/ironic-39.jsonl");
    let text = std::fs::read_to_string(path).unwrap();
    let lines = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines
        .map(|line| line["body"].as_str().unwrap().to_owned())
        .collect()
}

fn parse(body: &Value) -> Result<Notification, NotANotification> {
    Notification::parse(body.to_string().as_bytes())
}

/// The message within the envelope.
fn inner(body: &str) -> Value {
    let outer: Value = serde_json::from_str(body).unwrap();
    serde_json::from_str(outer["oslo.message"].as_str().unwrap()).unwrap()
}

#[test]
fn everything_that_a_real_ironic_says_is_read() {
    let mut lives = BTreeMap::<_, Vec<_>>::new();
    let mut kinds = BTreeSet::new();
    for body in trace() {
        let read = Notification::parse(body.as_bytes()).unwrap();
        assert!(read.said_at.is_some(), "{read:?}");
        kinds.insert(read.event_type.clone());
        lives.entry(read.node.unwrap()).or_default().push(read);
    }
    assert_eq!(lives.len(), 8, "as many nodes as the script makes");
    for kind in [
        "provision_set.start",
        "provision_set.end",
        "provision_set.success",
        "provision_set.error",
    ] {
        assert!(
            kinds.contains(&format!("baremetal.node.{kind}")),
            "{kind}: {kinds:?}"
        );
    }
    for kind in [
        "power_set",
        "maintenance_set",
        "create",
        "update",
        "delete",
        "power_state_corrected",
    ] {
        let of = |name: &String| name.starts_with(&format!("baremetal.node.{kind}."));
        assert!(kinds.iter().any(of), "{kind}: {kinds:?}");
    }
    let said = lives
        .values()
        .flatten()
        .map(ToString::to_string)
        .collect::<BTreeSet<_>>();
    for line in [
        "baremetal.node.provision_set.start (active -> deleting)",
        "baremetal.node.provision_set.error (cleaning -> clean failed)",
        "baremetal.node.provision_set.end (cleaning -> available)",
        "baremetal.node.maintenance_set.end (clean wait)",
    ] {
        assert!(said.contains(line), "{line}: {said:#?}");
    }
}

#[test]
fn a_plain_body_says_the_same_as_one_in_an_envelope() {
    for body in trace() {
        let plain = parse(&inner(&body)).unwrap();
        assert_eq!(Notification::parse(body.as_bytes()).unwrap(), plain);
    }
}

#[test]
fn what_is_unknown_is_passed_over() {
    let known = inner(&trace()[0]);
    let mut later = known.clone();
    later["event_type"] = json!("baremetal.node.teleport.somewhere");
    later["new_in_2030"] = json!({"a": [1, null]});
    later["payload"]["ironic_object.version"] = json!("99.1");
    later["payload"]["ironic_object.data"]["provision_state"] = json!("levitating");
    later["payload"]["ironic_object.data"]["new"] = json!([[]]);
    later["timestamp"] = json!("yesterday");
    let envelope = json!({"oslo.version": "9.0", "oslo.message": later.to_string(), "more": 1});
    let read = parse(&envelope).unwrap();
    assert_eq!(read.node, parse(&known).unwrap().node);
    assert_eq!(
        read.provision_state,
        Some(ProvisionState::Other("levitating".into()))
    );
    assert_eq!(
        (read.said_at, read.event_type.as_str()),
        (None, "baremetal.node.teleport.somewhere")
    );

    let mut unversioned = known.clone();
    unversioned["payload"] = known["payload"]["ironic_object.data"].clone();
    assert_eq!(parse(&unversioned).unwrap(), parse(&known).unwrap());
}

#[test]
fn times_are_utc_whether_they_say_so_or_not() {
    let at = |text: &str| {
        let body = json!({"event_type": "baremetal.node.update.end", "payload": {}, "timestamp": text});
        parse(&body).unwrap().said_at.map(|at| at.to_string())
    };
    let expected = Some("2026-11-30T03:27:13.5Z".to_owned());
    assert_eq!(at("2026-11-30 03:27:13.500000"), expected);
    assert_eq!(at("2026-11-30T03:27:13.5Z"), expected);
    assert_eq!(at("2026-11-30T05:27:13.5+02:00"), expected);
    assert_eq!(at("2026-13-30 03:27:13"), None);
}

#[test]
fn a_port_names_its_node_and_a_chassis_has_none() {
    let node = "6d08370c-af3a-578a-8f4e-7c7905b4b1f2";
    let data = json!({"uuid": "11111111-af3a-578a-8f4e-7c7905b4b1f2", "node_uuid": node});
    let port = json!({"event_type": "baremetal.port.create.end", "payload": {"ironic_object.data": data}});
    assert_eq!(parse(&port).unwrap().node, Some(node.parse().unwrap()));
    let chassis = json!({"event_type": "baremetal.chassis.create.end", "payload": {"uuid": node}});
    assert_eq!(parse(&chassis).unwrap().node, None);
    let odd = json!({"event_type": "baremetal.node.create.end", "payload": {"uuid": "../../etc"}});
    assert_eq!(parse(&odd).unwrap().node, None);
}

#[test]
fn what_is_no_notification_is_told_without_its_content() {
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let long = format!("\"{}\"", "secret".repeat(300_000));
    for body in [
        "".as_bytes(),
        b"secret",
        b"\xff\xfe secret",
        b"{\"oslo.message\": \"secret\"}",
        b"{\"oslo.message\": {\"secret\": 1}}",
        b"[\"secret\"]",
        b"{\"secret\": 1}",
        b"{\"event_type\": \"secret\"}",
        b"{\"event_type\": \"secret\", \"payload\": []}",
        b"{\"event_type\": 5, \"payload\": {}}",
        deep.as_bytes(),
        long.as_bytes(),
    ] {
        let why = Notification::parse(body).unwrap_err().to_string();
        assert!(!why.contains("secret") && why.len() < 100, "{why}");
    }
}

#[test]
fn no_piece_of_a_message_makes_it_panic() {
    let body = trace().swap_remove(0);
    for end in 0..body.len() {
        let _ = Notification::parse(&body.as_bytes()[..end]);
    }
}
