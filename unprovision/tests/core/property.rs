//! Whatever was seen and whatever has happened before: what must never be sent is never decided.
//!
//! The judge here is written from the safety rules alone; it shares nothing with `check`.

use ironic_client::{Fault, Node, PowerState};
use jiff::Timestamp;
use placement_client::{ConsumerUuid, ProviderUuid};
use unprovision::core::{
    Action, Case, Decision, Event, Giver, Kind, Limits, Observation, Owner, ProviderView, RefusalKind, Tag,
    decide, guard_consumer_since,
};
use unprovision::strategy;

use crate::build::{
    ELSEWHERE, INSTANCE, LEAVING, NODE, ProviderExt, STRANGER, Story, at, class, every_state, found, guard,
    hand_over, in_use, instance, node, one_unit, other_class, provider, reserve, tag, tag_name, tag_node,
    tag_provider, unprovision,
};
use crate::property_nova::{says, some_answer};
use crate::property_tags::{forbidden_tag, traits};

const CASES: u64 = 12_000;

/// The same numbers in every run (splitmix64), so that a failure can be seen again by its seed.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % sides
    }

    pub(crate) fn one_in(&mut self, n: u64) -> bool {
        self.roll(n) == 0
    }

    fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[usize::try_from(self.roll(from.len() as u64)).unwrap()].clone()
    }
}

fn some_node(dice: &mut Dice) -> Node {
    let states = every_state();
    // The states of the way back more often than the others.
    let likely = [
        "active",
        "available",
        "available",
        "cleaning",
        "clean failed",
        "manageable",
        "manageable",
        "error",
    ];
    let state = if dice.one_in(2) {
        dice.pick(&states)
    } else {
        dice.pick(&likely).into()
    };
    Node {
        instance_uuid: dice.pick(&[None, None, Some(INSTANCE), Some(INSTANCE), Some(STRANGER)]),
        provision_updated_at: dice.pick(&[None, Some(at(-1000)), Some(at(1)), Some(at(150))]),
        power_state: dice.pick(&[
            None,
            Some(PowerState::Error),
            Some(PowerState::On),
            Some(PowerState::Off),
            Some(PowerState::Off),
        ]),
        maintenance: dice.one_in(4),
        fault: dice.pick(&[
            None,
            Some(Fault::CleanFailure),
            Some(Fault::CleanFailure),
            Some(Fault::Other("power failure".into())),
        ]),
        traits: dice
            .pick(&[vec![], vec![tag_name().to_string()]])
            .into_iter()
            .collect(),
        retired: dice.one_in(8),
        protected: dice.one_in(8),
        last_error: dice.pick(&[None, Some("it broke".to_owned())]),
        reservation: dice.pick(&[None, Some("conductor-1".to_owned())]),
        ..node(state)
    }
}

fn some_provider(dice: &mut Dice) -> ProviderView {
    let mut view = provider().reserved(u32::from(dice.one_in(2)));
    for holder in [instance(), guard(), ConsumerUuid(STRANGER)] {
        if dice.one_in(3) {
            view = view.held_by(holder);
            if dice.one_in(4) {
                let held = view.holders.get_mut(&holder).unwrap();
                held.all.allocations.insert(ELSEWHERE, one_unit());
            }
        }
    }
    if !dice.one_in(4) {
        view = dice.pick(&[
            view.clone().with_traits(&["CUSTOM_RACK_7"]),
            view.clone().tagged(),
            view.tagged(),
        ]);
    }
    if dice.one_in(6) {
        let more = view.inventories.inventories[&class()].clone();
        view.inventories.inventories.insert(other_class(), more);
    }
    view
}

fn some_tag(dice: &mut Dice) -> Option<Tag> {
    (!dice.one_in(3)).then(|| Tag {
        on_node: dice.one_in(5),
        on_provider: dice.one_in(5),
        ..tag()
    })
}

fn some_case(dice: &mut Dice) -> Case {
    let kind = if dice.one_in(5) {
        Kind::Guard {
            instance: dice.pick(&[None, Some(INSTANCE)]),
            since: Some(at(-1000)),
        }
    } else {
        Kind::TearDown { instance: INSTANCE }
    };
    let limits = Limits {
        deadline: dice.pick(&[at(100), at(100_000)]),
        retry_error: u32::try_from(dice.roll(3)).unwrap(),
        reclean: u32::try_from(dice.roll(3)).unwrap(),
        release_nova_reservations: dice.one_in(2),
    };
    let mut found = found();
    found.nova = dice.one_in(2);
    found.reserved = u32::from(dice.one_in(3));
    if dice.one_in(6) {
        found.owner = None;
        found.units.clear();
    }
    found.tag = some_tag(dice);
    let mut story = Story::new(kind, limits, found);
    if dice.one_in(3) {
        story = story.tagged();
    }
    // A cure under way, which chance alone would seldom bring about.
    if dice.one_in(3) {
        story = story
            .torn_down()
            .applied(0, Action::Manage { since: Some(at(-1)) });
    }
    for _ in 0..dice.roll(5) {
        let seconds = i64::try_from(dice.roll(200)).unwrap();
        let since = dice.pick(&[None, Some(at(-1000)), Some(at(1)), Some(at(150))]);
        let writes = [
            unprovision(&in_use()),
            hand_over(),
            reserve(),
            tag_node(),
            tag_provider(),
            Action::RemoveNodeTrait { name: tag_name() },
            Action::Manage { since },
            Action::Provide { since },
        ];
        let write = dice.pick(&writes);
        let kinds = [
            RefusalKind::Locked,
            RefusalKind::Conflict,
            RefusalKind::NoCapacity,
            RefusalKind::Forbidden,
        ];
        story = match dice.roll(4) {
            0 => story.refused(seconds, write, dice.pick(&kinds)),
            1 => story.unknown(seconds, write),
            2 if dice.one_in(4) => story.then(seconds, Event::Resumed { limits }),
            _ => story.applied(seconds, write),
        };
    }
    story.case()
}

/// Free in Ironic's own words.
pub(crate) fn is_free(node: &Node) -> bool {
    let powered = !matches!(node.power_state, None | Some(PowerState::Error));
    let available = node.provision_state.as_str() == "available";
    available && node.instance_uuid.is_none() && !node.maintenance && powered && !node.retired
}

/// Whether a query for the class would return the provider, with these consumers gone and this many reserved.
pub(crate) fn offered_without(view: &ProviderView, gone: ConsumerUuid, reserved: u32) -> bool {
    let inventory = &view.inventories.inventories[&class()];
    let used = view.holders.keys().filter(|holder| **holder != gone).count();
    used == 0 && reserved < inventory.total
}

/// Why the write must not be sent, if so.
fn forbidden(case: &Case, seen: &Observation, action: &Action, now: Timestamp) -> Option<&'static str> {
    let carries = seen.node.as_ref().and_then(|node| node.instance_uuid);
    if action.is_to_ironic() {
        if matches!(case.kind, Kind::Guard { .. }) {
            return Some("the guard changes a node");
        }
        if now >= case.limits.deadline && action.drives_the_node() {
            return Some("Ironic is asked for something after the deadline");
        }
        let unmarks = matches!(action, Action::RemoveNodeTrait { .. });
        if !unmarks && carries.is_some_and(|carried| carried != INSTANCE) {
            return Some("another instance's node is changed");
        }
    }
    match action {
        Action::Unprovision { carries: None, .. } if case.limits.retry_error == 0 => Some("repeated unasked"),
        Action::Unprovision { carries: asked, .. } if *asked != carries => Some("decided from another node"),
        Action::Manage { .. } | Action::Provide { .. } | Action::ClearMaintenance { .. } => {
            let node = seen.node.as_ref()?;
            if case.limits.reclean == 0 {
                return Some("cured unasked");
            }
            let persons = node.maintenance && node.fault != Some(Fault::CleanFailure);
            persons.then_some("done against a person's maintenance")
        }
        Action::Unprovision { .. } | Action::Abort { .. } => None,
        Action::AddNodeTrait { .. }
        | Action::RemoveNodeTrait { .. }
        | Action::AddProviderTrait { .. }
        | Action::RemoveProviderTrait { .. } => forbidden_tag(case, seen, action),
        _ => forbidden_to_placement(case, seen, action),
    }
}

/// The consumer that this very case claims for.
fn own_consumer(case: &Case) -> ConsumerUuid {
    match case.kind {
        Kind::Guard {
            instance: None,
            since,
        } => guard_consumer_since(NODE, since),
        _ => guard(),
    }
}

fn forbidden_to_placement(case: &Case, seen: &Observation, action: &Action) -> Option<&'static str> {
    let no_one = ConsumerUuid(ELSEWHERE.0);
    let carries = seen.node.as_ref().and_then(|node| node.instance_uuid);
    let free = seen.node.as_ref().is_some_and(is_free);
    match action {
        Action::SetReserved { to, .. } => {
            let view = seen.provider.as_ref()?;
            let lowered = *to < view.inventories.inventories[&class()].reserved;
            let next_holds = carries
                .filter(|carried| *carried != INSTANCE)
                .is_some_and(|next| view.holders.contains_key(&ConsumerUuid(next)));
            let back = (carries == Some(INSTANCE) || next_holds) && *to >= case.found.reserved;
            if lowered && !free && !back {
                return Some("a reservation is lowered although the node is not free");
            }
            (!free && !back && offered_without(view, no_one, *to)).then_some("offered by the reservation")
        }
        Action::HandOver { receiver, giver, .. } => {
            forbidden_hand_over(case, seen, *receiver, giver.as_ref())
        }
        Action::HandBack { from, to, .. } => {
            if *from != guard() || to.uuid != instance() {
                return Some("a hand-back between others");
            }
            if carries != Some(INSTANCE) {
                return Some("handed back to an instance that has left");
            }
            says(seen, &["gone", "deleting", "elsewhere"]).then_some("handed back against Nova's word")
        }
        Action::Release { whose, consumer } => {
            let guards = matches!(case.kind, Kind::Guard { .. });
            let own = if *whose == Owner::Guard {
                guard()
            } else {
                instance()
            };
            if consumer.uuid != own && (*whose == Owner::Instance || consumer.uuid != own_consumer(case)) {
                return Some("another's allocation is released");
            }
            if guards && *whose == Owner::Instance {
                return Some("the guard releases what is the instance's");
            }
            if consumer.rest.contains_key(&ProviderUuid(case.node.0)) {
                return Some("what is released is kept");
            }
            if *whose == Owner::Guard && says(seen, &["active"]) {
                return Some("released although a server is there");
            }
            let view = seen.provider.as_ref()?;
            let reserved = view.inventories.inventories[&class()].reserved;
            // Queries that forbid the tag are all that is protected by it.
            let tags = case.found.tag.is_some() && *whose == Owner::Instance;
            let hidden = tags && traits(view).contains(&tag_name());
            (!free && !hidden && offered_without(view, own, reserved))
                .then_some("released although the node is not free")
        }
        _ => None,
    }
}

fn forbidden_hand_over(
    case: &Case,
    seen: &Observation,
    receiver: ConsumerUuid,
    giver: Option<&Giver>,
) -> Option<&'static str> {
    let leaving = case.kind.instance().map(ConsumerUuid);
    if receiver != own_consumer(case) || giver.is_some_and(|giver| Some(giver.uuid) != leaving) {
        return Some("a hand-over between others");
    }
    let node = seen
        .node
        .as_ref()
        .filter(|_| matches!(case.kind, Kind::Guard { .. }))?;
    let in_use = node.instance_uuid.is_some() && !LEAVING.contains(&node.provision_state.as_str());
    in_use.then_some("taken from a node in use")
}

#[test]
fn nothing_that_must_never_be_sent_is_ever_decided() {
    let mut decided = std::collections::BTreeMap::new();
    for seed in 0..CASES {
        let mut dice = Dice(seed.wrapping_mul(0x5851_F42D_4C95_7F2D));
        let case = some_case(&mut dice);
        let seen = Observation {
            at: at(200),
            node: (!dice.one_in(12)).then(|| some_node(&mut dice)),
            provider: (!dice.one_in(12)).then(|| some_provider(&mut dice)),
            nova: (!dice.one_in(3)).then(|| some_answer(&mut dice)),
        };
        let now = dice.pick(&[at(200), at(300), at(99_999)]);
        for strategy in strategy::ALL {
            let Decision::Act(action) = decide(*strategy, &case, &seen, now) else {
                continue;
            };
            *decided.entry(action.kind()).or_insert(0_u32) += 1;
            let why = forbidden(&case, &seen, &action, now);
            assert!(
                why.is_none(),
                "seed {seed}, {}: {action}: {}\n{seen:#?}\n{case:#?}",
                strategy.name(),
                why.unwrap()
            );
        }
    }
    assert_eq!(decided.len(), 13, "all kinds of writes were decided: {decided:?}");
}
