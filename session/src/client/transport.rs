//! [`Transport`] over HTTP.

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Uri};
use openstack::{EndpointFilters, Error, ErrorKind};
use osauth::client::AuthenticatedClient;
use tokio::time::Instant;
use tracing::Instrument;
use url::Url;

use super::auth::X_AUTH_TOKEN;
use super::http_client::{self, BodyError, read_body};
use super::retry::Retrier;
use super::{Auth, ConfigError, RetryPolicy, Service, Standing};
use crate::{Resend, Transport, TransportError};

/// Carries requests to one service over HTTP: finds the endpoint, authenticates, logs in anew at a 401,
/// sends again what may be sent again, and gives up in time.
///
/// Redirections are not followed: they are handed over as answers.
///
/// ```no_run
/// use bytes::Bytes;
/// use unprovision_session::{Auth, Clouds, HttpTransport, Service, Transport};
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let auth = Auth::new(Clouds::from_process_env().cloud("prod").load()?)?;
/// let ironic = HttpTransport::builder(Service::Ironic, auth.clone()).build().await?;
/// let placement = HttpTransport::builder(Service::Placement, auth).build().await?; // the same login
///
/// let answer = ironic.send(http::Request::get("/v1/nodes?limit=1").body(Bytes::new())?).await?;
/// println!("{}", answer.status());
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct HttpTransport {
    service: Service,
    auth: Auth,
    client: AuthenticatedClient,
    /// Where the service surely is; otherwise the catalog says.
    endpoint: Option<Url>,
    filters: EndpointFilters,
    max_answer: usize,
    retrier: Retrier,
}

/// Makes an [`HttpTransport`].
#[derive(Debug)]
#[must_use = "a builder does nothing until `build`"]
pub struct HttpTransportBuilder {
    service: Service,
    auth: Auth,
    endpoint: Option<String>,
    connect_timeout: Duration,
    timeout: Duration,
    max_answer: usize,
    retry: RetryPolicy,
}

impl HttpTransportBuilder {
    /// Where the service is. Wins over the cloud's configuration and over the catalog.
    pub fn endpoint(mut self, url: impl Into<String>) -> Self {
        self.endpoint = Some(url.into());
        self
    }

    /// How long connecting may take (5 s).
    pub fn connect_timeout(mut self, limit: Duration) -> Self {
        self.connect_timeout = limit;
        self
    }

    /// How long one attempt may take from connecting to the end of the answer (60 s).
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.timeout = limit;
        self
    }

    /// The largest body of an answer that is read, in bytes after unpacking (64 MiB).
    pub fn max_answer(mut self, bytes: usize) -> Self {
        self.max_answer = bytes;
        self
    }

    /// How requests are sent again.
    pub fn retry(mut self, policy: RetryPolicy) -> Self {
        self.retry = policy;
        self
    }

    /// Builds the transport. Nothing is sent yet: use [`HttpTransport::endpoint`] to see whether a login
    /// works.
    ///
    /// # Errors
    /// Where the endpoint or TLS settings are unusable, or where neither a catalog nor a setting can
    /// say where the service is.
    pub async fn build(self) -> Result<HttpTransport, ConfigError> {
        let config = self.auth.config();
        let invalid = |problem| ConfigError::Invalid {
            cloud: config.name().to_owned(),
            key: "endpoint".to_owned(),
            from: format!("given for {}", self.service),
            problem,
        };
        let own = config.service(self.service);
        let endpoint = match &self.endpoint {
            Some(url) => Some(self.service.base(url).map_err(invalid)?),
            None => own.endpoint.clone(),
        };
        if endpoint.is_none() && !self.auth.has_catalog() {
            return Err(ConfigError::Missing {
                cloud: config.name().to_owned(),
                key: format!("{}_endpoint_override", self.service.service_type()),
                reason: format!("without a Keystone no catalog says where {} is", self.service),
            });
        }
        let mut filters = EndpointFilters::default().with_interfaces(own.interface);
        filters.region.clone_from(&own.region);
        let http = http_client::build(config, self.connect_timeout, self.timeout)?;
        let client = AuthenticatedClient::new(http, self.auth.clone()).await;
        let client = client.map_err(|error| ConfigError::Client {
            cloud: config.name().to_owned(),
            problem: error.to_string(),
        })?;
        Ok(HttpTransport {
            service: self.service,
            client,
            endpoint,
            filters,
            max_answer: self.max_answer,
            retrier: Retrier::new(self.retry),
            auth: self.auth,
        })
    }
}

impl HttpTransport {
    /// Begins a transport to a service of the cloud that `auth` is for.
    pub fn builder(service: Service, auth: Auth) -> HttpTransportBuilder {
        HttpTransportBuilder {
            service,
            auth,
            endpoint: None,
            connect_timeout: Duration::from_secs(5),
            timeout: Duration::from_secs(60),
            max_answer: 64 * 1024 * 1024,
            retry: RetryPolicy::default(),
        }
    }

    /// Where the service is, as far as paths like `/v1/nodes` are put behind it. Logs in for the catalog
    /// where that is needed.
    ///
    /// # Errors
    /// [`TransportError::Login`] or [`TransportError::Endpoint`].
    pub async fn endpoint(&self) -> Result<Url, TransportError> {
        if let Some(url) = &self.endpoint {
            return Ok(url.clone());
        }
        let found = self
            .client
            .get_endpoint(self.service.service_type(), &self.filters)
            .await;
        let url = found.map_err(|error| self.no_access(&error))?;
        self.service
            .base(url.as_str())
            .map_err(|problem| self.no_endpoint(problem))
    }

    /// Who we are to Keystone, as it says at the login; logs in where that is needed. `None` where there is no Keystone.
    ///
    /// # Errors
    /// [`TransportError::Login`].
    pub async fn standing(&self) -> Result<Option<Standing>, TransportError> {
        self.auth.standing().await.map_err(|error| self.no_access(&error))
    }

    /// Which cloud this leads to, in words without secrets, from the configuration alone: the endpoint where that is set, or
    /// else Keystone and the region.
    pub fn place(&self) -> String {
        let region = self.filters.region.as_deref();
        let region = region.map(|name| format!(" (region {name})")).unwrap_or_default();
        match (&self.endpoint, self.auth.config().keystone()) {
            (Some(url), _) => url.as_str().trim_end_matches('/').to_owned(),
            (None, Some(keystone)) => format!("{}{region}", keystone.as_str().trim_end_matches('/')),
            // `build` has refused that.
            (None, None) => String::new(),
        }
    }

    /// The request's URL: its path and query behind the endpoint, on the endpoint's own host.
    async fn url(&self, uri: &Uri) -> Result<Url, TransportError> {
        let path = uri.path();
        let is_dots = |segment: &str| {
            matches!(
                segment.to_ascii_lowercase().replace("%2e", ".").as_str(),
                "." | ".."
            )
        };
        if uri.authority().is_some() || !path.starts_with('/') || path.split('/').any(is_dots) {
            return Err(self.no_endpoint(format!("`{path}` is not an absolute path without dots")));
        }
        let mut url = self.endpoint().await?;
        let whole = format!("{}{path}", url.path().trim_end_matches('/'));
        url.set_path(&whole);
        url.set_query(uri.query());
        Ok(url)
    }

    /// One attempt, with a new login in between where that helps.
    async fn attempt(&self, message: &Message, resend: Resend) -> Result<Response<Bytes>, TransportError> {
        let (answer, token) = self.exchange(message).await?;
        let Some(token) = token.filter(|_| answer.status() == StatusCode::UNAUTHORIZED) else {
            return Ok(answer);
        };
        // A service that does not know a token has not looked at the request.
        match (self.auth.replace(&token).await, resend) {
            (None, _) => Ok(answer),
            (Some(renewed), Resend::Never) => {
                tracing::info!(
                    renewed = renewed.is_ok(),
                    "the token was refused; the caller decides"
                );
                Ok(answer)
            }
            (Some(Err(error)), _) => Err(self.no_access(&error)),
            (Some(Ok(_)), _) => {
                tracing::info!("the token was refused; sending again with another one");
                Ok(self.exchange(message).await?.0)
            }
        }
    }

    /// Sends once and reads the answer; also returns the token that was sent.
    async fn exchange(
        &self,
        message: &Message,
    ) -> Result<(Response<Bytes>, Option<HeaderValue>), TransportError> {
        let url = self.url(&message.uri).await?;
        let http = self.client.inner();
        let request = http
            .request(message.method.clone(), url)
            .headers(message.headers.clone())
            .body(message.body.clone());
        // Not osauth's own `send_unchecked`: it turns reqwest's error into a text, and then nobody can
        // tell a refused connection from one that broke.
        let request = self.client.auth_type().authenticate(http, request).await;
        let request = request.map_err(|error| self.no_access(&error))?;
        let request = request
            .build()
            .map_err(|error| self.no_endpoint(error.to_string()))?;
        let token = request.headers().get(X_AUTH_TOKEN).cloned();

        let began = Instant::now();
        let response = http
            .execute(request)
            .await
            .map_err(|error| self.failed(error, began))?;
        let mut answer = Response::new(Bytes::new());
        *answer.status_mut() = response.status();
        *answer.headers_mut() = response.headers().clone();
        *answer.body_mut() = read_body(response, self.max_answer)
            .await
            .map_err(|error| match error {
                BodyError::TooLarge => TransportError::TooLarge {
                    service: self.service.to_string(),
                    limit: self.max_answer,
                },
                BodyError::Broken(error) => self.failed(error, began),
            })?;
        tracing::debug!(
            status = answer.status().as_u16(),
            request_id = request_id(answer.headers()),
            took = ?began.elapsed(),
            "answer"
        );
        Ok((answer, token))
    }

    fn failed(&self, error: reqwest::Error, began: Instant) -> TransportError {
        let service = self.service.to_string();
        // Also name resolution and the TLS handshake: nothing of the request has left by then.
        if error.is_connect() {
            return TransportError::NotSent {
                service,
                source: error.into(),
            };
        }
        let waited = error.is_timeout().then(|| began.elapsed());
        TransportError::MaybeApplied {
            service,
            waited,
            source: error.into(),
        }
    }

    fn no_access(&self, error: &Error) -> TransportError {
        let (service, message) = (self.service.to_string(), error.to_string());
        match error.kind() {
            ErrorKind::EndpointNotFound => TransportError::Endpoint { service, message },
            kind => {
                let transient = matches!(
                    kind,
                    ErrorKind::InternalServerError
                        | ErrorKind::OperationFailed
                        | ErrorKind::OperationTimedOut
                        | ErrorKind::ProtocolError
                );
                TransportError::Login {
                    service,
                    message,
                    transient,
                }
            }
        }
    }

    fn no_endpoint(&self, message: String) -> TransportError {
        TransportError::Endpoint {
            service: self.service.to_string(),
            message,
        }
    }
}

#[async_trait]
impl Transport for HttpTransport {
    async fn send(&self, request: Request<Bytes>) -> Result<Response<Bytes>, TransportError> {
        let resend = Resend::of(&request);
        let message = Message::from(request);
        let span = tracing::debug_span!(
            "request",
            service = self.service.name(),
            method = %message.method,
            path = message.uri.path()
        );
        self.retrier
            .run(resend, || self.attempt(&message, resend))
            .instrument(span)
            .await
    }
}

/// What is the same in every attempt.
struct Message {
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
}

impl From<Request<Bytes>> for Message {
    fn from(request: Request<Bytes>) -> Self {
        let (parts, body) = request.into_parts();
        let mut headers = parts.headers;
        // Who we are is the transport's business.
        headers.remove(X_AUTH_TOKEN);
        headers.remove(AUTHORIZATION);
        Self {
            method: parts.method,
            uri: parts.uri,
            headers,
            body,
        }
    }
}

fn request_id(headers: &HeaderMap) -> Option<&str> {
    headers.get("x-openstack-request-id")?.to_str().ok()
}
