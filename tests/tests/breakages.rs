//! The tests are tested: the product is broken on purpose, and the checker has to tell.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of tests are tests"
)]

use ironic_client::ProvisionState as P;
use jiff::Timestamp;
use placement_client::TraitName;
use unprovision::core::{
    self, Action, Case, DEFAULT_TAG, Decision, Ending, LookAgain, Observation, Outcome, Owner, ProviderView,
    Seen, Stage, Step,
};
use unprovision::strategy::{HandOver, ReserveOnDelete, Strategy, TraitTagging};
use unprovision_testkit::checker::{Budget, Scope, check, check_until};
use unprovision_testkit::model::nova::Rule;
use unprovision_testkit::model::{AsIs, Breach, Product, Sent};
use unprovision_testkit::simulate::{Plan, run};

/// The product, with another decision where this one has something to say.
#[derive(Clone, Copy, Debug)]
struct Decides(fn(&Case, &Observation, &Decision) -> Option<Decision>);

impl Product for Decides {
    fn decide(&self, strategy: &dyn Strategy, case: &Case, seen: &Observation, now: Timestamp) -> Decision {
        let right = core::decide(strategy, case, seen, now);
        (self.0)(case, seen, &right).unwrap_or(right)
    }
}

/// The product, whose writes leave otherwise.
#[derive(Clone, Copy, Debug)]
struct Sends(Sent);

impl Product for Sends {
    fn sends(&self) -> Sent {
        self.0
    }
}

fn quiet() -> Scope {
    Scope::alone(0)
}

fn with(budget: Budget) -> Scope {
    Scope { budget, ..quiet() }
}

/// The checker finds the breach with the broken product, and not with the real one.
fn is_caught(product: &dyn Product, strategy: &dyn Strategy, scope: Scope, breach: Breach) {
    let broken = check_until(product, strategy, &scope, Some(breach)).broken;
    assert!(broken.contains_key(&breach), "not caught: {broken:?}");
    let right = check(&AsIs, strategy, &scope).broken;
    assert!(
        !right.contains_key(&breach),
        "found without the breakage: {right:?}"
    );
}

fn view(seen: &Observation) -> Option<&ProviderView> {
    seen.provider.as_ref()
}

fn state(seen: &Observation) -> Option<&P> {
    seen.node.as_ref().map(|node| &node.provision_state)
}

fn release_ours(case: &Case, seen: &Observation) -> Option<Decision> {
    Action::release(case, view(seen)?, Owner::Guard).map(Decision::Act)
}

#[test]
fn a_release_at_clean_wait_is_caught() {
    let product = Decides(|case, seen, _| match state(seen) {
        Some(P::CleanWait) => release_ours(case, seen),
        _ => None,
    });
    is_caught(&product, &HandOver, quiet(), Breach::Exposed);
}

#[test]
fn freeing_a_node_in_error_is_caught() {
    let product = Decides(|case, seen, _| match state(seen) {
        Some(P::Error) => release_ours(case, seen),
        _ => None,
    });
    let fails = Budget {
        all: 1,
        failures: 1,
        ..Budget::default()
    };
    is_caught(&product, &HandOver, with(fails), Breach::Exposed);
}

#[test]
fn following_the_instance_instead_of_the_node_is_caught() {
    let product = Decides(|case, seen, _| match &seen.node {
        Some(node) if node.instance_uuid != case.instance() => release_ours(case, seen),
        _ => None,
    });
    is_caught(&product, &HandOver, quiet(), Breach::Exposed);
}

#[test]
fn writes_without_generations_are_caught() {
    let product = Sends(Sent {
        conditional: false,
        looks_before: true,
    });
    let overtaken = Budget {
        all: 1,
        takeovers: 1,
        ..Budget::default()
    };
    is_caught(&product, &HandOver, with(overtaken), Breach::ByFrozenWriter);
}

#[test]
fn a_delete_instead_of_a_put_is_caught() {
    // `DELETE /allocations/CONSUMER` takes everything, also what the consumer holds elsewhere.
    let product = Decides(|_, _, right| match right.clone() {
        Decision::Act(Action::Release { whose, mut consumer }) => {
            consumer.rest.clear();
            Some(Decision::Act(Action::Release { whose, consumer }))
        }
        _ => None,
    });
    let elsewhere = Scope {
        elsewhere: true,
        ..quiet()
    };
    is_caught(&product, &ReserveOnDelete, elsewhere, Breach::Foreign);
}

#[test]
fn a_tag_that_is_removed_first_is_caught() {
    let product = Decides(|_, seen, _| {
        let name: TraitName = DEFAULT_TAG.parse().ok()?;
        let mut traits = view(seen)?.traits.clone()?;
        let cleaning = state(seen) == Some(&P::Cleaning);
        (cleaning && traits.traits.remove(&name))
            .then_some(Decision::Act(Action::RemoveProviderTrait { name, traits }))
    });
    is_caught(&product, &TraitTagging, quiet(), Breach::Exposed);
}

#[test]
fn a_tear_down_that_is_sent_after_a_take_over_without_a_look_is_caught() {
    let product = Sends(Sent {
        conditional: true,
        looks_before: false,
    });
    let overtaken = Budget {
        all: 1,
        takeovers: 1,
        ..Budget::default()
    };
    is_caught(&product, &HandOver, with(overtaken), Breach::Wiped);
}

#[test]
fn a_hold_only_after_the_delete_is_caught() {
    let product = Decides(|_, seen, right| {
        let node = seen.node.as_ref()?;
        let in_use = node.provision_state == P::Active;
        let tear_down = Action::Unprovision {
            carries: node.instance_uuid,
            since: node.provision_updated_at,
            from: node.provision_state.clone(),
        };
        matches!(right, Decision::Act(Action::HandOver { .. }) if in_use).then_some(Decision::Act(tear_down))
    });
    let deletes = Scope {
        nova: Some(Rule::Old),
        ..with(Budget {
            all: 1,
            deletes: 1,
            ..Budget::default()
        })
    };
    let broken = check_until(&product, &HandOver, &deletes, Some(Breach::Exposed)).broken;
    assert!(broken.contains_key(&Breach::Exposed), "{broken:?}");
}

#[test]
fn reserved_set_to_zero_instead_of_what_was_found_is_caught() {
    let product = Decides(|case, seen, right| {
        let class = case.found.class.as_ref()?;
        let ends = matches!(right, Decision::End(_)) && state(seen) == Some(&P::Available);
        let action = Action::set_reserved(view(seen)?, class, 0)?;
        (ends && view(seen)?.is_reserved(class)).then_some(Decision::Act(action))
    });
    let reserved = Scope {
        found_reserved: true,
        ..quiet()
    };
    is_caught(&product, &ReserveOnDelete, reserved, Breach::Foreign);
}

/// Releases as soon as the node is on its way.
#[derive(Debug)]
struct Hasty;

impl Strategy for Hasty {
    fn name(&self) -> &'static str {
        "hand-over"
    }

    fn promise(&self) -> &'static str {
        "none"
    }

    fn window(&self) -> &'static str {
        "all of it"
    }

    fn decide(&self, case: &Case, seen: &Seen<'_>) -> Step {
        let release = seen
            .provider
            .and_then(|(view, _)| Action::release(case, view, Owner::Guard));
        match (seen.stage, release) {
            (Stage::Returning, Some(action)) => Step::Act(action),
            _ => HandOver.decide(case, seen),
        }
    }
}

#[test]
fn a_hasty_strategy_is_stopped_by_the_veto_and_caught_without_it() {
    let vetoed = check(&AsIs, &Hasty, &quiet()).broken;
    assert!(!vetoed.contains_key(&Breach::Exposed), "{vetoed:?}");
    let product = Decides(|case, seen, right| match right {
        Decision::End(ending) if ending.reason.starts_with("refused to") => release_ours(case, seen),
        _ => None,
    });
    let broken = check_until(&product, &Hasty, &quiet(), Some(Breach::Exposed)).broken;
    assert!(broken.contains_key(&Breach::Exposed), "{broken:?}");
}

/// Holds, and never lets go.
#[derive(Debug)]
struct Greedy;

impl Strategy for Greedy {
    fn name(&self) -> &'static str {
        "hand-over"
    }

    fn promise(&self) -> &'static str {
        "none"
    }

    fn window(&self) -> &'static str {
        "none"
    }

    fn decide(&self, case: &Case, seen: &Seen<'_>) -> Step {
        match seen.stage {
            Stage::Ready => Step::Wait(LookAgain::Seldom),
            _ => HandOver.decide(case, seen),
        }
    }
}

#[test]
fn a_hold_that_never_ends_is_caught() {
    let broken = check(&AsIs, &Greedy, &quiet()).broken;
    assert!(broken.contains_key(&Breach::Stuck), "{broken:?}");
}

#[test]
fn a_case_that_is_closed_over_its_hold_is_caught() {
    let product = Decides(|_, seen, right| {
        let ending = Ending {
            outcome: Outcome::Returned,
            reason: String::new(),
            held: false,
        };
        let waits = matches!(right, Decision::Wait(_)) && state(seen) == Some(&P::Cleaning);
        waits.then_some(Decision::End(ending))
    });
    is_caught(&product, &HandOver, quiet(), Breach::LeftBehind);
}

fn tears_down_whoever_is_there(_: &Case, seen: &Observation, _: &Decision) -> Option<Decision> {
    let node = seen.node.as_ref()?;
    let tear_down = Action::Unprovision {
        carries: node.instance_uuid,
        since: node.provision_updated_at,
        from: P::Active,
    };
    (node.provision_state == P::Active).then_some(Decision::Act(tear_down))
}

#[test]
fn a_tear_down_of_whoever_is_there_is_caught() {
    is_caught(
        &Decides(tears_down_whoever_is_there),
        &HandOver,
        quiet(),
        Breach::Wiped,
    );
}

#[test]
fn the_simulation_catches_a_breakage_too() {
    let product = Decides(|case, seen, _| match state(seen) {
        Some(P::CleanWait) => release_ours(case, seen),
        _ => None,
    });
    let plan = Plan {
        product: &product,
        strategies: &[&HandOver],
        seed: 1,
        cases: 60,
        threads: 1,
    };
    let found = run(&plan).tally.violations;
    assert!(
        found.iter().any(|found| found.breach == Breach::Exposed),
        "{found:?}"
    );
}
