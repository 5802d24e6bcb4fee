//! Our authentication type: whatever a cloud wants to see of us, behind the SDK's trait.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use http::{HeaderName, HeaderValue};
use openstack::auth::AuthType;
use openstack::{EndpointFilters, Error, ErrorKind};
use reqwest::{Client, RequestBuilder};
use secrecy::{ExposeSecret, SecretString};
use url::Url;

use super::cloud_config::Credentials;
use super::keystone::Keystone;
use super::token_cache::{Token, TokenCache};
use super::{CloudConfig, ConfigError, Standing, http_client};

/// The header that carries a token.
pub(super) const X_AUTH_TOKEN: HeaderName = HeaderName::from_static("x-auth-token");

/// How long connecting to Keystone may take, within the login's own time-out.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// How one cloud knows us. Clones share one token: give one to each transport to the same cloud.
///
/// Logs in when something is first sent, ahead of the token's end, and when a service refuses the token;
/// never more than once at a time.
#[derive(Clone)]
pub struct Auth(Arc<Inner>);

struct Inner {
    config: CloudConfig,
    means: Means,
}

enum Means {
    Keystone(TokenCache),
    HttpBasic(String, SecretString),
    FixedToken(HeaderValue),
    Nothing,
}

impl Auth {
    /// How long a login may take unless told otherwise. A password costs Keystone a second or two of
    /// computing on purpose, and more when many log in.
    pub const LOGIN_TIMEOUT: Duration = Duration::from_secs(30);

    /// Prepares for a cloud; nothing is sent yet.
    ///
    /// # Errors
    /// Where the TLS settings (`cacert`, `cert`, `key`) or credentials are unusable.
    pub fn new(config: CloudConfig) -> Result<Self, ConfigError> {
        Self::with_login_timeout(config, Self::LOGIN_TIMEOUT)
    }

    /// Like [`Auth::new`], with another limit to what a login may take.
    ///
    /// # Errors
    /// The same.
    pub fn with_login_timeout(config: CloudConfig, timeout: Duration) -> Result<Self, ConfigError> {
        let means = match &config.credentials {
            Credentials::Keystone {
                auth_url,
                identity,
                scope,
            } => {
                let client = http_client::build(&config, CONNECT_TIMEOUT.min(timeout), timeout)?;
                let (auth_url, identity, scope) = (auth_url.clone(), identity.clone(), scope.clone());
                Means::Keystone(TokenCache::new(Arc::new(Keystone {
                    client,
                    auth_url,
                    identity,
                    scope,
                })))
            }
            Credentials::HttpBasic { username, password } => {
                Means::HttpBasic(username.clone(), password.clone())
            }
            Credentials::FixedToken(token) => Means::FixedToken(header_value(&config, token)?),
            Credentials::Nobody => Means::Nothing,
        };
        Ok(Self(Arc::new(Inner { config, means })))
    }

    /// The cloud.
    pub fn config(&self) -> &CloudConfig {
        &self.0.config
    }

    /// Whether a catalog comes with the login; without one, services need an endpoint override.
    pub(super) fn has_catalog(&self) -> bool {
        matches!(self.0.means, Means::Keystone(_))
    }

    /// Who we are to Keystone; logs in where that is needed. `None` where there is no Keystone.
    pub(super) async fn standing(&self) -> Result<Option<Standing>, Error> {
        match &self.0.means {
            Means::Keystone(tokens) => Ok(tokens.token().await?.standing.clone()),
            _ => Ok(None),
        }
    }

    /// Gets another token than the refused one. Without a Keystone there is none to be had: `None`.
    pub(super) async fn replace(&self, refused: &HeaderValue) -> Option<Result<Arc<Token>, Error>> {
        match &self.0.means {
            Means::Keystone(tokens) => Some(tokens.replace(refused).await),
            _ => None,
        }
    }
}

impl fmt::Debug for Auth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Auth")
            .field("config", &self.0.config)
            .finish_non_exhaustive()
    }
}

#[async_trait]
impl AuthType for Auth {
    async fn authenticate(&self, _: &Client, request: RequestBuilder) -> Result<RequestBuilder, Error> {
        Ok(match &self.0.means {
            Means::Keystone(tokens) => request.header(X_AUTH_TOKEN, tokens.token().await?.value()),
            Means::HttpBasic(username, password) => {
                request.basic_auth(username, Some(password.expose_secret()))
            }
            Means::FixedToken(token) => request.header(X_AUTH_TOKEN, token),
            Means::Nothing => request,
        })
    }

    async fn get_endpoint(
        &self,
        _: &Client,
        service_type: &str,
        filters: &EndpointFilters,
    ) -> Result<Url, Error> {
        match &self.0.means {
            Means::Keystone(tokens) => tokens.token().await?.catalog.find(service_type, filters),
            _ => Err(Error::new(
                ErrorKind::EndpointNotFound,
                "there is no catalog without a Keystone",
            )),
        }
    }

    /// Does nothing. osauth calls it when a client is made, and a daemon must be able to start before
    /// its Keystone; all later renewals happen by themselves.
    async fn refresh(&self, _: &Client) -> Result<(), Error> {
        Ok(())
    }
}

fn header_value(config: &CloudConfig, token: &SecretString) -> Result<HeaderValue, ConfigError> {
    let mut value = HeaderValue::from_str(token.expose_secret()).map_err(|_| ConfigError::Invalid {
        cloud: config.name().to_owned(),
        key: "token".to_owned(),
        from: "admin_token".to_owned(),
        problem: "it has characters that no header can carry".to_owned(),
    })?;
    value.set_sensitive(true);
    Ok(value)
}
