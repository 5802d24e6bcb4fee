//! What a world is like: versions, rules, durations. Everything has a usable default.

use std::time::Duration;

/// The whole of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Config {
    /// Ironic's part.
    pub ironic: IronicConfig,
    /// Placement's part.
    pub placement: PlacementConfig,
    /// Nova's part.
    pub nova: NovaConfig,
    /// Keystone's part, and how strictly scopes are kept apart.
    pub keystone: KeystoneConfig,
}

/// How Ironic behaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IronicConfig {
    /// The lowest minor version of API 1.
    pub min_minor: u16,
    /// The highest minor version of API 1.
    pub max_minor: u16,
    /// Whether a proxy on the way drops the version header, so that every request counts as 1.1.
    pub version_header_stripped: bool,
    /// Where links in answers point to, without a trailing slash.
    pub base_url: String,
    /// The conductor's host name, which `reservation` shows.
    pub conductor: String,
    /// How many nodes may be in `deleting`, `cleaning` and `clean wait` at once; above it, 503.
    pub max_concurrent_clean: Option<usize>,
    /// Whether nodes in maintenance may be cleaned (Ironic's `allow_provisioning_in_maintenance`).
    pub allow_provisioning_in_maintenance: bool,
    /// Whether nodes without a setting of their own are cleaned.
    pub automated_clean: bool,
    /// Whether times in answers are cut to whole seconds.
    pub whole_seconds: bool,
    /// The most nodes that one page holds.
    pub page_limit: usize,
    /// How `next` links misbehave.
    pub paging: Paging,
    /// How often an agent's heartbeat takes the lock for a moment in `clean wait`; `None`: not at all.
    pub heartbeats: Option<Duration>,
    /// How long things take; a node's behaviour may differ.
    pub timing: Timing,
    /// How the service authenticates.
    pub auth: Auth,
}

/// How long Ironic's steps take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Timing {
    /// In `deleting`, until the instance is cleared.
    pub teardown: Duration,
    /// From `cleaning` to `available`, waits included.
    pub cleaning: Duration,
    /// Of that, how long an agent takes to boot.
    pub agent_boot: Duration,
    /// Between two steps of a conductor: clearing the instance and cleaning, waking up and waiting.
    pub step: Duration,
    /// How long the lock outlives the last change of state.
    pub lock_tail: Duration,
    /// From `deploying` to `active`.
    pub deploy: Duration,
    /// Of the shorter ways: verifying, inspecting, adopting, rescuing.
    pub other: Duration,
    /// How soon an agent heartbeats again after maintenance is lifted.
    pub heartbeat: Duration,
}

/// Ways in which a server or proxy may page wrongly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Paging {
    /// As it should.
    #[default]
    Right,
    /// A full page has no `next`.
    NoNext,
    /// `next` leads to the same page again.
    SamePage,
    /// `next` forgets the fields asked for.
    ForgetsFields,
}

/// How a service authenticates requests that carry no [`super::Caller`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Auth {
    /// By a Keystone token.
    #[default]
    Keystone,
    /// Not at all.
    Off,
    /// By name and password (Ironic alone).
    HttpBasic {
        /// The one user.
        user: String,
        /// Its password.
        password: String,
    },
    /// By the token `admin` (Placement alone).
    NoAuth2,
}

/// How Placement behaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacementConfig {
    /// The lowest minor version of API 1.
    pub min_minor: u16,
    /// The highest minor version of API 1.
    pub max_minor: u16,
    /// Where `Location` headers point to, without a trailing slash.
    pub base_url: String,
    /// What happens to allocation writes on a provider that is over capacity.
    pub capacity_rule: CapacityRule,
    /// How the service authenticates.
    pub auth: Auth,
}

/// What Placement does with allocation writes on a provider over capacity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CapacityRule {
    /// From 14.0.0 on: what does not make usage grow passes.
    GrowthOnly,
    /// Before: every write that claims something is refused.
    Always,
}

/// The `reserved` rule of Nova's ironic driver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum NovaRule {
    /// Nova does nothing by itself: no passes.
    #[default]
    Off,
    /// Before 26.1: reserved when unavailable and without an instance.
    Old,
    /// Since 26.1: reserved when unavailable or carrying an instance.
    Current,
}

/// How Nova behaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NovaConfig {
    /// Whether the catalog has it.
    pub in_catalog: bool,
    /// Where it says that it is, without a trailing slash.
    pub base_url: String,
    /// The reservation rule, or no passes at all.
    pub rule: NovaRule,
    /// From the start of one pass to the start of the next.
    pub pass_interval: Duration,
    /// When the first pass starts, from the start of the world.
    pub first_pass: Duration,
    /// How long a pass takes for one node.
    pub per_node: Duration,
    /// How old cached provider data may get.
    pub cache_age: Duration,
    /// From a conflict to the repeated write.
    pub conflict_retry: Duration,
    /// From one look at a node being torn down to the next.
    pub poll: Duration,
    /// How many looks before Nova gives up.
    pub polls: u32,
    /// From the end of the tear-down to the deletion of the allocation.
    pub release_delay: Duration,
    /// Whether a delete writes the reservation, where the tracker still knows the instance.
    pub reserve_at_delete: bool,
    /// `[workarounds]skip_reserve_in_use_ironic_nodes`.
    pub skip_reserve_in_use: bool,
    /// Deferred delete: the allocation goes by GET and PUT with its generation.
    pub deferred_delete: bool,
    /// Traits that the scheduler forbids in every request.
    pub forbidden_traits: Vec<String>,
    /// From a claim to the moment the node carries the instance.
    pub claim_delay: Duration,
    /// The project and user that servers belong to.
    pub project: String,
    /// The user that servers belong to.
    pub user: String,
}

/// How Keystone behaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeystoneConfig {
    /// Where the services live: identity, bare metal, placement.
    pub base_url: String,
    /// The region in the catalog.
    pub region: String,
    /// How long a token lives.
    pub token_life: Duration,
    /// Whether Ironic shows nodes to system-scoped tokens only and Placement refuses these; else one token
    /// serves both.
    pub strict_scopes: bool,
    /// Who may log in.
    pub users: Vec<User>,
}

/// A user that may log in, in the domain `Default`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// The name.
    pub name: String,
    /// The password.
    pub password: String,
    /// The one project it belongs to.
    pub project: String,
    /// The roles it has there, and in the system where it may go there.
    pub roles: Vec<String>,
    /// Whether it may ask for the scope of the whole system.
    pub system: bool,
    /// Id, name and secret of its application credential.
    pub application_credential: Option<(String, String, String)>,
}

impl User {
    /// A user with all roles of an administrator.
    pub fn admin(name: &str, password: &str, project: &str) -> Self {
        let roles = ["reader", "admin", "member", "manager"]
            .map(String::from)
            .to_vec();
        let (name, password, project) = (name.to_owned(), password.to_owned(), project.to_owned());
        Self {
            name,
            password,
            project,
            roles,
            system: true,
            application_credential: None,
        }
    }
}

impl Default for IronicConfig {
    fn default() -> Self {
        Self {
            min_minor: 1,
            max_minor: 115,
            version_header_stripped: false,
            base_url: "http://sandbox.invalid/baremetal".into(),
            conductor: "conductor-1".into(),
            max_concurrent_clean: None,
            allow_provisioning_in_maintenance: true,
            automated_clean: true,
            whole_seconds: false,
            page_limit: 1000,
            paging: Paging::Right,
            heartbeats: None,
            timing: Timing::default(),
            auth: Auth::Keystone,
        }
    }
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            teardown: Duration::from_secs(4),
            cleaning: Duration::from_secs(30),
            agent_boot: Duration::from_secs(3),
            step: Duration::from_millis(50),
            lock_tail: Duration::from_millis(100),
            deploy: Duration::from_secs(2),
            other: Duration::from_millis(200),
            heartbeat: Duration::from_secs(1),
        }
    }
}

impl Default for PlacementConfig {
    fn default() -> Self {
        Self {
            min_minor: 0,
            max_minor: 39,
            base_url: "http://sandbox.invalid/placement".into(),
            capacity_rule: CapacityRule::GrowthOnly,
            auth: Auth::Keystone,
        }
    }
}

impl Default for NovaConfig {
    fn default() -> Self {
        Self {
            in_catalog: false,
            base_url: "http://sandbox.invalid/compute/v2.1".into(),
            rule: NovaRule::Off,
            pass_interval: Duration::from_secs(60),
            first_pass: Duration::from_secs(60),
            per_node: Duration::ZERO,
            cache_age: Duration::from_secs(300),
            conflict_retry: Duration::from_secs(1),
            poll: Duration::from_secs(2),
            polls: 61,
            release_delay: Duration::ZERO,
            reserve_at_delete: true,
            skip_reserve_in_use: false,
            deferred_delete: false,
            forbidden_traits: Vec::new(),
            claim_delay: Duration::from_secs(1),
            project: "eb943b42550a4fc5860f2f884a091767".into(),
            user: "1c0803f0df6547aaaf6f416990717f28".into(),
        }
    }
}

impl Default for KeystoneConfig {
    fn default() -> Self {
        Self {
            base_url: "http://sandbox.invalid/identity".into(),
            region: "RegionOne".into(),
            token_life: Duration::from_secs(4 * 3600),
            strict_scopes: false,
            users: vec![User::admin("admin", "secret", "admin")],
        }
    }
}
