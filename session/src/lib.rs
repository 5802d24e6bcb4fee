//! How the OpenStack clients of this workspace send their requests.
//!
//! Without features this crate is only the seam: [`Transport`], [`Microversion`], [`Class`] and
//! [`ApiError`]; no runtime, no HTTP stack. With the feature `client` it brings the real transport:
//! Keystone logins over [`osauth`](https://docs.rs/osauth), `clouds.yaml`, retries.
//! Start with `Clouds`, which finds a cloud's configuration.
//!
//! Both clients stand on this crate and do not know each other.
#![warn(missing_docs)]

mod api_error;
#[cfg(feature = "client")]
mod client;
mod microversion;
mod retry_after;
mod transport;
mod url_login;

pub use api_error::{ApiError, Class, NotAcceptable, in_full};
#[cfg(feature = "client")]
pub use client::{
    Auth, CloudConfig, Clouds, ConfigError, HttpTransport, HttpTransportBuilder, RetryPolicy, Service,
    Standing, TokenScope, did_you_mean, nearest,
};
pub use microversion::{Microversion, ParseMicroversionError, VersionRange};
pub use retry_after::retry_after;
pub use transport::{Resend, Transport, TransportError};
pub use url_login::split_login;
