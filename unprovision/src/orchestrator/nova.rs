//! Nova, where somebody may ask it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use unprovision_session::Class;
use uuid::Uuid;

use super::let_in::LetIn;
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
    /// It has answered once: these credentials are the right ones.
    let_in: LetIn,
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
            let_in: LetIn::default(),
        }
    }

    pub(crate) fn is_required(&self) -> bool {
        self.required
    }

    /// Whether it can be asked.
    pub(crate) async fn try_it(&self) -> Result<(), ServersError> {
        let tried = self.noted(self.servers.can_be_seen().await);
        let unreadable = matches!(tried, Err(ServersError::Unreadable(_)));
        self.said.store(unreadable, Ordering::Relaxed);
        tried
    }

    /// A login that is refused is one that is missing, or, after an answer, a Keystone that is not well.
    fn noted<T>(&self, answer: Result<T, ServersError>) -> Result<T, ServersError> {
        match answer {
            Ok(answer) => {
                self.let_in.is();
                Ok(answer)
            }
            Err(ServersError::NotLetIn(why)) => Err(match self.let_in.was() {
                true => ServersError::Away(why),
                false => ServersError::Unreadable(why),
            }),
            Err(error) => Err(error),
        }
    }

    /// What it says of the server.
    pub(crate) async fn ask(&self, server: Uuid) -> (NovaSays, Told) {
        let (answer, told) = match self.noted(self.servers.server(server).await) {
            Ok(Some(shown)) => (NovaAnswer::Server(shown), Told::Nothing),
            Ok(None) => (NovaAnswer::NoServer, Told::Nothing),
            Err(ServersError::Unreadable(why)) if !self.required => {
                let told = match self.said.swap(true, Ordering::Relaxed) {
                    true => Told::Nothing,
                    false => Told::Unchecked(why),
                };
                (NovaAnswer::Unreadable, told)
            }
            Err(ServersError::Unreadable(why) | ServersError::NotLetIn(why) | ServersError::Away(why)) => {
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
