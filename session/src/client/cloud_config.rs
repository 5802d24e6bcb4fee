//! The resolved configuration of one cloud: who we are there, where its services are, whom to trust.

use std::path::PathBuf;

use openstack::InterfaceType;
use secrecy::SecretString;
use url::Url;

use super::service::http_url;
use super::settings::Settings;
use super::{ConfigError, Service};

/// How to reach one cloud and who we are there. Made by [`Clouds`](super::Clouds).
///
/// Its `Debug` shows all of it except secrets.
#[derive(Clone, Debug)]
pub struct CloudConfig {
    name: String,
    pub(super) credentials: Credentials,
    ironic: ServiceConfig,
    placement: ServiceConfig,
    nova: ServiceConfig,
    pub(super) tls: Tls,
}

/// Who we are.
#[derive(Clone, Debug)]
pub(super) enum Credentials {
    /// Known to Keystone, which gives tokens.
    Keystone {
        /// Ends with `/v3`.
        auth_url: Url,
        identity: Identity,
        scope: Option<Scope>,
    },
    /// A user of the one service, such as a standalone Ironic's.
    HttpBasic {
        username: String,
        password: SecretString,
    },
    /// A token that the service itself knows.
    FixedToken(SecretString),
    /// Nobody.
    Nobody,
}

/// How Keystone recognises us.
#[derive(Clone, Debug)]
pub(super) enum Identity {
    Password {
        user: Named,
        password: SecretString,
    },
    Token(SecretString),
    ApplicationCredential {
        credential: ApplicationCredential,
        secret: SecretString,
    },
}

/// An application credential: its name is unique for its user only.
#[derive(Clone, Debug)]
pub(super) enum ApplicationCredential {
    Id(String),
    Name { name: String, user: Named },
}

/// A user or project: its name is unique in its domain only.
#[derive(Clone, Debug)]
pub(super) enum Named {
    Id(String),
    Name { name: String, domain: Domain },
}

/// A domain.
#[derive(Clone, Debug)]
pub(super) enum Domain {
    Id(String),
    Name(String),
}

/// What a token is to be valid for.
#[derive(Clone, Debug)]
pub(super) enum Scope {
    Project(Named),
    Domain(Domain),
    System,
}

/// Where one service is.
#[derive(Clone, Debug)]
pub(super) struct ServiceConfig {
    /// Where it surely is, rather than where the catalog says.
    pub(super) endpoint: Option<Url>,
    pub(super) region: Option<String>,
    pub(super) interface: InterfaceType,
}

/// Whom to trust, and how we show who we are on the level of TLS.
#[derive(Clone, Debug)]
pub(super) struct Tls {
    pub(super) verify: bool,
    /// Trusted instead of the system's authorities.
    pub(super) cacert: Option<PathBuf>,
    pub(super) cert: Option<PathBuf>,
    /// `None` where the certificate's file has it.
    pub(super) key: Option<PathBuf>,
}

impl CloudConfig {
    /// The cloud's name in `clouds.yaml`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Where Keystone is, where there is one.
    pub(super) fn keystone(&self) -> Option<&Url> {
        match &self.credentials {
            Credentials::Keystone { auth_url, .. } => Some(auth_url),
            _ => None,
        }
    }

    pub(super) fn service(&self, service: Service) -> &ServiceConfig {
        match service {
            Service::Ironic => &self.ironic,
            Service::Placement => &self.placement,
            Service::Nova => &self.nova,
        }
    }

    pub(super) fn resolve(name: String, settings: &Settings) -> Result<Self, ConfigError> {
        let resolver = Resolver {
            cloud: &name,
            settings,
        };
        let credentials = resolver.credentials()?;
        let ironic = resolver.service(Service::Ironic, &credentials)?;
        let placement = resolver.service(Service::Placement, &credentials)?;
        let nova = resolver.service(Service::Nova, &credentials)?;
        let tls = resolver.tls()?;
        Ok(Self {
            name,
            credentials,
            ironic,
            placement,
            nova,
            tls,
        })
    }
}

struct Resolver<'a> {
    cloud: &'a str,
    settings: &'a Settings,
}

impl Resolver<'_> {
    fn credentials(&self) -> Result<Credentials, ConfigError> {
        let has = |key| self.settings.get(key).is_some();
        let default = if has("token") && !has("password") {
            "token"
        } else {
            "password"
        };
        let identity = match self.settings.get("auth_type").unwrap_or(default) {
            "password" | "v3password" => Identity::Password {
                user: self.user()?,
                password: self.secret("password")?,
            },
            "token" | "v3token" => Identity::Token(self.secret("token")?),
            "v3applicationcredential" => {
                let credential = match self.settings.get("application_credential_id") {
                    Some(id) => ApplicationCredential::Id(id.to_owned()),
                    None => ApplicationCredential::Name {
                        name: self.need(
                            "application_credential_name",
                            "it or `application_credential_id` names the credential",
                        )?,
                        user: self.user()?,
                    },
                };
                let secret = self.secret("application_credential_secret")?;
                Identity::ApplicationCredential { credential, secret }
            }
            "http_basic" => {
                let username = self.need("username", "http_basic wants it")?;
                return Ok(Credentials::HttpBasic {
                    username,
                    password: self.secret("password")?,
                });
            }
            // `token_endpoint` is the old name.
            "admin_token" | "token_endpoint" => return Ok(Credentials::FixedToken(self.secret("token")?)),
            "none" | "noauth" => return Ok(Credentials::Nobody),
            other => {
                let problem = format!(
                    "`{other}` is not supported; there are: password, token, v3applicationcredential, \
                     http_basic, admin_token, none"
                );
                return Err(self.invalid("auth_type", problem));
            }
        };
        let scope = match identity {
            // Such a credential has its scope, and Keystone refuses a login that asks for one.
            Identity::ApplicationCredential { .. } => None,
            _ => self.scope()?,
        };
        Ok(Credentials::Keystone {
            auth_url: self.auth_url()?,
            identity,
            scope,
        })
    }

    fn auth_url(&self) -> Result<Url, ConfigError> {
        let text = self.need("auth_url", "it says where Keystone is")?;
        let mut url = http_url(&text).map_err(|problem| self.invalid("auth_url", problem))?;
        let path = url.path().trim_end_matches('/').to_owned();
        if path.ends_with("/v2.0") {
            return Err(self.invalid("auth_url", "Identity API v2.0 is gone; use /v3".to_owned()));
        }
        url.set_path(&if path.ends_with("/v3") { path } else { path + "/v3" });
        Ok(url)
    }

    fn user(&self) -> Result<Named, ConfigError> {
        match self.settings.get("user_id") {
            Some(id) => Ok(Named::Id(id.to_owned())),
            None => {
                let name = self.need("username", "it or `user_id` says who logs in")?;
                Ok(Named::Name {
                    name,
                    domain: self.domain_of("user_domain"),
                })
            }
        }
    }

    /// The domain of a user or project. A plain `domain_id` stands for both as long as it is not the
    /// scope itself, and `default` is what OpenStack's command line assumes as well.
    fn domain_of(&self, prefix: &str) -> Domain {
        let domain_is_scope = self.project().is_none() && self.settings.get("system_scope").is_none();
        let shared = if domain_is_scope {
            None
        } else {
            self.domain("domain")
        };
        let found = self
            .domain(prefix)
            .or(shared)
            .or_else(|| self.domain("default_domain"));
        found.unwrap_or_else(|| Domain::Id("default".to_owned()))
    }

    fn domain(&self, prefix: &str) -> Option<Domain> {
        let get = |suffix: &str| {
            self.settings
                .get(&format!("{prefix}_{suffix}"))
                .map(str::to_owned)
        };
        get("id")
            .map(Domain::Id)
            .or_else(|| get("name").map(Domain::Name))
    }

    fn project(&self) -> Option<&str> {
        self.settings
            .get("project_id")
            .or(self.settings.get("project_name"))
    }

    fn scope(&self) -> Result<Option<Scope>, ConfigError> {
        if self.settings.get("trust_id").is_some() {
            return Err(self.invalid("trust_id", "trusts are not supported".to_owned()));
        }
        match (self.project(), self.settings.get("system_scope")) {
            (Some(_), Some(_)) => {
                let problem = "there is a project as well, and a token has one scope".to_owned();
                Err(self.invalid("system_scope", problem))
            }
            (None, Some("all" | "true" | "True")) => Ok(Some(Scope::System)),
            (None, Some(_)) => Err(self.invalid("system_scope", "the only system scope is `all`".to_owned())),
            (None, None) => Ok(self.domain("domain").map(Scope::Domain)),
            (Some(project), None) => Ok(Some(Scope::Project(match self.settings.get("project_id") {
                Some(id) => Named::Id(id.to_owned()),
                None => Named::Name {
                    name: project.to_owned(),
                    domain: self.domain_of("project_domain"),
                },
            }))),
        }
    }

    fn service(&self, service: Service, credentials: &Credentials) -> Result<ServiceConfig, ConfigError> {
        let own = |suffix: &str| format!("{}_{suffix}", service.service_type());
        let mut endpoint_key = own("endpoint_override");
        // `endpoint` names the one service that stands alone, without a Keystone. Were it used for
        // Placement too, one would be taken for the other.
        let alone = service == Service::Ironic && !matches!(credentials, Credentials::Keystone { .. });
        if alone && self.settings.get(&endpoint_key).is_none() {
            endpoint_key = "endpoint".to_owned();
        }
        let endpoint = self.settings.get(&endpoint_key).map(|text| {
            service
                .base(text)
                .map_err(|problem| self.invalid(&endpoint_key, problem))
        });
        let own_or_common = |key: &str| {
            let own = own(key);
            if self.settings.get(&own).is_some() {
                own
            } else {
                key.to_owned()
            }
        };
        let interface_key = own_or_common("interface");
        let interface = match self.settings.get(&interface_key) {
            Some(text) => text.parse().map_err(|_| {
                self.invalid(
                    &interface_key,
                    format!("`{text}` is not one of public, internal, admin"),
                )
            })?,
            None => InterfaceType::Public,
        };
        let region = self
            .settings
            .get(&own_or_common("region_name"))
            .map(str::to_owned);
        Ok(ServiceConfig {
            endpoint: endpoint.transpose()?,
            region,
            interface,
        })
    }

    fn tls(&self) -> Result<Tls, ConfigError> {
        let path = |key: &str| self.settings.get(key).map(PathBuf::from);
        let verify = self.flag("verify")?.unwrap_or(true) && !self.flag("insecure")?.unwrap_or(false);
        let tls = Tls {
            verify,
            cacert: path("cacert"),
            cert: path("cert"),
            key: path("key"),
        };
        if tls.key.is_some() && tls.cert.is_none() {
            return Err(self.missing("cert", "there is a key, but no certificate for it"));
        }
        Ok(tls)
    }

    fn flag(&self, key: &str) -> Result<Option<bool>, ConfigError> {
        match self.settings.get(key).map(str::to_ascii_lowercase).as_deref() {
            None => Ok(None),
            Some("true" | "yes" | "on" | "1") => Ok(Some(true)),
            Some("false" | "no" | "off" | "0") => Ok(Some(false)),
            Some(other) => Err(self.invalid(key, format!("`{other}` is neither true nor false"))),
        }
    }

    fn need(&self, key: &str, reason: &str) -> Result<String, ConfigError> {
        self.settings
            .get(key)
            .map(str::to_owned)
            .ok_or_else(|| self.missing(key, reason))
    }

    fn secret(&self, key: &str) -> Result<SecretString, ConfigError> {
        Ok(SecretString::from(self.need(key, "the auth_type wants it")?))
    }

    fn missing(&self, key: &str, reason: &str) -> ConfigError {
        ConfigError::Missing {
            cloud: self.cloud.to_owned(),
            key: key.to_owned(),
            reason: reason.to_owned(),
        }
    }

    fn invalid(&self, key: &str, problem: String) -> ConfigError {
        let (cloud, from) = (self.cloud.to_owned(), self.settings.from(key).to_owned());
        ConfigError::Invalid {
            cloud,
            key: key.to_owned(),
            from,
            problem,
        }
    }
}
