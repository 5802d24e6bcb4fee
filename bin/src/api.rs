//! The HTTP interface of a running guard: where it listens, and until when.

use std::sync::Arc;

use anyhow::Context as _;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use unprovision::cloud::{Asked, OpenStack, SystemClock};
use unprovision::guard::Guard;
use unprovision::journal::Journal;
use unprovision_service::{Access, Service, router, serve};

use crate::config::{Api, Config};
use crate::failure::Usage;
use crate::{output, wire};

/// A socket that waits for callers.
#[derive(Debug)]
pub(crate) struct Listening {
    listener: TcpListener,
    config: Api,
    audit: Asked,
}

/// Takes the address, before anything else is begun; nothing where there is none.
pub(crate) async fn listen(config: &Config) -> anyhow::Result<Option<Listening>> {
    let address = config.api.address().map_err(Usage)?;
    let Some(address) = address else {
        return Ok(None);
    };
    let scopes = config.scopes().map_err(|problem| Usage(problem.to_string()))?;
    let audit = wire::asked(config, scopes, wire::GRACE)?;
    let listener = TcpListener::bind(address).await;
    let listener = listener.with_context(|| {
        format!("api.listen: {address} cannot be listened on; another guard of this machine may do that")
    })?;
    output::say(&format!("serving http://{}", listener.local_addr()?));
    Ok(Some(Listening {
        listener,
        config: config.api.clone(),
        audit,
    }))
}

impl Listening {
    /// Serves what is to be known of this guard until it is stopped.
    pub(crate) async fn serve(
        self,
        guard: &Arc<Guard>,
        (journal, cloud): (Arc<dyn Journal>, Arc<OpenStack>),
        config: &Config,
        stop: &CancellationToken,
    ) {
        let router = router(Service {
            guard: Arc::clone(guard),
            journal,
            cloud,
            audit: self.audit,
            clock: Arc::new(SystemClock),
            look: config.guard.look.get(),
            access: Access {
                trust_local: self.config.trust_local,
            },
            version: env!("CARGO_PKG_VERSION"),
            stop: stop.clone(),
        });
        serve(self.listener, router, stop, self.config.drain.get()).await;
    }
}
