//! The logins, and the ways to the services that they lead.

use std::collections::BTreeMap;
use std::sync::Arc;

use unprovision::servers::{MemoryServers, NovaServers, Servers, ServersError};
use unprovision_session::{
    Auth, Clouds, ConfigError, HttpTransport, HttpTransportBuilder, RetryPolicy, Service,
};

use super::Tls;
use crate::config::{self, Ask, Config, set};

/// The logins, one for each cloud in `clouds.yaml`.
#[derive(Debug)]
pub(super) struct Logins<'a> {
    config: &'a Config,
    tls: &'a Tls,
    made: BTreeMap<String, Auth>,
}

impl<'a> Logins<'a> {
    pub(super) fn new(config: &'a Config, tls: &'a Tls) -> Self {
        let made = BTreeMap::new();
        Self { config, tls, made }
    }

    pub(super) fn of(&mut self, service: Service) -> Result<Auth, ConfigError> {
        let own = self.config.service(service).cloud;
        let cloud = set(&own).unwrap_or(&self.config.os_cloud);
        if let Some(auth) = self.made.get(cloud) {
            return Ok(auth.clone());
        }
        let auth = login(self.config, self.tls, set(cloud))?;
        self.made.insert(cloud.to_owned(), auth.clone());
        Ok(auth)
    }

    async fn transport(&mut self, service: Service) -> Result<HttpTransport, ConfigError> {
        let auth = self.of(service)?;
        builder(&self.config.service(service), service, auth)
            .build()
            .await
    }

    /// The ways to both services.
    pub(super) async fn transports(&mut self) -> Result<(HttpTransport, HttpTransport), ConfigError> {
        let ironic = self.transport(Service::Ironic).await?;
        Ok((ironic, self.transport(Service::Placement).await?))
    }

    /// Whom to ask for servers, if anybody.
    pub(super) async fn servers(&mut self) -> Result<Option<Arc<dyn Servers>>, ConfigError> {
        if self.config.nova.ask == Ask::Off {
            return Ok(None);
        }
        let auth = self.of(Service::Nova)?;
        let builder = builder(&self.config.service(Service::Nova), Service::Nova, auth);
        // It is asked again in a while.
        let transport = builder.retry(twice()).build().await?;
        Ok(Some(Arc::new(NovaServers::new(Arc::new(transport)))))
    }
}

/// Somebody who says why there is nobody to ask.
pub(super) fn cannot_be_asked(error: &ConfigError) -> Option<Arc<dyn Servers>> {
    let nobody = MemoryServers::new();
    nobody.fail(Some(ServersError::Unreadable(error.to_string())));
    Some(Arc::new(nobody))
}

/// Whom to ask for servers, if anybody; for somebody who only wants to know whether he can be asked.
pub(crate) async fn servers(config: &Config, tls: &Tls) -> Option<Arc<dyn Servers>> {
    let servers = Logins::new(config, tls).servers().await;
    servers.unwrap_or_else(|error| cannot_be_asked(&error))
}

/// For somebody who wants to know soon.
pub(super) fn twice() -> RetryPolicy {
    RetryPolicy {
        attempts: 2,
        ..RetryPolicy::default()
    }
}

fn login(config: &Config, tls: &Tls, cloud: Option<&str>) -> Result<Auth, ConfigError> {
    let mut clouds = Clouds::from_process_env();
    if let Some(name) = cloud {
        clouds = clouds.cloud(name);
    }
    for of in [Service::Ironic, Service::Placement, Service::Nova] {
        let (prefix, service) = (of.service_type(), config.service(of));
        for (key, value) in [
            ("region_name", &service.region),
            ("interface", &service.interface),
        ] {
            if let Some(value) = set(value) {
                clouds = clouds.set(format!("{prefix}_{key}"), value);
            }
        }
    }
    if tls.insecure {
        clouds = clouds.set("insecure", "true");
    }
    if let Some(path) = &tls.os_cacert {
        clouds = clouds.set("cacert", path.to_string_lossy());
    }
    Auth::new(clouds.load()?)
}

pub(super) fn builder(own: &config::Service, service: Service, auth: Auth) -> HttpTransportBuilder {
    let builder = HttpTransport::builder(service, auth).timeout(own.timeout.get());
    match set(&own.endpoint) {
        Some(url) => builder.endpoint(url),
        None => builder,
    }
}
