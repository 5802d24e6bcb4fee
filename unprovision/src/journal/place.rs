//! Where a journal is, for people.

use unprovision_session::split_login;

#[cfg(any(feature = "mariadb", feature = "postgres"))]
/// The text between `://` and the path of a URL.
pub(super) fn authority(url: &str) -> &str {
    let rest = url.split_once("://").map_or("", |(_, rest)| rest);
    rest.split(['/', '?', '#']).next().unwrap_or_default()
}

/// Where a journal is, for messages and logs: the URL of a server without its password and parameters. A path stays as it is.
pub fn shown(place: &str) -> String {
    let Some((scheme, login, after)) = split_login(place) else {
        return place.to_owned();
    };
    let user = login.split([':', '/', '?', '#']).next().unwrap_or_default();
    let bare = after.split(['?', '#']).next().unwrap_or_default();
    match (user, bare) {
        ("", _) => format!("{scheme}://{bare}"),
        (_, "") => format!("{scheme}://{user}"),
        _ => format!("{scheme}://{user}@{bare}"),
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
            ("postgres://[::1]:5432/journal", "postgres://[::1]:5432/journal"),
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
