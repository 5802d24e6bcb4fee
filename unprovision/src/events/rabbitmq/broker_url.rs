//! Where a broker is. What is shown of it has no user and no password.

use std::fmt;
use std::str::FromStr;

use lapin::uri::{AMQPAuthority, AMQPQueryString, AMQPScheme, AMQPUri, AMQPUserInfo};
use percent_encoding::percent_decode_str;
use url::Url;

/// How long a broker may be silent, in seconds, before it counts as gone.
const HEARTBEAT: u16 = 20;

/// The URL of a broker: `amqp://user:password@host:port/vhost`, or `amqps://`.
#[derive(Clone, PartialEq, Eq)]
pub struct BrokerUrl(AMQPUri);

/// A URL that is none of a broker. The URL is not repeated: it may hold a password.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}; write it like amqps://user:password@host:5671/vhost, with %2F for a slash in a name")]
pub struct BadBroker(&'static str);

impl BrokerUrl {
    pub(super) fn uri(&self) -> AMQPUri {
        self.0.clone()
    }

    /// Whether it is spoken to over TLS.
    pub fn is_encrypted(&self) -> bool {
        self.0.scheme == AMQPScheme::AMQPS
    }
}

impl FromStr for BrokerUrl {
    type Err = BadBroker;

    fn from_str(text: &str) -> Result<Self, BadBroker> {
        let url = Url::parse(text).map_err(|_| BadBroker("this is no URL"))?;
        let scheme = match url.scheme() {
            "amqp" => AMQPScheme::AMQP,
            "amqps" => AMQPScheme::AMQPS,
            _ => return Err(BadBroker("its scheme is neither amqp nor amqps")),
        };
        let host = url.host_str().filter(|host| !host.is_empty());
        let host = host.ok_or(BadBroker("it names no host"))?;
        if url.query().is_some() || url.fragment().is_some() {
            return Err(BadBroker("it takes nothing after the virtual host"));
        }
        let vhost = decoded(url.path().strip_prefix('/').unwrap_or_default())?;
        Ok(Self(AMQPUri {
            authority: AMQPAuthority {
                userinfo: AMQPUserInfo {
                    username: decoded(url.username())?,
                    password: decoded(url.password().unwrap_or_default())?,
                },
                host: host.trim_matches(['[', ']']).to_owned(),
                port: url.port().unwrap_or_else(|| scheme.default_port()),
            },
            // As oslo.messaging and RabbitMQ's own tools have it: nothing said is the broker's default.
            vhost: if vhost.is_empty() { "/".to_owned() } else { vhost },
            scheme,
            query: AMQPQueryString {
                heartbeat: Some(HEARTBEAT),
                ..AMQPQueryString::default()
            },
        }))
    }
}

fn decoded(part: &str) -> Result<String, BadBroker> {
    let text = percent_decode_str(part).decode_utf8();
    Ok(text
        .map_err(|_| BadBroker("what is percent-encoded in it is no text"))?
        .into_owned())
}

impl fmt::Display for BrokerUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let AMQPUri {
            scheme,
            authority,
            vhost,
            ..
        } = &self.0;
        let vhost = vhost.trim_start_matches('/');
        write!(f, "{scheme}://{}:{}/{vhost}", authority.host, authority.port)
    }
}

impl fmt::Debug for BrokerUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BrokerUrl({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_of_a_broker_is_where_it_is() {
        for (text, shown) in [
            ("amqp://me:secret@rabbit", "amqp://rabbit:5672/"),
            ("amqp://me:secret@rabbit:1/", "amqp://rabbit:1/"),
            ("amqps://me:se%40cret@rabbit/%2F", "amqps://rabbit:5671/"),
            ("amqps://me:secret@[::1]/ironic", "amqps://::1:5671/ironic"),
        ] {
            let url = text.parse::<BrokerUrl>().unwrap();
            assert_eq!(url.to_string(), shown);
            assert_eq!(format!("{url:?}"), format!("BrokerUrl({shown})"));
        }
    }

    #[test]
    fn nothing_said_is_the_default_virtual_host() {
        for (text, vhost) in [
            ("amqp://h", "/"),
            ("amqp://h/", "/"),
            ("amqp://h/%2f", "/"),
            ("amqp://h/a%2fb", "a/b"),
        ] {
            assert_eq!(text.parse::<BrokerUrl>().unwrap().uri().vhost, vhost, "{text}");
        }
        let uri = "amqp://a%3Ab:p%20q@h".parse::<BrokerUrl>().unwrap().uri();
        let AMQPUserInfo { username, password } = uri.authority.userinfo;
        assert_eq!((username.as_str(), password.as_str()), ("a:b", "p q"));
    }

    #[test]
    fn what_is_no_broker_is_refused_without_being_repeated() {
        for text in [
            "",
            "rabbit:secret",
            "rabbit://me:secret@h/",
            "https://me:secret@h/",
            "amqp:///secret",
            "amqp://me:secret@h/?verify=no",
            "amqp://me:secret@h/%ff",
        ] {
            let error = text.parse::<BrokerUrl>().unwrap_err().to_string();
            assert!(!error.contains("secret"), "{text}: {error}");
        }
    }
}
