//! What the services make of a write.

use ironic_client::Verb;
use jiff::Timestamp;
use placement_client::{ConsumerGeneration, ConsumerUuid};
use unprovision::core::{Action, Giver, RefusalKind};

use super::bay::{Author, Bay, Held, Maintenance, Provider};
use super::product::Sent;
use super::view::is_novas;

/// How the services behave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Services {
    /// Placement before 14.0.0: whatever claims something of a provider over capacity is refused.
    pub old_placement: bool,
    /// Ironic's limit of nodes that are cleaned is reached.
    pub busy: bool,
}

/// Applies a write of ours, as [`unprovision::cloud::OpenStack`] sends it.
///
/// # Errors
///
/// Why the service refused it; nothing has changed then.
pub fn apply(
    bay: &mut Bay,
    action: &Action,
    sent: Sent,
    services: Services,
    at: Timestamp,
) -> Result<(), RefusalKind> {
    if sent.looks_before && !is_unchanged(bay, action) {
        return Err(RefusalKind::Conflict);
    }
    match action {
        Action::Unprovision { .. } => {
            cleaning_may_begin(bay, Verb::Deleted, services)?;
            bay.node.ask(Verb::Deleted, at)
        }
        Action::Abort { .. } => bay.node.ask(Verb::Abort, at),
        Action::Manage { .. } => bay.node.ask(Verb::Manage, at),
        Action::ClearMaintenance { .. } => bay.node.end_maintenance(),
        Action::Provide { .. } => {
            cleaning_may_begin(bay, Verb::Provide, services)?;
            bay.node.ask(Verb::Provide, at)
        }
        Action::AddNodeTrait { .. }
        | Action::RemoveNodeTrait { .. }
        | Action::AddProviderTrait { .. }
        | Action::RemoveProviderTrait { .. } => mark(bay, action, sent),
        Action::SetReserved { to, inventories, .. } => {
            if sent.conditional && inventories.generation.0 != bay.provider.generation {
                return Err(RefusalKind::Conflict);
            }
            bay.provider.reserve(*to, Author::Us);
            Ok(())
        }
        Action::HandOver {
            receiver,
            generation,
            giver,
            ..
        } => {
            let mut writes = vec![Write::of(*receiver, *generation, true, false)];
            writes.extend(giver.iter().map(Write::giving_up));
            write(&mut bay.provider, &writes, sent, services)
        }
        Action::HandBack {
            from, generation, to, ..
        } => {
            let writes = [
                Write::of(*from, *generation, false, false),
                Write {
                    here: true,
                    ..Write::giving_up(to)
                },
            ];
            write(&mut bay.provider, &writes, sent, services)
        }
        Action::Release { consumer, .. } => {
            write(&mut bay.provider, &[Write::giving_up(consumer)], sent, services)
        }
    }
}

/// Sets or removes a tag.
fn mark(bay: &mut Bay, action: &Action, sent: Sent) -> Result<(), RefusalKind> {
    match action {
        Action::AddNodeTrait { .. } | Action::RemoveNodeTrait { .. } if bay.node.locked => {
            Err(RefusalKind::Locked)
        }
        Action::AddNodeTrait { name } => {
            bay.node.traits.insert(name.as_str().to_owned());
            Ok(())
        }
        Action::RemoveNodeTrait { name } => {
            bay.node.traits.remove(name.as_str());
            Ok(())
        }
        Action::AddProviderTrait { traits, .. } | Action::RemoveProviderTrait { traits, .. } => {
            if sent.conditional && traits.generation.0 != bay.provider.generation {
                return Err(RefusalKind::Conflict);
            }
            let own = traits.traits.iter().filter(|name| !is_novas(name));
            bay.provider.traits = own.cloned().collect();
            bay.provider.touch();
            Ok(())
        }
        _ => Ok(()),
    }
}

/// Rule 3: the look immediately before. What happens between it and Ironic's own is not modelled: it would have to happen
/// within two seconds.
fn is_unchanged(bay: &Bay, action: &Action) -> bool {
    let node = &bay.node;
    let since = action.since().is_none_or(|since| since == node.since);
    since
        && match action {
            Action::Unprovision { carries, from, .. } => (node.instance, &node.state) == (*carries, from),
            Action::ClearMaintenance { .. } => node.maintenance == Maintenance::CleanFailure,
            _ => true,
        }
}

fn cleaning_may_begin(bay: &Bay, verb: Verb, services: Services) -> Result<(), RefusalKind> {
    let would = bay.node.state.accepts(verb) && !bay.node.locked;
    match would && services.busy {
        true => Err(RefusalKind::Busy),
        false => Ok(()),
    }
}

/// What a consumer shall hold.
#[derive(Clone, Copy, Debug)]
pub struct Write {
    /// The consumer.
    pub consumer: ConsumerUuid,
    /// What it must be at.
    pub generation: ConsumerGeneration,
    /// Whether it holds the unit of this provider.
    pub here: bool,
    /// Whether it holds one of another.
    pub elsewhere: bool,
}

impl Write {
    /// The consumer shall hold this.
    pub fn of(consumer: ConsumerUuid, generation: ConsumerGeneration, here: bool, elsewhere: bool) -> Self {
        Self {
            consumer,
            generation,
            here,
            elsewhere,
        }
    }

    fn giving_up(giver: &Giver) -> Self {
        Self::of(giver.uuid, giver.generation, false, !giver.rest.is_empty())
    }
}

/// Writes the allocations of consumers in one request.
///
/// # Errors
///
/// Where a generation does not fit, or the capacity does not suffice.
pub fn write(
    provider: &mut Provider,
    writes: &[Write],
    sent: Sent,
    services: Services,
) -> Result<(), RefusalKind> {
    for write in writes {
        let fits = match (provider.holders.get(&write.consumer), write.generation) {
            (None, ConsumerGeneration::New) => true,
            (Some(held), ConsumerGeneration::At(at)) => held.generation == at,
            (None, ConsumerGeneration::At(_)) | (Some(_), ConsumerGeneration::New) => false,
        };
        if !fits && sent.conditional {
            return Err(RefusalKind::Conflict);
        }
    }
    let before = provider.holders.values().filter(|held| held.here).count();
    let mut holders = provider.holders.clone();
    for write in writes {
        let generation = holders.get(&write.consumer).map_or(0, |held| held.generation) + 1;
        let held = Held {
            generation,
            here: write.here,
            elsewhere: write.elsewhere,
        };
        match write.here || write.elsewhere {
            true => holders.insert(write.consumer, held),
            // A consumer without allocations is deleted, and begins anew at its next write.
            false => holders.remove(&write.consumer),
        };
    }
    let after = holders.values().filter(|held| held.here).count();
    let claims = writes.iter().any(|write| write.here);
    let over = after + usize::from(provider.reserved > 0) > 1;
    if over && claims && (after > before || services.old_placement) {
        return Err(RefusalKind::NoCapacity);
    }
    provider.holders = holders;
    provider.touch();
    Ok(())
}
