//! What the facts mean, each in a line that a stranger can act on. Pure.

mod estate;

use std::collections::BTreeSet;
use std::fmt::Display;

use jiff::SignedDuration;
use serde::Serialize;
use unprovision::strategy::{self, Strategy};
use unprovision_session::{Service, TokenScope};

use super::facts::{Facts, Side, Step, Tried};

/// A clock that is off by more is worth a word: times of the services are compared with ours.
const SKEW: SignedDuration = SignedDuration::from_secs(3);

/// What was checked, and how it looks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Check {
    /// What it is about.
    pub(super) about: &'static str,
    /// How it looks.
    pub(super) verdict: Verdict,
    /// What was found.
    pub(super) says: String,
    /// What to do.
    pub(super) advice: Option<String>,
}

/// How something looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Verdict {
    /// As it should be.
    Fits,
    /// It works, and is worth knowing.
    Note,
    /// Nobody knows.
    Unknown,
    /// It does not work so.
    Broken,
}

impl Check {
    fn new(about: &'static str, verdict: Verdict, says: impl Into<String>) -> Self {
        Self {
            about,
            verdict,
            says: says.into(),
            advice: None,
        }
    }

    fn but(self, advice: impl Into<String>) -> Self {
        Self {
            advice: Some(advice.into()),
            ..self
        }
    }
}

/// All checks, in the order in which they are worth reading.
pub(super) fn judge(facts: &Facts) -> Vec<Check> {
    let mut checks = Vec::new();
    for side in [&facts.ironic, &facts.placement] {
        checks.extend(way(side));
        checks.extend(scope(side));
        checks.extend(clock(side));
    }
    checks.extend(rights(facts));
    checks.extend(versions(facts));
    checks.extend(estate::lists(&facts.fleet));
    checks.extend(estate::nova(&facts.fleet));
    checks.extend(estate::servers(facts));
    checks.extend(estate::cleaning(&facts.fleet));
    checks.push(estate::broker(&facts.broker));
    checks.push(estate::journal(&facts.journal));
    checks
}

/// How far the way to the service leads.
fn way(side: &Side) -> Vec<Check> {
    let about = side.service.name();
    let mut checks = Vec::new();
    if let Some(standing) = &side.standing {
        let roles = standing.roles.iter().cloned().collect::<Vec<_>>().join(", ");
        let says = format!(
            "logged in as {}, for {}, with the roles {roles}",
            standing.user, standing.scope
        );
        checks.push(Check::new(about, Verdict::Fits, says));
    }
    checks.push(match (&side.trouble, side.versions, side.spoken) {
        (Some((step, said)), ..) => Check::new(about, Verdict::Broken, said).but(remedy(*step, side.service)),
        (None, Some(versions), Some(spoken)) => {
            let place = side.endpoint.as_deref().unwrap_or("its place");
            let says = format!("{place} answers, with API {versions}; {spoken} is spoken");
            Check::new(about, Verdict::Fits, says)
        }
        (None, ..) => Check::new(about, Verdict::Unknown, "it was not asked"),
    });
    checks
}

fn remedy(step: Step, service: Service) -> String {
    let name = service.name();
    match (step, service) {
        (Step::Configuration | Step::Endpoint, Service::Placement) => {
            "if this is an Ironic without Placement, nothing offers its nodes and nothing has to be kept right; otherwise set \
             `placement.cloud`, `placement.endpoint`, or correct clouds.yaml; `unprovision config` shows what is in effect"
                .to_owned()
        }
        (Step::Configuration | Step::Endpoint, Service::Ironic) => {
            "set `os_cloud` or `ironic.cloud` to an entry of clouds.yaml, or `ironic.endpoint`, `ironic.region`, \
             `ironic.interface`; `unprovision config` shows what is in effect"
                .to_owned()
        }
        (Step::Configuration | Step::Endpoint, Service::Nova) => {
            "set `nova.cloud` or `nova.endpoint`, or `nova.ask = \"off\"`".to_owned()
        }
        (Step::Login, _) => format!(
            "correct auth_url, user, domains, password and scope of {name}'s entry in clouds.yaml, or OS_*; to try: openstack \
             --os-cloud ENTRY token issue"
        ),
        (Step::Answer, _) => format!(
            "look whether {name} is up and can be reached from here; if it lives elsewhere, set `{name}.endpoint` or \
             `{name}.interface`"
        ),
        (Step::Version, _) => format!("{name} is too old for this program: Rocky (2018) or newer is needed"),
    }
}

/// Ironic shows all nodes to the system only, and Placement refuses that scope.
fn scope(side: &Side) -> Option<Check> {
    let standing = side.standing.as_ref()?;
    let service = standing.roles.contains("service");
    match (side.service, &standing.scope) {
        (_, TokenScope::Nothing) => Some(
            Check::new("scope", Verdict::Broken, "the login has no scope, so no role counts")
                .but("give the entry in clouds.yaml `system_scope: all` (for Ironic) or a project (for Placement)"),
        ),
        (Service::Ironic, TokenScope::System) => Some(Check::new(
            "scope",
            Verdict::Fits,
            "the system's scope is right for Ironic: it shows all nodes",
        )),
        (Service::Ironic, _) if !service => Some(
            Check::new(
                "scope",
                Verdict::Note,
                format!("Ironic may show {} only the nodes that it owns or leases", standing.scope),
            )
            .but("if nodes are missing, set `ironic.cloud` to an entry of clouds.yaml with `system_scope: all`"),
        ),
        (Service::Placement, TokenScope::System) => Some(
            Check::new("scope", Verdict::Note, "many a Placement refuses the system's scope").but(
                "if it does, set `placement.cloud` to an entry of clouds.yaml with a project instead of `system_scope`",
            ),
        ),
        _ => None,
    }
}

fn clock(side: &Side) -> Option<Check> {
    let (ahead, name) = (side.ahead?, side.service.name());
    let off = ahead.unsigned_abs().as_secs();
    let direction = if ahead.is_negative() { "behind" } else { "ahead of" };
    Some(match ahead.abs() > SKEW {
        false => Check::new("clock", Verdict::Fits, format!("{name}'s and ours agree")),
        true => Check::new(
            "clock",
            Verdict::Note,
            format!("{name}'s is {off} s {direction} ours: the ages that the audit tells are off by as much"),
        )
        .but("let both keep time by NTP"),
    })
}

/// Each right, and what is lost without it.
fn rights(facts: &Facts) -> Vec<Check> {
    let mut checks = Vec::new();
    let guards = facts.fleet.nova().is_there();
    let role = "give the user the role `admin` in this scope, or what your policy asks for";
    for (right, tried) in &facts.in_ironic {
        let needing = needing(|strategy| strategy.needs().in_ironic.contains(right));
        let guard_only = guards && *right == ironic_client::Right::ChangeStates;
        let without = match guard_only {
            true => "`guard` does without it, `delete` does not".to_owned(),
            false => needed_by(&needing),
        };
        let is_needed = needing.contains(facts.strategy.as_str()) && !guard_only;
        let remedy = format!("{without}; {role}");
        checks.push(tried_right("ironic", right, tried, is_needed, remedy));
    }
    let by_system = facts.placement.standing.as_ref();
    let by_system = by_system.is_some_and(|standing| standing.scope == TokenScope::System);
    for (right, tried) in &facts.in_placement {
        let needing = needing(|strategy| strategy.needs().in_placement.contains(right));
        let is_needed = needing.contains(facts.strategy.as_str());
        let remedy = match by_system {
            true => {
                "this Placement refuses the system's scope: set `placement.cloud` to an entry of clouds.yaml with a project"
            }
            false => role,
        };
        let remedy = format!("{}; {remedy}", needed_by(&needing));
        checks.push(tried_right("placement", right, tried, is_needed, remedy));
    }
    checks
}

fn needing(fits: impl Fn(&dyn Strategy) -> bool) -> BTreeSet<&'static str> {
    let all = strategy::ALL.iter().filter(|strategy| fits(**strategy));
    all.map(|strategy| strategy.name()).collect()
}

fn needed_by(names: &BTreeSet<&'static str>) -> String {
    match names.len() == strategy::ALL.len() {
        true => "nothing works without it".to_owned(),
        false => format!(
            "only {} needs it",
            names.iter().copied().collect::<Vec<_>>().join(", ")
        ),
    }
}

fn tried_right(
    about: &'static str,
    right: &dyn Display,
    tried: &Tried,
    is_needed: bool,
    remedy: String,
) -> Check {
    match tried {
        Tried::Allowed => Check::new(about, Verdict::Fits, format!("may {right}")),
        Tried::Forbidden(said) => {
            let verdict = if is_needed { Verdict::Broken } else { Verdict::Note };
            Check::new(about, verdict, format!("may NOT {right}: {said}")).but(remedy)
        }
        Tried::Unclear(why) => Check::new(
            about,
            Verdict::Unknown,
            format!("whether it may {right} could not be tried: {why}"),
        ),
    }
}

/// What of the strategies a Placement of this version can do.
fn versions(facts: &Facts) -> Option<Check> {
    let range = facts.placement.versions?;
    let lacks = |strategy: &&dyn Strategy| {
        let missing = strategy
            .needs()
            .features
            .iter()
            .filter(|feature| feature.since() > range.max);
        let missing = missing.map(|feature| format!("{feature} (API {})", feature.since()));
        let missing = missing.collect::<Vec<_>>();
        (!missing.is_empty()).then(|| format!("{} lacks {}", strategy.name(), missing.join(", ")))
    };
    let lacking = strategy::ALL.iter().filter_map(lacks).collect::<Vec<_>>();
    Some(match lacking.is_empty() {
        true => Check::new(
            "versions",
            Verdict::Fits,
            "all strategies have what they need of Placement",
        ),
        false => Check::new("versions", Verdict::Broken, lacking.join("; ")).but("upgrade Placement"),
    })
}

#[cfg(test)]
mod tests;
