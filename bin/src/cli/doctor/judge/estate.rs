//! What the nodes, their providers and the journal mean.

use unprovision::servers::ServersError;

use super::super::facts::{BrokerState, Facts, JournalFound, JournalState};
use super::super::fleet::{Fleet, Nova};
use super::{Check, Verdict};

pub(super) fn lists(fleet: &Fleet) -> Vec<Check> {
    let mut checks = Vec::new();
    match &fleet.nodes {
        None => {}
        Some(Err(said)) => checks.push(
            Check::new("nodes", Verdict::Broken, said).but("give the user a role that may list nodes: reader at least"),
        ),
        Some(Ok(0)) => checks.push(
            Check::new("nodes", Verdict::Broken, "Ironic shows no node at all").but(
                "if there are any, these credentials do not see them: set `ironic.cloud` to an entry with `system_scope: all`",
            ),
        ),
        Some(Ok(nodes)) => {
            let says = format!("Ironic shows {nodes} nodes, {} of them in use", fleet.in_use);
            checks.push(Check::new("nodes", Verdict::Fits, says));
        }
    }
    if fleet.without_class > 0 {
        let says = format!(
            "{} nodes have no resource class: nothing can be held of them",
            fleet.without_class
        );
        checks.push(
            Check::new("nodes", Verdict::Note, says).but(
                "openstack baremetal node set NODE --resource-class CLASS; `unprovision audit` names them",
            ),
        );
    }
    match (&fleet.providers, &fleet.nodes) {
        (Some(Err(said)), _) => {
            checks.push(Check::new("providers", Verdict::Broken, said).but(
                "Placement must let the user list providers: the role `admin` in a project, or `service`",
            ))
        }
        (Some(Ok(_)), Some(Ok(nodes))) if *nodes > 0 => checks.push(paired(fleet, *nodes)),
        _ => {}
    }
    checks
}

fn paired(fleet: &Fleet, nodes: usize) -> Check {
    let says = format!(
        "{} of {nodes} nodes have a provider of the same UUID",
        fleet.paired
    );
    if fleet.orphans > fleet.paired {
        let says = format!(
            "{says}, and {} providers have no node: Ironic hides nodes from these credentials",
            fleet.orphans
        );
        return Check::new("providers", Verdict::Broken, says)
            .but("set `ironic.cloud` to an entry of clouds.yaml with `system_scope: all`");
    }
    match fleet.paired {
        0 => Check::new("providers", Verdict::Broken, format!("{says}: nobody has told Placement of them")).but(
            "nova-compute makes the providers; without a Nova, whoever schedules to the nodes has to: openstack resource \
             provider create --uuid NODE_UUID NODE_UUID",
        ),
        all if all == nodes => Check::new("providers", Verdict::Fits, says),
        _ => Check::new("providers", Verdict::Note, says).but("`unprovision audit` names the others, and what to do"),
    }
}

/// Whether Nova can be asked for a server, where there is a Nova.
pub(super) fn servers(facts: &Facts) -> Option<Check> {
    const MISSING: &str = "not checked: whether a server is there before its unit goes back to it, and while its allocation stays \
                           on a free node";
    const WANTS: &str =
        "set `nova.cloud` to an entry of clouds.yaml with the role `admin` in a project; or leave it so";
    let unless_required = match facts.nova_required {
        true => Verdict::Broken,
        false => Verdict::Note,
    };
    if !facts.fleet.nova().is_there() && !facts.nova_required {
        return None;
    }
    Some(match &facts.servers {
        None => Check::new(
            "servers",
            Verdict::Note,
            format!("Nova is not asked for servers; {MISSING}"),
        )
        .but("to have that checked: `nova.ask = \"auto\"`"),
        Some(Ok(())) => Check::new(
            "servers",
            Verdict::Fits,
            "Nova shows the servers of all projects: the guard asks it where there is doubt",
        ),
        Some(Err(ServersError::Unreadable(why) | ServersError::NotLetIn(why))) => {
            let says = format!("Nova cannot be asked for servers; {MISSING}: {why}");
            Check::new("servers", unless_required, says).but(WANTS)
        }
        Some(Err(ServersError::Away(why))) => Check::new(
            "servers",
            Verdict::Unknown,
            format!("whether Nova can be asked for servers could not be tried: {why}"),
        ),
    })
}

pub(super) fn nova(fleet: &Fleet) -> Option<Check> {
    let looked = fleet.seen.len();
    let (verdict, says) = match fleet.nova() {
        Nova::Unknown => {
            let unseen = fleet.unseen.as_ref()?;
            let says = format!("whether there is one, and what it does, could not be looked at: {unseen}");
            return Some(Check::new("nova", Verdict::Unknown, says));
        }
        Nova::None => (
            Verdict::Fits,
            "no trace of a Nova: no provider has its traits, nor an instance's allocation",
        ),
        Nova::Others => (
            Verdict::Note,
            "instances have allocations, and no provider has Nova's traits: something else schedules to the nodes",
        ),
        Nova::Current => (Verdict::Fits, "Nova reserves nodes in use, as it does since 26.1"),
        Nova::Old => (
            Verdict::Note,
            "Nova does not reserve nodes in use: it is older than 26.1, or told so \
             (skip_reserve_in_use_ironic_nodes). This is the bug: deleted servers' nodes are offered while they are cleaned",
        ),
        Nova::Mixed => (
            Verdict::Note,
            "Nova reserves some nodes in use, and others not: servers just claimed, or computes of different versions",
        ),
        Nova::Untold => (
            Verdict::Note,
            "Nova manages the nodes; none is in use, so nothing shows whether it reserves those",
        ),
    };
    Some(Check::new(
        "nova",
        verdict,
        format!("{says} ({looked} providers looked at)"),
    ))
}

/// The guard needs none: it only hears sooner with it.
pub(super) fn broker(state: &BrokerState) -> Check {
    let about = "broker";
    match state {
        BrokerState::None => Check::new(
            about,
            Verdict::Note,
            "no broker is configured: the guard works, and finds nodes by looking, twice a second",
        )
        .but("to hear sooner, set `notifications.url` to Ironic's RabbitMQ"),
        BrokerState::Reached(name) => Check::new(
            about,
            Verdict::Fits,
            format!("{name} lets us in and has Ironic's exchange: the guard hears what happens"),
        ),
        BrokerState::Trouble(why) => Check::new(
            about,
            Verdict::Note,
            format!("a broker is configured, and the guard would hear nothing of it: {why}"),
        )
        .but("the guard works all the same, and finds nodes by looking; correct the section `notifications`, or the broker"),
    }
}

pub(super) fn cleaning(fleet: &Fleet) -> Vec<Check> {
    let mut checks = Vec::new();
    let told = fleet.cleaning;
    let (all, rest) = (told.asked, told.asked.saturating_sub(told.on + told.off));
    if told.off > 0 {
        let says = format!(
            "{} of {all} nodes are not cleaned (automated_clean is off): they return at once, dirty",
            told.off
        );
        checks.push(Check::new("cleaning", Verdict::Note, says));
    } else if all > 0 {
        let says = match rest {
            0 => format!("all {all} nodes are cleaned"),
            _ => format!(
                "{rest} of {all} nodes go by the conductors' `[conductor]automated_clean`, which Ironic does not tell"
            ),
        };
        checks.push(Check::new("cleaning", Verdict::Fits, says));
    }
    match fleet.conductors {
        Some((all, alive)) if alive < all => checks.push(
            Check::new(
                "conductors",
                Verdict::Note,
                format!("{alive} of {all} conductors are alive"),
            )
            .but("openstack baremetal conductor list; a node whose conductor is away stays as it is"),
        ),
        Some((all, _)) => checks.push(Check::new("conductors", Verdict::Fits, format!("{all} alive"))),
        None => {}
    }
    checks
}

pub(super) fn journal(state: &JournalState) -> Check {
    let place = &state.place;
    let make = |verdict, says: String| Check::new("journal", verdict, says);
    match &state.found {
        JournalFound::InMemory => make(Verdict::Note, "it is gone with each process: nothing can be carried on".to_owned())
            .but("set `journal` to a file"),
        JournalFound::Absent(Ok(())) => make(Verdict::Fits, format!("{place} is not there yet, and can be made")),
        JournalFound::Absent(Err(why)) => {
            make(Verdict::Broken, format!("{place}: {why}")).but("set `journal` to a file that can be written")
        }
        JournalFound::Broken(why) => make(Verdict::Broken, format!("{place}: {why}")).but(
            "make it usable for this user, or reachable; another one would know nothing of what is held",
        ),
        JournalFound::Opened { elsewhere, .. } if !elsewhere.is_empty() => make(
            Verdict::Broken,
            format!("{place} has open cases of another cloud: {}", elsewhere.join("; ")),
        )
        .but("set `journal` to another file, one for each cloud; if this cloud has only moved: `unprovision resume --cloud-moved`"),
        JournalFound::Opened { open, lately: Some(at), .. } => make(
            Verdict::Note,
            format!("{place} has {open} open cases, and somebody works on them: something was written at {at:.0}"),
        )
        .but("one guard per journal is enough"),
        JournalFound::Opened { cases, open, .. } => make(
            Verdict::Fits,
            format!("{place} can be written; {cases} cases, {open} of them open; no other process has written in the last 10 s"),
        ),
    }
}
