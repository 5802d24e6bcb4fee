//! Random requests to Ironic, of those that are over when they are answered.

use http::Method;
use serde_json::{Value, json};
use unprovision_testkit::contract::{Seed, Service};
use unprovision_testkit::simulate::Dice;
use uuid::Uuid;

use crate::placement::pick;
use crate::sides::{Call, Pair};

/// The oldest that we use, those that bring a field or a filter, and today's.
const VERSIONS: [&str; 5] = ["1.38", "1.50", "1.61", "1.82", "1.95"];

/// Verbs that are refused at once in these states: none of them begins anything.
const REFUSED: [(&str, &[&str]); 3] = [
    (
        "enroll",
        &["active", "deleted", "provide", "clean", "abort", "fly"],
    ),
    (
        "available",
        &[
            "deleted", "provide", "clean", "abort", "rescue", "unhold", "service",
        ],
    ),
    (
        "active",
        &[
            "active", "manage", "provide", "clean", "abort", "rescue", "inspect", "adopt", "unrescue",
        ],
    ),
];

/// Two nodes that were enrolled and nothing else, one to be had, one in use, and one that does not exist.
pub(crate) struct World {
    nodes: Vec<(Uuid, &'static str)>,
    class: String,
    instances: Vec<Uuid>,
}

impl World {
    pub(crate) async fn make(pair: &mut Pair) -> Self {
        let seed = Seed::random().to_string();
        let uuid = |name: &str| Uuid::new_v5(&Uuid::NAMESPACE_URL, format!("{seed}/{name}").as_bytes());
        let world = Self {
            nodes: ["enroll", "enroll", "available", "active", "enroll"]
                .iter()
                .enumerate()
                .map(|(n, state)| (uuid(&format!("node{n}")), *state))
                .collect(),
            class: format!("diff.{seed}"),
            instances: (0..2).map(|n| uuid(&format!("instance{n}"))).collect(),
        };
        for (node, state) in &world.nodes[..4] {
            let new = json!({
                "driver": "fake-hardware", "uuid": node, "name": format!("diff-{node}"), "resource_class": world.class,
                "automated_clean": false,
            });
            let call = Call::new(Service::Ironic, "1.80", Method::POST, "/v1/nodes").with(new);
            pair.set_up(call).await;
            let way: &[_] = match *state {
                "available" => &[("manage", "manageable"), ("provide", "available")],
                "active" => &[
                    ("manage", "manageable"),
                    ("provide", "available"),
                    ("active", "active"),
                ],
                _ => &[],
            };
            for (target, state) in way {
                world.make_it(pair, *node, target, state).await;
            }
        }
        world
    }

    /// Asks a provision state of both, and waits until both have reached it.
    async fn make_it(&self, pair: &mut Pair, node: Uuid, target: &str, state: &str) {
        let of = format!("/v1/nodes/{node}");
        let call = |method, path: String| Call::new(Service::Ironic, "1.80", method, path);
        if target == "active" {
            let instance = json!([{ "op": "add", "path": "/instance_uuid", "value": self.instances[0] }]);
            pair.set_up(call(Method::PATCH, of.clone()).with(instance)).await;
        }
        let asked = call(Method::PUT, format!("{of}/states/provision")).with(json!({ "target": target }));
        pair.set_up(asked).await;
        pair.settled(call(Method::GET, of), state).await;
    }

    pub(crate) fn next(&self, dice: &mut Dice) -> Call {
        let version = *pick(dice, &VERSIONS);
        let (node, state) = *pick(dice, &self.nodes);
        let of = format!("/v1/nodes/{node}");
        let call = |method, path: String| Call::new(Service::Ironic, version, method, path);
        match dice.below(12) {
            0 => call(Method::GET, of),
            1 => call(
                Method::GET,
                format!("/v1/nodes/diff-{node}?fields={}", self.fields(dice)),
            ),
            2 | 3 => {
                let operations = 1 + usize::from(dice.chance(200));
                let patch = (0..operations).map(|_| self.patch(dice)).collect::<Vec<_>>();
                call(Method::PATCH, of).with(Value::Array(patch))
            }
            4 => {
                let method = if dice.chance(600) {
                    Method::PUT
                } else {
                    Method::DELETE
                };
                let at = call(method.clone(), format!("{of}/maintenance"));
                match method == Method::PUT && dice.chance(700) {
                    true => at.with(json!({ "reason": "random" })),
                    false => at,
                }
            }
            5 => {
                let method = pick(dice, &[Method::PUT, Method::DELETE]).clone();
                let name = pick(dice, &["CUSTOM_A", "CUSTOM_B", "HW_CPU_X86_VMX", "no trait"]);
                call(method, format!("{of}/traits/{}", name.replace(' ', "%20")))
            }
            6 => call(Method::GET, format!("{of}/traits")),
            7 => {
                let names = ["CUSTOM_A", "CUSTOM_B"]
                    .iter()
                    .filter(|_| dice.chance(500))
                    .collect::<Vec<_>>();
                call(Method::PUT, format!("{of}/traits")).with(json!({ "traits": names }))
            }
            8 => {
                let refused = REFUSED
                    .iter()
                    .find(|(of, _)| *of == state)
                    .map_or(&[][..], |(_, verbs)| verbs);
                let target = pick(dice, refused);
                call(Method::PUT, format!("{of}/states/provision")).with(json!({ "target": target }))
            }
            _ => {
                let filter = pick(
                    dice,
                    &[
                        "",
                        "&maintenance=true",
                        "&associated=true",
                        "&associated=false",
                        "&provision_state=enroll",
                        "&provision_state=available",
                        "&retired=true",
                        "&owner=somebody",
                        "&limit=1",
                        "&colour=blue",
                    ],
                );
                let fields = self.fields(dice);
                call(
                    Method::GET,
                    format!("/v1/nodes?resource_class={}&fields={fields}{filter}", self.class),
                )
            }
        }
    }

    fn fields(&self, dice: &mut Dice) -> String {
        let all = [
            "uuid",
            "name",
            "provision_state",
            "maintenance",
            "instance_uuid",
            "resource_class",
            "traits",
            "owner",
            "retired",
            "shard",
            "power_state",
            "target_provision_state",
            "protected",
            "fault",
            "no_such_field",
        ];
        let mut fields = all
            .iter()
            .filter(|_| dice.chance(250))
            .copied()
            .collect::<Vec<_>>();
        if dice.chance(900) {
            fields.retain(|field| *field != "no_such_field");
        }
        match fields.is_empty() {
            true => "uuid".to_owned(),
            false => fields.join(","),
        }
    }

    fn patch(&self, dice: &mut Dice) -> Value {
        let op = *pick(dice, &["add", "replace", "remove"]);
        let instance = pick(dice, &self.instances).to_string();
        let (path, value) = match dice.below(12) {
            0 => ("/instance_uuid", json!(instance)),
            1 => ("/extra/colour", json!("blue")),
            2 => ("/owner", json!("somebody")),
            3 => ("/retired", json!(dice.chance(500))),
            4 => ("/description", json!("random")),
            5 => ("/provision_state", json!("available")),
            6 => ("/no_such_field", json!(1)),
            7 => ("/instance_uuid", json!("no uuid")),
            8 => ("/protected", json!(dice.chance(500))),
            9 => ("/maintenance", json!(dice.chance(500))),
            10 => ("/automated_clean", json!(true)),
            _ => ("/shard", json!("s1")),
        };
        match op {
            "remove" => json!({ "op": op, "path": path }),
            _ => json!({ "op": op, "path": path, "value": value }),
        }
    }
}
