//! Nova, where somebody may ask it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use unprovision_session::Class;
use uuid::Uuid;

use super::{Builder, Parts};
use crate::cloud::CloudError;
use crate::core::{CannotOpen, Entry, NovaAnswer, NovaSays, Observation, RefusalKind, TearDownRequest, open};
use crate::servers::{Servers, ServersError};

/// Asks Nova, and remembers whether it was said that it cannot be asked.
#[derive(Debug)]
pub(crate) struct Nova {
    servers: Arc<dyn Servers>,
    required: bool,
    said: AtomicBool,
}

/// What there is to tell of an answer.
#[derive(Debug)]
pub(crate) enum Told {
    Nothing,
    /// There is none now; it is asked again.
    Trouble(CloudError),
    /// It cannot be asked, said once.
    Unchecked(String),
}

impl Nova {
    /// `required`: without its word nothing is released, and it is asked before each release.
    pub(crate) fn new(servers: Arc<dyn Servers>, required: bool) -> Self {
        Self {
            servers,
            required,
            said: AtomicBool::new(false),
        }
    }

    pub(crate) fn is_required(&self) -> bool {
        self.required
    }

    /// Whether it can be asked.
    pub(crate) async fn try_it(&self) -> Result<(), ServersError> {
        let tried = self.servers.can_be_seen().await;
        let unreadable = matches!(tried, Err(ServersError::Unreadable(_)));
        self.said.store(unreadable, Ordering::Relaxed);
        tried
    }

    /// What it says of the server.
    pub(crate) async fn ask(&self, server: Uuid) -> (NovaSays, Told) {
        let (answer, told) = match self.servers.server(server).await {
            Ok(Some(shown)) => (NovaAnswer::Server(shown), Told::Nothing),
            Ok(None) => (NovaAnswer::NoServer, Told::Nothing),
            Err(ServersError::Unreadable(why)) if !self.required => {
                let told = match self.said.swap(true, Ordering::Relaxed) {
                    true => Told::Nothing,
                    false => Told::Unchecked(why),
                };
                (NovaAnswer::Unreadable, told)
            }
            Err(ServersError::Unreadable(why) | ServersError::Away(why)) => {
                (NovaAnswer::Silent(why.clone()), Told::Trouble(away(why)))
            }
        };
        (NovaSays { server, answer }, told)
    }
}

impl Builder {
    /// Whom to ask for a server before its node is torn down without Nova (rule 4). Default: nobody.
    #[must_use]
    pub fn servers(mut self, servers: Arc<dyn Servers>) -> Self {
        self.parts.nova = Some(Nova::new(servers, false));
        self
    }
}

impl Parts {
    /// Whether the tear-down may begin; Nova is asked where that turns on it alone (rule 4).
    pub(super) async fn may_open(
        &self,
        request: &TearDownRequest,
        mut seen: Observation,
    ) -> Result<Entry, CannotOpen> {
        let opened = open(request, &seen, self.clock.now());
        let (Err(CannotOpen::NovaManages { .. }), Some(nova)) = (&opened, &self.nova) else {
            return opened;
        };
        seen.nova = Some(nova.ask(request.instance).await.0);
        open(request, &seen, self.clock.now())
    }
}

/// The same as an error of the cloud.
fn away(message: String) -> CloudError {
    CloudError {
        class: Class::Transient,
        kind: RefusalKind::Away,
        message,
        retry_after: None,
        source: None,
    }
}
