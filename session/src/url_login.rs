//! Who logs in by a URL, for whoever shows it: the password has to be found before it can be left out.

/// A URL in three parts: its scheme, the login (with its password, without the `@`), and what comes after that. `None` for a text
/// that is no URL.
///
/// A password that nobody has encoded may have any character in it. So outside of HTTP, where an `@` means nothing else, all up to
/// the last one is a login; and what follows a colon and is no port is a password whose `@` was forgotten.
///
/// ```
/// use unprovision_session::split_login;
///
/// assert_eq!(split_login("mysql://me:se/cr@t@db/journal"), Some(("mysql", "me:se/cr@t", "db/journal")));
/// assert_eq!(split_login("https://host:443/a@b"), Some(("https", "", "host:443/a@b")));
/// ```
pub fn split_login(url: &str) -> Option<(&str, &str, &str)> {
    let (scheme, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let is_cut_off = !authority.starts_with('[')
        && authority
            .split_once(':')
            .is_some_and(|(_, port)| !port.is_empty() && port.parse::<u16>().is_err());
    let at = match authority.rfind('@').filter(|_| scheme.starts_with("http")) {
        Some(at) => Some(at),
        None => rest
            .rfind('@')
            .filter(|_| is_cut_off || !scheme.starts_with("http")),
    };
    Some(match at {
        Some(at) => (scheme, &rest[..at], &rest[at + 1..]),
        None if is_cut_off => (scheme, rest, ""),
        None => (scheme, "", rest),
    })
}

#[cfg(test)]
mod tests {
    use super::split_login;

    #[test]
    fn the_login_is_found_whatever_is_in_its_password() {
        for (url, login, after) in [
            ("https://user:secret@host/a", "user:secret", "host/a"),
            ("https://user:se@cret@host:1/@", "user:se@cret", "host:1/@"),
            ("https://user:se/cret@host", "user:se/cret", "host"),
            ("https://host/a@b", "", "host/a@b"),
            ("https://[::1]:5000/v3", "", "[::1]:5000/v3"),
            ("postgres://[::1]:5432/journal", "", "[::1]:5432/journal"),
            ("postgres://me@[::1]/journal", "me", "[::1]/journal"),
            ("mysql://me:1/2@db/journal", "me:1/2", "db/journal"),
            ("mysql://me:s@c/r@db/journal", "me:s@c/r", "db/journal"),
            ("mysql://me:se#cret", "me:se#cret", ""),
            ("mysql://db:/journal", "", "db:/journal"),
        ] {
            let (_, found, rest) = split_login(url).unwrap_or_default();
            assert_eq!((found, rest), (login, after), "{url}");
        }
        assert_eq!(split_login("/var/lib/journal.sqlite"), None);
    }
}
