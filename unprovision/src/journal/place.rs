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
    // A password that nobody has encoded may have any character in it: so all up to the last `@` is a login.
    match rest.rsplit_once('@') {
        Some((login, host)) => {
            let user = login.split([':', '/', '?', '#']).next().unwrap_or_default();
            format!("{scheme}://{user}@{}", bare(host))
        }
        None => format!("{scheme}://{}", bare(unfinished(rest))),
    }
}

/// Without parameters.
fn bare(rest: &str) -> &str {
    rest.split(['?', '#']).next().unwrap_or_default()
}

/// What follows a colon and is no port may be a password whose `@` was forgotten.
fn unfinished(rest: &str) -> &str {
    match rest.split_once(':') {
        Some((before, after)) if !after.starts_with(|c: char| c.is_ascii_digit()) => before,
        _ => rest,
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
                "mysql://me:se/cr#e?t@db:3306/journal",
                "mysql://me@db:3306/journal",
            ),
            ("mysql://me:secret", "mysql://me"),
            (
                "postgresql://db:5432/journal?password=secret",
                "postgresql://db:5432/journal",
            ),
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
