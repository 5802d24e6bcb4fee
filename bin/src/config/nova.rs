//! Whether Nova is asked for servers, and how to reach it.

use serde::{Deserialize, Serialize};
use unprovision_session::Service as Of;

use super::check::Wrong;
use super::{Config, HumanDuration, Service, check, set};

/// Whether Nova is asked for servers, and how to reach it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Nova {
    /// When it is asked.
    pub(crate) ask: Ask,
    /// Another cloud in `clouds.yaml` than Placement's.
    pub(crate) cloud: String,
    /// Where it is.
    pub(crate) endpoint: String,
    /// Its region in the catalog.
    pub(crate) region: String,
    /// `public`, `internal` or `admin`.
    pub(crate) interface: String,
    /// How long one attempt of one request may take.
    pub(crate) timeout: HumanDuration,
}

/// When Nova is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Ask {
    /// Where there is doubt, as far as it can be.
    Auto,
    /// Never.
    Off,
    /// Before each release too, and nothing is released without its word.
    Required,
}

impl Default for Nova {
    fn default() -> Self {
        Self {
            ask: Ask::Auto,
            cloud: String::new(),
            endpoint: String::new(),
            region: String::new(),
            interface: String::new(),
            timeout: HumanDuration::from_secs(20),
        }
    }
}

impl Nova {
    pub(super) fn check(&self) -> Result<(), Wrong> {
        let second = std::time::Duration::from_secs(1);
        check::at_least(self.timeout, second).map_err(|problem| ("nova.timeout", problem))?;
        check::endpoint(Of::Nova, &self.endpoint).map_err(|problem| ("nova.endpoint", problem))?;
        check::interface(&self.interface).map_err(|problem| ("nova.interface", problem))
    }
}

impl Config {
    /// How to reach a service. Nova wants a project's token, as Placement does.
    pub(crate) fn service(&self, service: Of) -> Service {
        match service {
            Of::Ironic => self.ironic.clone(),
            Of::Placement => self.placement.clone(),
            Of::Nova => Service {
                cloud: set(&self.nova.cloud).unwrap_or(&self.placement.cloud).to_owned(),
                endpoint: self.nova.endpoint.clone(),
                region: self.nova.region.clone(),
                interface: self.nova.interface.clone(),
                timeout: self.nova.timeout,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_meant_is_refused_with_its_key() {
        let wrong = |change: fn(&mut Nova)| {
            let mut nova = Nova::default();
            change(&mut nova);
            nova.check().unwrap_err().0
        };
        assert_eq!(Nova::default().check(), Ok(()));
        assert_eq!(
            wrong(|nova| nova.timeout = HumanDuration::from_millis(5)),
            "nova.timeout"
        );
        assert_eq!(wrong(|nova| nova.endpoint = "nova".to_owned()), "nova.endpoint");
        assert_eq!(
            wrong(|nova| nova.interface = "private".to_owned()),
            "nova.interface"
        );
        assert!(serde_json::from_str::<Ask>("\"always\"").is_err());
    }

    /// Nova wants a project's token, as Placement does.
    #[test]
    fn without_a_cloud_of_its_own_it_is_placements() {
        let mut config = Config::default();
        config.placement.cloud = "project".to_owned();
        assert_eq!(config.service(Of::Nova).cloud, "project");
        config.nova.cloud = "own".to_owned();
        assert_eq!(config.service(Of::Nova).cloud, "own");
    }
}
