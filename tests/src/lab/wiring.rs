//! The program under test, over the very stack that the command line uses, through recording proxies.

use std::sync::Arc;
use std::time::Duration;

use ironic_client::IronicClient;
use placement_client::PlacementClient;
use unprovision::cloud::{Clock, OpenStack, SystemClock};
use unprovision::journal::{Journal, MemoryJournal};
use unprovision::orchestrator::{Observer, Orchestrator};
use unprovision_session::{Auth, Clouds, HttpTransport, Service, Transport};

use super::{Lab, LabError};
use crate::proxy::{Proxy, Recorder};
use crate::rig::Nobody;

/// A proxy to each service, and the log of both.
#[derive(Debug)]
pub struct Proxies {
    /// The log.
    pub recorder: Recorder,
    pub(super) ironic: Proxy,
    pub(super) placement: Proxy,
}

/// How the program under test is set up.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The cloud in `clouds.yaml` for Ironic.
    pub ironic: &'static str,
    /// The cloud for Placement; where it is the same, there is one login.
    pub placement: &'static str,
    /// The journal.
    pub journal: Arc<dyn Journal>,
    /// Who is told what happens.
    pub observer: Arc<dyn Observer>,
    /// How often nodes are looked at.
    pub poll: Duration,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            ironic: "lab-system",
            placement: "lab",
            journal: Arc::new(MemoryJournal::new()),
            observer: Arc::new(Nobody),
            poll: Duration::from_millis(500),
        }
    }
}

impl Proxies {
    /// The way to one of the two services; nobody asks Nova through a proxy.
    pub fn to(&self, service: Service) -> &Proxy {
        match service {
            Service::Ironic => &self.ironic,
            Service::Placement | Service::Nova => &self.placement,
        }
    }
}

impl Lab {
    /// New proxies to this lab's services.
    ///
    /// # Errors
    ///
    /// Where there are no ports to be had.
    pub async fn proxies(&self) -> Result<Proxies, LabError> {
        self.proxies_at(0, 0).await
    }

    /// New proxies where everybody in this lab looks for Ironic and Placement: Nova, and who asks the catalog.
    ///
    /// # Errors
    ///
    /// Where the lab was not started for that, or other proxies are there.
    pub async fn proxies_of_nova(&self) -> Result<Proxies, LabError> {
        let ports = self.file.nova.as_ref().and_then(|nova| nova.proxied.as_ref());
        let ports = ports.ok_or(LabError::NoNova)?;
        self.proxies_at(ports.ironic, ports.placement).await
    }

    async fn proxies_at(&self, ironic: u16, placement: u16) -> Result<Proxies, LabError> {
        let recorder = Recorder::new();
        let failed = |error: std::io::Error| LabError::Setup(error.to_string());
        let ironic = recorder
            .proxy_at(Service::Ironic, &self.file.ironic_url, ironic)
            .await
            .map_err(failed)?;
        let placement = recorder
            .proxy_at(Service::Placement, &self.file.placement_url, placement)
            .await
            .map_err(failed)?;
        Ok(Proxies {
            recorder,
            ironic,
            placement,
        })
    }

    /// An orchestrator that reaches this lab through these proxies.
    ///
    /// # Errors
    ///
    /// Where `clouds.yaml` is not as it should be.
    pub async fn orchestrator(&self, proxies: &Proxies, setup: Setup) -> Result<Orchestrator, LabError> {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let cloud = Arc::new(self.openstack(proxies, &setup).await?);
        let builder = Orchestrator::builder(cloud, setup.journal, clock).observer(setup.observer);
        Ok(builder.poll(setup.poll).build())
    }

    /// This lab through these proxies, as the program under test sees it.
    ///
    /// # Errors
    ///
    /// Where `clouds.yaml` is not as it should be.
    pub async fn openstack(&self, proxies: &Proxies, setup: &Setup) -> Result<OpenStack, LabError> {
        let auth = self.auth(setup.ironic)?;
        let other = if setup.ironic == setup.placement {
            auth.clone()
        } else {
            self.auth(setup.placement)?
        };
        let ironic = transport(Service::Ironic, auth, proxies.ironic.url()).await?;
        let placement = transport(Service::Placement, other, proxies.placement.url()).await?;
        Ok(OpenStack::new(
            Arc::new(IronicClient::new(ironic)),
            Arc::new(PlacementClient::new(placement)),
            Arc::new(SystemClock),
        ))
    }

    /// The environment of a command line that reaches this lab through these proxies.
    pub fn environment(&self, proxies: &Proxies) -> [(&'static str, String); 5] {
        let defaults = Setup::default();
        [
            (
                "OS_CLIENT_CONFIG_FILE",
                self.file.clouds_yaml.to_string_lossy().into_owned(),
            ),
            ("UNPROVISION_IRONIC__CLOUD", defaults.ironic.to_owned()),
            ("UNPROVISION_PLACEMENT__CLOUD", defaults.placement.to_owned()),
            ("UNPROVISION_IRONIC__ENDPOINT", proxies.ironic.url().to_owned()),
            (
                "UNPROVISION_PLACEMENT__ENDPOINT",
                proxies.placement.url().to_owned(),
            ),
        ]
    }

    fn auth(&self, cloud: &str) -> Result<Auth, LabError> {
        let file = self.file.clouds_yaml.to_string_lossy().into_owned();
        // Nothing else of the process' environment may mix in.
        let environment = |name: &str| (name == "OS_CLIENT_CONFIG_FILE").then(|| file.clone());
        let config = Clouds::new(environment).cloud(cloud).load();
        config
            .and_then(Auth::new)
            .map_err(|error| LabError::Setup(error.to_string()))
    }
}

async fn transport(service: Service, auth: Auth, url: &str) -> Result<Arc<dyn Transport>, LabError> {
    let built = HttpTransport::builder(service, auth).endpoint(url).build().await;
    Ok(Arc::new(
        built.map_err(|error| LabError::Setup(error.to_string()))?,
    ))
}
