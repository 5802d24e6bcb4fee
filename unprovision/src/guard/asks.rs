//! What the guard says of Nova, and asks it of nodes without a case.

use uuid::Uuid;

use super::{Guard, Notice};
use crate::core::{NotGuarded, NovaAnswer, Observation};
use crate::orchestrator::RunError;
use crate::servers::ServersError;

impl Guard {
    /// Without a check that is required nothing is begun.
    pub(super) async fn can_ask_nova(&self) -> Result<(), RunError> {
        let Some(nova) = self.parts.nova.as_ref().filter(|nova| nova.is_required()) else {
            return Ok(());
        };
        match nova.try_it().await {
            Err(ServersError::Unreadable(why) | ServersError::NotLetIn(why)) => {
                Err(RunError::NovaRequired(why))
            }
            _ => Ok(()),
        }
    }

    /// Says whether Nova is asked, and if not, what is not checked. Nothing waits for that.
    pub(super) async fn say_nova(&self) {
        let Some(nova) = &self.parts.nova else {
            return self.notice(&Notice::Unchecked("it is switched off".to_owned()));
        };
        let required = nova.is_required();
        self.notice(&match nova.try_it().await {
            Ok(()) => Notice::AsksNova { required },
            Err(ServersError::Unreadable(why)) if !required => Notice::Unchecked(why),
            Err(ServersError::Unreadable(why) | ServersError::NotLetIn(why) | ServersError::Away(why)) => {
                Notice::Blind {
                    what: "look at Nova's servers",
                    why,
                }
            }
        });
    }

    /// A finding, and what Nova says of the server on a node that is offered although it is in use.
    pub(super) async fn finding(&self, seen: &Observation, why: &NotGuarded) -> Option<String> {
        let what = why.is_finding().then(|| why.to_string())?;
        Some(match self.said_of(seen, why).await {
            Some(words) => format!("{what}. {words}"),
            None => what,
        })
    }

    async fn said_of(&self, seen: &Observation, why: &NotGuarded) -> Option<String> {
        let NotGuarded::InUseAndOffered(_) = why else {
            return None;
        };
        let nova = self.parts.nova.as_ref()?;
        let node = seen.node.as_ref()?;
        let server: Uuid = node.instance_uuid?;
        seen.provider.as_ref().filter(|view| view.is_novas())?;
        let (said, _) = nova.ask(server).await;
        match said.answer {
            NovaAnswer::Silent(_) | NovaAnswer::Unreadable => None,
            NovaAnswer::NoServer => Some(format!(
                "{}: it was deleted while nova-compute was away, which tears the node down once it is back",
                said.words(node.uuid)
            )),
            NovaAnswer::Server(_) => Some(said.words(node.uuid)),
        }
    }
}
