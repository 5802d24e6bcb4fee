//! The services that there are transports for, and where their paths begin.

use std::fmt;

use url::Url;

/// A service that a transport talks to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Service {
    /// The bare metal service. Its requests' paths begin with `/v1`.
    Ironic,
    /// The service of inventories and allocations.
    Placement,
    /// The service of servers. Its requests' paths begin with `/v2.1`.
    Nova,
}

impl Service {
    /// The name in messages and logs: `ironic`, `placement` or `nova`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ironic => "ironic",
            Self::Placement => "placement",
            Self::Nova => "nova",
        }
    }

    /// The official type in Keystone's catalog, with which the service's keys in `clouds.yaml` begin.
    pub const fn service_type(self) -> &'static str {
        match self {
            Self::Ironic => "baremetal",
            Self::Placement => "placement",
            Self::Nova => "compute",
        }
    }

    /// The one form of the many in which an endpoint is written: no slash at the end and, as the
    /// requests' paths have it already, no `/v1` of Ironic and no `/v2.1` of Nova, nor the project that may follow that one. A
    /// path before that is kept.
    ///
    /// # Errors
    /// Why it is no endpoint, in words that do not repeat it: it may hold a password.
    pub fn base(self, endpoint: &str) -> Result<Url, String> {
        let mut url = http_url(endpoint)?;
        let path = url.path().trim_end_matches('/');
        let path = match self {
            Self::Ironic => path.strip_suffix("/v1").unwrap_or(path).trim_end_matches('/'),
            Self::Placement => path,
            Self::Nova => before_version(path),
        };
        let path = path.to_owned();
        url.set_path(&path);
        Ok(url)
    }
}

impl fmt::Display for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What comes before the last segment that is a version of Nova's API.
fn before_version(path: &str) -> &str {
    let is_version = |segment: &str| matches!(segment, "v2" | "v2.0" | "v2.1");
    let mut ends = path.rmatch_indices('/').map(|(at, _)| at);
    let version = ends.find(|at| {
        let rest = &path[at + 1..];
        is_version(rest.split('/').next().unwrap_or_default())
    });
    path[..version.unwrap_or(path.len())].trim_end_matches('/')
}

/// An absolute `http` or `https` URL without query and fragment.
pub(super) fn http_url(text: &str) -> Result<Url, String> {
    // The text is not repeated where it may hold a password.
    let mut url = Url::parse(text.trim()).map_err(|error| format!("not a URL: {error}"))?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err("a URL must not contain a user name or password".to_owned());
    }
    if !matches!(url.scheme(), "http" | "https") {
        return Err(format!("`{}` is neither http nor https", url.scheme()));
    }
    url.set_query(None);
    url.set_fragment(None);
    Ok(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_forms_of_an_endpoint_have_one_base() {
        use Service::{Ironic, Nova, Placement};
        for (service, endpoint, base) in [
            (Ironic, "https://h", "https://h/"),
            (Ironic, "https://h/", "https://h/"),
            (Ironic, "https://h/v1", "https://h/"),
            (Ironic, "https://h/v1/", "https://h/"),
            (Ironic, "https://h//v1//", "https://h/"),
            (Ironic, "https://h:6385/v1?x=1#y", "https://h:6385/"),
            (Ironic, "https://h/baremetal", "https://h/baremetal"),
            (Ironic, "https://h/baremetal/", "https://h/baremetal"),
            (Ironic, "https://h/baremetal/v1", "https://h/baremetal"),
            (Ironic, "https://h/a/baremetal/v1/", "https://h/a/baremetal"),
            (Ironic, "https://h/cloudv1", "https://h/cloudv1"),
            (Ironic, " http://[::1]:6385 ", "http://[::1]:6385/"),
            (Placement, "http://h/placement/", "http://h/placement"),
            (Placement, "http://h/v1", "http://h/v1"),
            (Nova, "http://h:8774", "http://h:8774/"),
            (Nova, "http://h:8774/v2.1/", "http://h:8774/"),
            (Nova, "http://h:8774/v2.1/3d2f6a1b5c7e4f9a", "http://h:8774/"),
            (Nova, "http://h:8774/v2/%(tenant_id)s", "http://h:8774/"),
            (Nova, "https://h/compute", "https://h/compute"),
            (Nova, "https://h/compute/v2.1", "https://h/compute"),
            (Nova, "https://h/v2/compute/v2.1/p/", "https://h/v2/compute"),
        ] {
            assert_eq!(service.base(endpoint).unwrap().as_str(), base, "{endpoint}");
        }
    }

    #[test]
    fn what_is_no_endpoint_is_refused_without_repeating_it() {
        for text in [
            "",
            "h",
            "/v1",
            "ftp://h",
            "//h/v1",
            "https://u:s3cr3t@h",
            "https://s3cr3t@h",
            "s3cr3t",
        ] {
            let problem = Service::Ironic.base(text).unwrap_err();
            assert!(!problem.contains("s3cr3t"), "{problem}");
        }
    }
}
