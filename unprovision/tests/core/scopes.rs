//! Which scope a node is in, and which scopes cannot be meant so.

use serde_json::{Value, json};
use unprovision::Node;
use unprovision::scope::{Care, Scope, Scopes, Selector};

fn node(fields: &Value) -> Node {
    let mut node = json!({ "uuid": "126b5922-7723-40d2-bb13-cb1c6beb2ade", "provision_state": "available" });
    for (key, value) in fields.as_object().unwrap() {
        node[key] = value.clone();
    }
    serde_json::from_value(node).unwrap()
}

fn some(values: &[&str]) -> Option<Vec<String>> {
    Some(values.iter().map(|value| (*value).to_owned()).collect())
}

fn scope(name: &str, nodes: Selector) -> Scope {
    Scope {
        name: name.to_owned(),
        nodes,
        care: Some(Care {
            strategy: "hand-over".to_owned(),
            release_nova_reservations: true,
            max_held_share: 0.8,
            max_held_floor: 10,
        }),
    }
}

fn named(names: &[&str]) -> Selector {
    Selector {
        names: some(names),
        ..Selector::default()
    }
}

#[test]
fn all_conditions_must_be_met_each_by_one_value() {
    let selector = Selector {
        conductor_groups: some(&["Rack-A", "rack-b"]),
        shards: some(&["s1"]),
        resource_classes: some(&["baremetal.small"]),
        owners: some(&["p"]),
        names: some(&["gpu-*", "node-?"]),
    };
    let good = json!({
        "conductor_group": "rack-a", "shard": "s1", "resource_class": "baremetal.small", "owner": "p", "name": "node-7"
    });
    assert!(selector.fits(&node(&good)));
    for (key, other) in [
        ("conductor_group", json!("rack-c")),
        ("conductor_group", json!("")),
        ("shard", json!("S1")),
        ("shard", json!(null)),
        ("resource_class", json!("baremetal")),
        ("owner", json!(null)),
        ("name", json!("node-77")),
        ("name", json!(null)),
    ] {
        let mut spoilt = good.clone();
        spoilt[key] = other.clone();
        assert!(!selector.fits(&node(&spoilt)), "{key} {other}");
    }
}

#[test]
fn an_empty_value_stands_for_nodes_that_have_none() {
    let default_group = Selector {
        conductor_groups: some(&[""]),
        ..Selector::default()
    };
    assert!(default_group.fits(&node(&json!({ "conductor_group": "" }))));
    assert!(!default_group.fits(&node(&json!({ "conductor_group": "a" }))));
    let nobodys = Selector {
        owners: some(&[""]),
        ..Selector::default()
    };
    assert!(nobodys.fits(&node(&json!({ "owner": null }))));
    assert!(named(&["*"]).fits(&node(&json!({ "name": null }))));
}

#[test]
fn the_first_scope_that_fits_counts() {
    let scopes = Scopes::new(vec![
        scope("gpu", named(&["gpu-*"])),
        scope("rest", named(&["*"])),
    ])
    .unwrap();
    let of = |name: &str| scopes.of(&node(&json!({ "name": name }))).unwrap().1.name.clone();
    assert_eq!((of("gpu-1"), of("cpu-1")), ("gpu".to_owned(), "rest".to_owned()));
    assert!(Scopes::default().of(&node(&json!({}))).is_none());
}

#[test]
fn what_cannot_be_meant_so_is_refused() {
    let class = |classes: &[&str]| Selector {
        resource_classes: some(classes),
        ..Selector::default()
    };
    let with_strategy = |strategy: &str| {
        let mut scope = scope("x", named(&["*"]));
        scope.care.as_mut().unwrap().strategy = strategy.to_owned();
        scope
    };
    for (scopes, words) in [
        (vec![scope("", named(&["*"]))], "needs a `name`"),
        (
            vec![scope("x", named(&["a"])), scope("x", named(&["b"]))],
            "two of this name",
        ),
        (vec![scope("x", Selector::default())], "does not say which nodes"),
        (vec![scope("x", named(&[]))], "`names` is an empty list"),
        (vec![scope("x", named(&["^node-[0-9]+$"]))], "takes globs"),
        (
            vec![scope("all", named(&["*"])), scope("x", class(&["a"]))],
            "never be reached, since `all`",
        ),
        (
            vec![scope("ab", class(&["a", "b"])), scope("x", class(&["b"]))],
            "never be reached, since `ab`",
        ),
        (
            vec![scope("n", named(&["n*"])), scope("x", named(&["node-?", "nn"]))],
            "never be reached, since `n`",
        ),
        (vec![with_strategy("hand-ower")], "there is no strategy"),
        (
            vec![with_strategy("wait-for-available")],
            "whoever deletes the server drops",
        ),
    ] {
        let said = Scopes::new(scopes).unwrap_err().to_string();
        assert!(said.contains(words), "{said}");
    }
    let narrower = Selector {
        names: some(&["a*"]),
        ..class(&["a"])
    };
    for scopes in [
        vec![scope("one", class(&["a"])), scope("x", class(&["a", "b"]))],
        vec![scope("one", narrower), scope("x", class(&["a"]))],
        vec![scope("one", named(&["a?"])), scope("x", named(&["a*"]))],
    ] {
        assert!(Scopes::new(scopes).is_ok());
    }
}
