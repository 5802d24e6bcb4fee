//! The HTTP client below everything, with a cloud's TLS settings, and reading of answers.

use std::fs;
use std::path::Path;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use reqwest::{Certificate, Client, ClientBuilder, Identity, Response, redirect, retry};

use super::{CloudConfig, ConfigError};

/// How long connections are kept that nobody uses: less than the servers do (gunicorn 2 s, Apache 5 s).
/// Of a request that meets its connection being closed nobody knows whether it was applied.
const KEEP_IDLE: Duration = Duration::from_millis(1500);

/// A client with the TLS settings of a cloud. Of `rustls` and the system's authorities.
pub(super) fn build(
    config: &CloudConfig,
    connect_timeout: Duration,
    timeout: Duration,
) -> Result<Client, ConfigError> {
    let builder = Client::builder()
        .use_rustls_tls()
        .user_agent(concat!("unprovision/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(connect_timeout)
        .timeout(timeout)
        .pool_idle_timeout(KEEP_IDLE)
        // A token must not follow to wherever an answer points.
        .redirect(redirect::Policy::none())
        // Ours is the only one, with one budget.
        .retry(retry::never());
    with_tls(builder, config)?
        .build()
        .map_err(|error| ConfigError::Client {
            cloud: config.name().to_owned(),
            problem: causes(&error),
        })
}

fn with_tls(mut builder: ClientBuilder, config: &CloudConfig) -> Result<ClientBuilder, ConfigError> {
    let tls = &config.tls;
    // osauth's features compile Mozilla's list in; the system's administrator decides, not the compiler.
    builder = builder.tls_built_in_webpki_certs(false);
    if let Some(path) = &tls.cacert {
        // As with OpenStack's other tools, a file of authorities replaces the system's ones.
        builder = builder.tls_built_in_root_certs(false);
        let unusable = |problem: String| ConfigError::File {
            path: path.clone(),
            problem,
        };
        let authorities =
            Certificate::from_pem_bundle(&read(path)?).map_err(|error| unusable(causes(&error)))?;
        if authorities.is_empty() {
            return Err(unusable("there is no PEM certificate in it".to_owned()));
        }
        for authority in authorities {
            builder = builder.add_root_certificate(authority);
        }
    }
    if let Some(path) = &tls.cert {
        let mut pem = read(path)?;
        if let Some(key) = &tls.key {
            pem.push(b'\n');
            pem.extend(read(key)?);
        }
        let identity = Identity::from_pem(&pem).map_err(|error| ConfigError::File {
            path: tls.key.as_ref().unwrap_or(path).clone(),
            problem: format!("no PEM certificate with an unencrypted key: {}", causes(&error)),
        })?;
        builder = builder.identity(identity);
    }
    if !tls.verify {
        tracing::warn!(
            cloud = config.name(),
            "certificates are not verified: anybody can read our tokens"
        );
        builder = builder.danger_accept_invalid_certs(true);
    }
    Ok(builder)
}

fn read(path: &Path) -> Result<Vec<u8>, ConfigError> {
    fs::read(path).map_err(|error| ConfigError::File {
        path: path.to_owned(),
        problem: error.to_string(),
    })
}

/// Why a body was not read.
pub(super) enum BodyError {
    TooLarge,
    Broken(reqwest::Error),
}

/// Reads an answer's body, unpacked, as far as it is allowed to go.
pub(super) async fn read_body(mut response: Response, limit: usize) -> Result<Bytes, BodyError> {
    // The announced length spares reading what would be thrown away; only the count is proof.
    if response
        .content_length()
        .is_some_and(|length| length > limit as u64)
    {
        return Err(BodyError::TooLarge);
    }
    let mut body = BytesMut::new();
    while let Some(chunk) = response.chunk().await.map_err(BodyError::Broken)? {
        if body.len() + chunk.len() > limit {
            return Err(BodyError::TooLarge);
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body.freeze())
}

/// An error with all that caused it in one line.
pub(super) fn causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        next = cause.source();
    }
    text
}
