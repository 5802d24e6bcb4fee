//! Where a journal is, for people.

/// The text between `://` and the path of a URL.
pub(super) fn authority(url: &str) -> &str {
    let rest = url.split_once("://").map_or("", |(_, rest)| rest);
    rest.split(['/', '?', '#']).next().unwrap_or_default()
}

/// Where a journal is, for messages and logs: the URL of a server without its password and parameters. A path stays as it is.
pub fn shown(place: &str) -> String {
    let Some((scheme, rest)) = place.split_once("://") else {
        return place.to_owned();
    };
    let authority = authority(place);
    let path = rest[authority.len()..]
        .split(['?', '#'])
        .next()
        .unwrap_or_default();
    match authority.rsplit_once('@') {
        Some((login, host)) => {
            let user = login.split(':').next().unwrap_or_default();
            format!("{scheme}://{user}@{host}{path}")
        }
        None => format!("{scheme}://{authority}{path}"),
    }
}

#[cfg(test)]
mod tests {
    use super::shown;

    #[test]
    fn a_server_is_shown_without_password_and_parameters() {
        for (place, expected) in [
            (
                "mysql://me:se@cret@db.example.org:3306/journal?ssl-ca=/x",
                "mysql://me@db.example.org:3306/journal",
            ),
            ("postgres://db/journal", "postgres://db/journal"),
            ("postgres://me@/journal?host=/run/pg", "postgres://me@/journal"),
            ("postgres://me:secret@db", "postgres://me@db"),
            (
                "/var/lib/unprovision/journal.sqlite",
                "/var/lib/unprovision/journal.sqlite",
            ),
            ("memory:", "memory:"),
        ] {
            assert_eq!(shown(place), expected);
        }
    }
}
