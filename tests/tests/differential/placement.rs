//! Random requests to Placement.

use http::Method;
use serde_json::{Map, Value, json};
use unprovision_testkit::contract::{Seed, Service};
use unprovision_testkit::simulate::Dice;
use uuid::Uuid;

use crate::sides::{Call, Pair};

/// The oldest that we use, the one with mappings, the first with consumer types, and today's.
const VERSIONS: [&str; 4] = ["1.28", "1.34", "1.38", "1.39"];

/// Few of each, so that requests meet.
pub(crate) struct World {
    providers: Vec<Uuid>,
    consumers: Vec<Uuid>,
    classes: Vec<String>,
    traits: Vec<String>,
    project: Uuid,
    user: Uuid,
}

impl World {
    pub(crate) async fn make(pair: &mut Pair) -> Self {
        let seed = Seed::random().to_string();
        let uuid = |name: &str| Uuid::new_v5(&Uuid::NAMESPACE_URL, format!("{seed}/{name}").as_bytes());
        let uuids = |what: &str, count: usize| (0..count).map(|n| uuid(&format!("{what}{n}"))).collect();
        let custom = |what: &str| format!("CUSTOM_DIFF_{what}_{}", seed.to_uppercase());
        let world = Self {
            providers: uuids("provider", 3),
            consumers: uuids("consumer", 3),
            classes: vec![custom("A"), custom("B"), "VCPU".to_owned()],
            traits: vec![custom("T"), custom("U"), "HW_CPU_X86_VMX".to_owned()],
            project: uuid("project"),
            user: uuid("user"),
        };
        for class in &world.classes[..2] {
            pair.set_up(world.call("1.39", Method::PUT, format!("/resource_classes/{class}")))
                .await;
        }
        pair.set_up(world.call("1.39", Method::PUT, format!("/traits/{}", world.traits[0])))
            .await;
        for provider in &world.providers[..2] {
            let new = json!({ "uuid": provider, "name": format!("diff-{provider}") });
            pair.set_up(world.call("1.39", Method::POST, "/resource_providers").with(new))
                .await;
        }
        world
    }

    fn call(&self, version: &'static str, method: Method, path: impl Into<String>) -> Call {
        Call::new(Service::Placement, version, method, path)
    }

    pub(crate) fn next(&self, dice: &mut Dice, pair: &Pair) -> Call {
        let version = *pick(dice, &VERSIONS);
        let provider = *pick(dice, &self.providers);
        let of = format!("/resource_providers/{provider}");
        let call = |method, path: String| self.call(version, method, path);
        match dice.below(14) {
            0 => call(Method::GET, of),
            1 => call(Method::GET, format!("{of}/inventories")),
            2 => call(
                Method::GET,
                format!("{of}/{}", pick(dice, &["allocations", "traits", "usages"])),
            ),
            3 | 4 => {
                call(Method::PUT, format!("{of}/inventories")).with(self.inventories(dice, pair, provider))
            }
            5 => {
                let class = pick(dice, &self.classes);
                let method = pick(dice, &[Method::GET, Method::DELETE, Method::PUT]).clone();
                let at = call(method.clone(), format!("{of}/inventories/{class}"));
                if method != Method::PUT {
                    return at;
                }
                let mut body = self.inventory(dice);
                body["resource_provider_generation"] = self.generation(dice, pair, provider);
                at.with(body)
            }
            6 => {
                let names = self
                    .traits
                    .iter()
                    .filter(|_| dice.chance(500))
                    .collect::<Vec<_>>();
                let generation = self.generation(dice, pair, provider);
                let body = json!({ "traits": names, "resource_provider_generation": generation });
                call(Method::PUT, format!("{of}/traits")).with(body)
            }
            7 | 8 => {
                let consumer = *pick(dice, &self.consumers);
                let body = self.claim(dice, pair, version, consumer);
                call(Method::PUT, format!("/allocations/{consumer}")).with(body)
            }
            9 => {
                let body = self
                    .consumers
                    .iter()
                    .filter(|_| dice.chance(600))
                    .copied()
                    .collect::<Vec<_>>();
                let claims = body
                    .iter()
                    .map(|consumer| (consumer.to_string(), self.claim(dice, pair, version, *consumer)));
                let claims = claims.collect::<Map<_, _>>();
                call(Method::POST, "/allocations".to_owned()).with(Value::Object(claims))
            }
            10 => {
                let method = if dice.chance(700) {
                    Method::GET
                } else {
                    Method::DELETE
                };
                call(method, format!("/allocations/{}", pick(dice, &self.consumers)))
            }
            11 => {
                let class = pick(dice, &self.classes[..2]);
                let more = match dice.below(4) {
                    0 => format!("&required={}", pick(dice, &self.traits)),
                    1 => format!("&required=!{}", pick(dice, &self.traits)),
                    2 => "&limit=1".to_owned(),
                    _ => String::new(),
                };
                let amount = dice.below(3);
                call(
                    Method::GET,
                    format!("/allocation_candidates?resources={class}:{amount}{more}"),
                )
            }
            12 => match dice.below(4) {
                0 => call(Method::GET, format!("/resource_providers?uuid={provider}")),
                1 => call(Method::GET, format!("/resource_providers?name=diff-{provider}")),
                2 => call(Method::GET, format!("/resource_providers?in_tree={provider}")),
                _ => call(Method::GET, "/resource_providers?colour=blue".to_owned()),
            },
            _ => match dice.below(5) {
                0 => call(Method::DELETE, of),
                1 => call(Method::PUT, format!("/traits/{}", pick(dice, &self.traits))),
                2 => call(Method::GET, format!("/traits/{}", pick(dice, &self.traits))),
                3 => call(Method::GET, format!("/usages?project_id={}", self.project)),
                _ => call(Method::POST, "/resource_providers".to_owned())
                    .with(json!({ "uuid": provider, "name": format!("diff-{provider}") })),
            },
        }
    }

    /// Mostly the right one.
    fn generation(&self, dice: &mut Dice, pair: &Pair, of: Uuid) -> Value {
        match dice.below(10) {
            0 => json!(dice.below(4)),
            1 => Value::Null,
            _ => pair.generation(&of.to_string()),
        }
    }

    fn inventory(&self, dice: &mut Dice) -> Value {
        let total = dice.below(3);
        match dice.below(8) {
            0 => json!({ "total": total }),
            1 => json!({ "total": total, "colour": "blue" }),
            2 => json!({ "total": "one" }),
            _ => json!({
                "total": total, "reserved": dice.below(3), "min_unit": 1, "max_unit": total.max(1), "step_size": 1,
                "allocation_ratio": 1.0,
            }),
        }
    }

    fn inventories(&self, dice: &mut Dice, pair: &Pair, provider: Uuid) -> Value {
        let classes = self
            .classes
            .iter()
            .filter(|_| dice.chance(500))
            .cloned()
            .collect::<Vec<_>>();
        let inventories = classes.into_iter().map(|class| (class, self.inventory(dice)));
        let inventories = inventories.collect::<Map<_, _>>();
        json!({
            "resource_provider_generation": self.generation(dice, pair, provider),
            "inventories": inventories,
        })
    }

    fn claim(&self, dice: &mut Dice, pair: &Pair, version: &str, consumer: Uuid) -> Value {
        let providers = self
            .providers
            .iter()
            .filter(|_| dice.chance(400))
            .copied()
            .collect::<Vec<_>>();
        let held = providers.into_iter().map(|provider| {
            let class = pick(dice, &self.classes[..2]).clone();
            (
                provider.to_string(),
                json!({ "resources": { class: 1 + dice.below(2) } }),
            )
        });
        let held = held.collect::<Map<_, _>>();
        let mut claim = json!({
            "allocations": held, "project_id": self.project, "user_id": self.user,
            "consumer_generation": self.generation(dice, pair, consumer),
        });
        // Must be there from 1.38 on, and must not before; now and then it is the other way round.
        if (version >= "1.38") != dice.chance(50) {
            claim["consumer_type"] = json!("INSTANCE");
        }
        claim
    }
}

pub(crate) fn pick<'a, T>(dice: &mut Dice, from: &'a [T]) -> &'a T {
    &from[usize::try_from(dice.below(from.len() as u64)).unwrap()]
}
