//! The one place where the adapters meet: configuration, clouds, clients, journal, orchestrator.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use ironic_client::IronicClient;
use placement_client::{Consumer, PlacementClient};
use unprovision::audit::Rules;
use unprovision::cloud::{Asked, Clock, Cloud, Fleet, Lookout, OpenStack, SystemClock};
use unprovision::core::{Case, guard_owner, tag_name};
use unprovision::events::EventSource;
use unprovision::guard::{Adapters, GuardObserver};
use unprovision::journal::{
    Journal, JournalError, MariaDbJournal, MemoryJournal, PostgresJournal, SqliteJournal, read_open,
};
use unprovision::orchestrator::{Orchestrator, Until};
use unprovision::scope::Scopes;
use unprovision_session::{ConfigError, HttpTransport, Service, Transport};

use crate::config::{self, Ask, Config, HumanDuration, set};
use crate::failure::Usage;
use crate::observer::{Alarms, Lines};
use crate::output::Subject;

mod logins;

pub(crate) use logins::servers;
use logins::{Logins, builder, cannot_be_asked, twice};

/// What the URLs of journals on servers begin with.
pub(crate) const SERVERS: [&str; 4] = ["postgres://", "postgresql://", "mysql://", "mariadb://"];
/// The journal that is gone with the process.
pub(crate) const IN_MEMORY: &str = "memory:";

/// Whom to trust, from the command line; the rest is in `clouds.yaml`.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct Tls {
    /// Trust these authorities (PEM) instead of the system's
    #[arg(long, global = true, value_name = "FILE", help_heading = "Global options")]
    os_cacert: Option<PathBuf>,
    /// Do not verify certificates: anybody on the way can read the token
    #[arg(long, global = true, help_heading = "Global options")]
    insecure: bool,
}

/// Everything that acts.
#[derive(Debug)]
pub(crate) struct Wired {
    /// The cloud.
    pub(crate) cloud: Arc<dyn Cloud>,
    /// The orchestrator of this cloud.
    pub(crate) orchestrator: Orchestrator,
    /// The clock of both.
    pub(crate) clock: Arc<dyn Clock>,
    /// Says what happens; `None` where nobody wants to know.
    lines: Option<Arc<Lines>>,
}

impl Wired {
    /// Says what happens to this node now.
    pub(crate) fn tell(&self, subject: &Subject, what: &str) {
        if let Some(lines) = &self.lines {
            lines.tell(subject, what, None);
        }
    }

    /// Counts how many of so many nodes are done with, until it is dropped: they have ended or, where nobody waits for that,
    /// been accepted.
    pub(crate) fn counting(&self, all: usize, until: Until) -> Counting {
        if let Some(lines) = self.lines.as_ref().filter(|_| all > 1) {
            lines.count(all, until);
        }
        Counting(self.lines.clone())
    }

    /// The same, where another strategy was asked for than the one that goes on.
    pub(crate) fn tell_asked(&self, subject: &Subject, what: &str, asked: &str) {
        if let Some(lines) = &self.lines {
            lines.tell(subject, what, Some(asked));
        }
    }
}

/// As long as it lives, how far many nodes are is shown.
#[derive(Debug)]
pub(crate) struct Counting(Option<Arc<Lines>>);

impl Drop for Counting {
    fn drop(&mut self) {
        if let Some(lines) = &self.0 {
            lines.counted();
        }
    }
}

/// Connects everything; nothing is sent to the cloud yet. `moved`: cases are taken up that name another cloud.
pub(crate) async fn connect(config: &Config, tls: &Tls, quiet: bool, moved: bool) -> anyhow::Result<Wired> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let mut logins = Logins::new(config, tls);
    let (openstack, identity) = openstack(config, &mut logins, &clock).await?;
    let servers = logins.servers().await;
    let servers = servers.unwrap_or_else(|error| cannot_be_asked(&error));
    let cloud: Arc<dyn Cloud> = Arc::new(openstack);
    let journal = journal(&config.journal).await?;
    let mut builder = Orchestrator::builder(Arc::clone(&cloud), journal, Arc::clone(&clock))
        .poll(config.poll.get())
        .concurrency(config.concurrency);
    if let Some(servers) = servers {
        builder = builder.servers(servers);
    }
    if !moved {
        builder = builder.identity(identity);
    }
    if let Some(at_most) = NonZeroUsize::new(config.max_tear_downs) {
        builder = builder.max_tear_downs(at_most);
    }
    let lines = (!quiet).then(|| Arc::new(Lines::new(config.log.format, Arc::clone(&clock))));
    if let Some(lines) = &lines {
        builder = builder.observer(Arc::<Lines>::clone(lines));
    }
    Ok(Wired {
        cloud,
        orchestrator: builder.build(),
        clock,
        lines,
    })
}

/// What is younger may be a change under way, and is no finding of an audit, unless somebody says another time.
pub(crate) const GRACE: HumanDuration = HumanDuration::from_secs(300);

/// How an audit of everything judges by the configuration, where no case is open.
pub(crate) fn asked(config: &Config, scopes: Scopes, grace: HumanDuration) -> anyhow::Result<Asked> {
    Ok(Asked {
        rules: Rules {
            now: SystemClock.now(),
            grace: grace.signed(),
            open: BTreeMap::new(),
            deep: false,
            tag: Some(tag_name(&config.tag)?),
        },
        concurrency: config.concurrency,
        scopes,
        only: None,
    })
}

/// What the guard acts on and with, and what looks at all nodes for others; nothing is sent to the cloud yet.
pub(crate) async fn guard_adapters(
    config: &Config,
    tls: &Tls,
    quiet: bool,
) -> anyhow::Result<(Adapters, Arc<OpenStack>)> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let mut logins = Logins::new(config, tls);
    let (openstack, identity) = openstack(config, &mut logins, &clock).await?;
    let openstack = Arc::new(openstack);
    let servers = match logins.servers().await {
        Err(error) if config.nova.ask == Ask::Required => return Err(error.into()),
        Err(error) => cannot_be_asked(&error),
        Ok(servers) => servers,
    };
    let fleet: Arc<dyn Fleet> = Arc::<OpenStack>::clone(&openstack);
    let journal = journal(&config.journal).await?;
    let lines = Lines::new(config.log.format, Arc::clone(&clock));
    let observer: Arc<dyn GuardObserver> = match quiet {
        true => Arc::new(Alarms(lines)),
        false => Arc::new(lines),
    };
    let adapters = Adapters {
        cloud: Arc::<OpenStack>::clone(&openstack),
        fleet,
        journal,
        events: events(config, &clock)?,
        clock,
        observer,
        identity: Some(identity),
        servers,
    };
    Ok((adapters, openstack))
}

/// What wakes the guard; nothing is connected yet.
#[cfg(feature = "rabbitmq")]
fn events(config: &Config, clock: &Arc<dyn Clock>) -> anyhow::Result<Option<Arc<dyn EventSource>>> {
    Ok(rabbitmq(config, clock)?.map(|source| Arc::new(source) as _))
}

/// Whether the broker would be heard, and its name; nothing where none is configured.
#[cfg(feature = "rabbitmq")]
pub(crate) async fn try_broker(config: &Config) -> anyhow::Result<Option<String>> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let Some(source) = rabbitmq(config, &clock)? else {
        return Ok(None);
    };
    let reached = source.try_out().await.map_err(anyhow::Error::msg)?;
    Ok(Some(reached))
}

/// It was left out of this program.
#[cfg(not(feature = "rabbitmq"))]
pub(crate) async fn try_broker(config: &Config) -> anyhow::Result<Option<String>> {
    let configured = config.notifications.url.each().next().is_some();
    anyhow::ensure!(!configured, "this program was built without RabbitMQ");
    Ok(None)
}

#[cfg(feature = "rabbitmq")]
fn rabbitmq(
    config: &Config,
    clock: &Arc<dyn Clock>,
) -> anyhow::Result<Option<unprovision::events::RabbitMq>> {
    use unprovision::events::{RabbitMq, RabbitMqSettings};

    let ours = &config.notifications;
    let urls = ours.url.each().map(str::parse).collect::<Result<Vec<_>, _>>()?;
    if urls.is_empty() {
        return Ok(None);
    }
    let settings = RabbitMqSettings {
        urls,
        authorities: set(&ours.ca_file)
            .map(|path| config::authorities(Path::new(path)).map_err(Usage))
            .transpose()?,
        exchange: ours.exchange.clone(),
        topic: ours.topic.clone(),
        queue: ours.queue.clone(),
        expires: ours.expires.get(),
        max_length: ours.max_length.get(),
        max_age: ours.max_age.get(),
    };
    Ok(Some(RabbitMq::new(settings, Arc::clone(clock))))
}

/// Nobody says anything: what could was left out of this program.
#[cfg(not(feature = "rabbitmq"))]
fn events(_: &Config, _: &Arc<dyn Clock>) -> anyhow::Result<Option<Arc<dyn EventSource>>> {
    Ok(None)
}

/// What the audit looks at; nothing is sent to the cloud yet.
pub(crate) async fn audited(config: &Config, tls: &Tls) -> anyhow::Result<OpenStack> {
    Ok(located(config, tls).await?.0)
}

/// The same, and which cloud it is, as cases are recorded with it.
pub(crate) async fn located(config: &Config, tls: &Tls) -> anyhow::Result<(OpenStack, String)> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    openstack(config, &mut Logins::new(config, tls), &clock).await
}

/// Whether there may be a journal: of one elsewhere only a connection tells.
pub(crate) fn is_there(place: &str) -> bool {
    place == IN_MEMORY || place.contains("://") || Path::new(place).exists()
}

/// The journal where there is one: whoever only reads it makes none.
pub(crate) async fn journal_if_any(place: &str) -> anyhow::Result<Option<Arc<dyn Journal>>> {
    fn any<J: Journal + 'static>(
        opened: Result<Option<J>, JournalError>,
    ) -> Result<Option<Arc<dyn Journal>>, JournalError> {
        Ok(opened?.map(|opened| Arc::new(opened) as _))
    }
    let opened = match (place, scheme(place)) {
        ("", _) => Ok(None),
        (IN_MEMORY, _) => Ok(Some(Arc::new(MemoryJournal::new()) as _)),
        (url, "postgres" | "postgresql") => any(PostgresJournal::open_to_read(url).await),
        (url, "mysql" | "mariadb") => any(MariaDbJournal::open_to_read(url).await),
        (path, _) => any(SqliteJournal::open_to_read(Path::new(path)).await),
    };
    opened.context("the journal cannot be read")
}

/// The cases that the journal has open; none where there is no journal.
pub(crate) async fn open_cases(place: &str) -> anyhow::Result<Vec<Case>> {
    Ok(match journal_if_any(place).await? {
        Some(journal) => read_open(&*journal).await?,
        None => Vec::new(),
    })
}

/// The cloud, and which one it is.
async fn openstack(
    config: &Config,
    logins: &mut Logins<'_>,
    clock: &Arc<dyn Clock>,
) -> anyhow::Result<(OpenStack, String)> {
    let (ironic, placement) = logins.transports().await?;
    let identity = identity(&ironic, &placement);
    let [ironic, placement]: [Arc<dyn Transport>; 2] = [Arc::new(ironic), Arc::new(placement)];
    #[cfg(feature = "crash-points")]
    let [ironic, placement] = [ironic, placement].map(crate::crash_points::transport);
    Ok((cloud(config, ironic, placement, clock), identity))
}

/// The cloud behind these two ways.
pub(crate) fn cloud(
    config: &Config,
    ironic: Arc<dyn Transport>,
    placement: Arc<dyn Transport>,
    clock: &Arc<dyn Clock>,
) -> OpenStack {
    let owner = Consumer {
        project_id: config.guard.project_id.clone(),
        user_id: config.guard.user_id.clone(),
        ..guard_owner()
    };
    let openstack = OpenStack::new(
        Arc::new(IronicClient::new(ironic)),
        Arc::new(PlacementClient::new(placement)),
        Arc::clone(clock),
    );
    openstack.with_owner(owner)
}

/// The way to one service, for somebody who wants to know how far it leads, and soon.
pub(crate) async fn way(config: &Config, tls: &Tls, service: Service) -> Result<HttpTransport, ConfigError> {
    let auth = Logins::new(config, tls).of(service)?;
    let builder = builder(&config.service(service), service, auth);
    builder.retry(twice()).build().await
}

/// What looks at both services, and can do nothing else.
pub(crate) async fn lookout(config: &Config, tls: &Tls) -> anyhow::Result<Lookout> {
    let (ironic, placement) = Logins::new(config, tls).transports().await?;
    Ok(Lookout::new(
        Arc::new(IronicClient::new(Arc::new(ironic))),
        Arc::new(PlacementClient::new(Arc::new(placement))),
        Arc::new(SystemClock),
    ))
}

/// Which cloud this is, as cases are recorded with it.
pub(crate) fn identity(ironic: &HttpTransport, placement: &HttpTransport) -> String {
    let (ironic, placement) = (ironic.place(), placement.place());
    match ironic == placement {
        true => ironic,
        false => format!("{ironic} for Ironic, {placement} for Placement"),
    }
}

fn scheme(place: &str) -> &str {
    place.split_once("://").map_or("", |(scheme, _)| scheme)
}

async fn journal(place: &str) -> anyhow::Result<Arc<dyn Journal>> {
    let journal = open_journal(place).await?;
    #[cfg(feature = "crash-points")]
    let journal = crate::crash_points::journal(journal);
    Ok(journal)
}

async fn open_journal(place: &str) -> anyhow::Result<Arc<dyn Journal>> {
    let opened: Result<Arc<dyn Journal>, JournalError> = match (place, scheme(place)) {
        ("", _) => {
            return Err(Usage(
                "nobody says where the journal is: set `journal`, XDG_STATE_HOME or HOME".to_owned(),
            )
            .into());
        }
        (IN_MEMORY, _) => Ok(Arc::new(MemoryJournal::new())),
        (url, "postgres" | "postgresql") => PostgresJournal::open(url)
            .await
            .map(|opened| Arc::new(opened) as _),
        (url, "mysql" | "mariadb") => MariaDbJournal::open(url)
            .await
            .map(|opened| Arc::new(opened) as _),
        (path, _) => SqliteJournal::open(Path::new(path))
            .await
            .map(|opened| Arc::new(opened) as _),
    };
    opened.with_context(|| match is_there(place) {
        // Another one would know nothing of what is held.
        true => "without its journal nothing is done; make the one that is there usable for this user, rather than set `journal` to \
                 another one, which would know nothing of what is held",
        false => "without a journal nothing is done; set `journal` to one that can be written",
    })
}
