//! `trait-tagging`: the node carries a tag while it is on its way, and queries that forbid the tag are not offered it.
//!
//! - **When it acts**: before the tear-down it tags the node and its provider; once the instance is on its way out, it releases
//!   the instance's allocation; at `available` it takes the tag away. A tag that is lost meanwhile is set again.
//! - **What it owns**: one custom trait, where it was not there before.
//! - **Which window stays open**: queries that do not forbid the tag are offered the node as soon as the instance's allocation is
//!   gone. Nova replaces a provider's traits by the node's: a pass of its tracker that has read the node before we tagged it
//!   takes the tag from the provider until our next look.
//!
//! Why both, and in this order: what Nova copies from the node lasts, but nothing copies it without Nova. The node comes first,
//! also when the tag is taken away, so that no later pass undoes what we did to the provider. Ironic changes a node's traits
//! only while nobody holds its lock: not while it is cleaning, so not after the tear-down.

use super::{Feature, Gap, InIronic, InPlacement, Needs, Strategy, act};
use crate::core::{Action, ActionKind, Case, LookAgain, Owner, Seen, Stage, Step};

/// The strategy `trait-tagging`.
#[derive(Clone, Copy, Debug)]
pub struct TraitTagging;

impl Strategy for TraitTagging {
    fn name(&self) -> &'static str {
        "trait-tagging"
    }

    fn promise(&self) -> &'static str {
        "from the first hold to the first `available` never offered to queries that forbid the tag"
    }

    fn window(&self) -> &'static str {
        "queries that do not forbid the tag: from the release of the instance's allocation to the first `available`; beside \
         Nova also those that do, where a tracker's pass read the node before it was tagged: until our next look"
    }

    fn gaps(&self) -> &'static [Gap] {
        &[Gap::PlainQueries, Gap::Tracker, Gap::FrozenWriter]
    }

    fn needs(&self) -> Needs {
        Needs {
            features: &[
                Feature::ForbiddenTraits,
                Feature::ErrorCodes,
                Feature::ReserveAll,
                Feature::ConsumerGenerations,
            ],
            in_ironic: &[InIronic::ChangeStates, InIronic::SetTraits],
            in_placement: &[
                InPlacement::WriteAllocations,
                InPlacement::WriteInventories,
                InPlacement::WriteTraits,
            ],
        }
    }

    fn uses_tag(&self) -> bool {
        true
    }

    fn guards(&self) -> Result<(), &'static str> {
        Err(
            "`trait-tagging` has to tag the node before it is torn down, since Ironic locks it afterwards: use `hand-over`",
        )
    }

    fn decide(&self, case: &Case, seen: &Seen<'_>) -> Step {
        let view = seen.provider.map(|(view, _)| view);
        if view.is_some_and(|view| view.traits.is_none()) {
            return Step::Wait(LookAgain::Often);
        }
        let on_node = || Action::tag_node(case, seen.node);
        let on_provider = || view.and_then(|view| Action::tag_provider(case, view));
        let release = |whose| view.and_then(|view| Action::release(case, view, whose));
        match seen.stage {
            Stage::InUse if case.found.tag.is_none() => Step::Blocked("the case was begun without a tag"),
            // What is refused for good comes first, so that nothing else is begun.
            Stage::InUse if is_hopeless(case, ActionKind::AddProviderTrait) => {
                on_provider().or_else(on_node).map_or(Step::TearDown, Step::Act)
            }
            Stage::InUse => on_node().or_else(on_provider).map_or(Step::TearDown, Step::Act),
            Stage::Returning => {
                // Where the node will not take it, the provider at least is kept tagged.
                act(on_provider().or_else(|| match on_node() {
                    Some(tag) => Some(tag).filter(|_| !is_hopeless(case, ActionKind::AddNodeTrait)),
                    None => release(Owner::Instance).filter(|_| case.found.tag.is_some()),
                }))
            }
            Stage::Ready => release(Owner::Instance)
                .or_else(|| release(Owner::Guard))
                .or_else(|| Action::untag(case, seen.node, view))
                .map_or(Step::Done, Step::Act),
        }
    }
}

/// Whether a write of this kind was refused for good.
fn is_hopeless(case: &Case, kind: ActionKind) -> bool {
    let attempts = case.attempts.get(&kind);
    attempts.is_some_and(|attempts| attempts.refused_for_good().is_some())
}
