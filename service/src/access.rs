//! Who may: everybody on this machine may read, whoever is trusted may also write.

use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderValue, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::HeaderMap;

use crate::problem::Problem;

/// Who is let in, and for what.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// Whoever reaches a loopback address may also stop the guard and let it go on.
    pub trust_local: bool,
}

/// Who asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Caller {
    /// How the log and the journal name them.
    pub(crate) name: String,
    may_write: bool,
}

impl Caller {
    /// Refuses whoever may only read.
    pub(crate) fn must_write(&self) -> Result<(), Problem> {
        match self.may_write {
            true => Ok(()),
            false => Err(
                Problem::forbidden("without a login this interface only reads, and takes hints").next(
                    "set `trust_local = true` in the section [api] if everybody on this machine may do that",
                ),
            ),
        }
    }
}

/// Names the caller, or refuses them.
///
/// A page of somebody else's, in the browser of somebody on this machine, reaches loopback addresses too: by a name of its own that
/// it lets point here. So the name that was asked for must be one of this machine's.
pub(crate) async fn check(State(access): State<Arc<Access>>, mut request: Request, next: Next) -> Response {
    if !is_here(request.headers()) {
        return Problem::forbidden("the header Host does not name this machine")
            .next("use http://127.0.0.1, http://[::1] or http://localhost, with the port")
            .into_response();
    }
    request.extensions_mut().insert(Caller {
        name: "somebody on this machine".to_owned(),
        may_write: access.trust_local,
    });
    next.run(request).await
}

fn is_here(headers: &HeaderMap) -> bool {
    let host = headers.get(header::HOST).map(HeaderValue::to_str);
    let Some(Ok(host)) = host else { return false };
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    let is_loopback = |name: &str| name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
    name.eq_ignore_ascii_case("localhost") || is_loopback(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_this_machine_are_answered() {
        let cases = [
            ("127.0.0.1:8784", true),
            ("127.3.2.1", true),
            ("localhost:8784", true),
            ("LOCALHOST", true),
            ("[::1]:8784", true),
            ("evil.example.org", false),
            ("evil.example.org:8784", false),
            ("127.0.0.1.evil.example.org", false),
            ("10.0.0.1", false),
            ("", false),
        ];
        for (host, expected) in cases {
            let headers = HeaderMap::from_iter([(header::HOST, HeaderValue::from_static(host))]);
            assert_eq!(is_here(&headers), expected, "{host}");
        }
        assert!(!is_here(&HeaderMap::new()));
    }
}
