//! The HTTP transport: everything between a request of a client and the wire.
//!
//! It stands on [`openstack`], the SDK that this project was asked to use, for the types that the SDK
//! shares with the world ([`AuthType`](openstack::auth::AuthType), endpoint filters, errors), and on
//! [`osauth`], the session layer below it, for what the SDK does not re-export: the
//! [`AuthenticatedClient`](osauth::client::AuthenticatedClient). Their own authentication types,
//! `clouds.yaml` reader, version discovery and error conversion are not used: no new login at a 401, a
//! hung Keystone that blocks everybody, TLS settings and scopes that are silently dropped, discovery
//! that follows a service to another host. All of that is answered by [`Auth`], an `AuthType` of our own.

mod auth;
mod catalog;
mod cloud_config;
mod clouds;
mod clouds_yaml;
mod config_error;
mod http_client;
mod keystone;
mod nearest;
mod retry;
mod service;
mod settings;
mod standing;
mod token_cache;
mod transport;

pub use auth::Auth;
pub use cloud_config::CloudConfig;
pub use clouds::Clouds;
pub use config_error::ConfigError;
pub use nearest::{did_you_mean, nearest};
pub use retry::RetryPolicy;
pub use service::Service;
pub use standing::{Standing, TokenScope};
pub use transport::{HttpTransport, HttpTransportBuilder};
