//! The header `Retry-After`.

use std::time::Duration;

use http::HeaderMap;
use http::header::{DATE, HeaderName, RETRY_AFTER};
use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimeParser;

/// How long a server asks to be left alone, in either form of `Retry-After`. A date is measured against
/// the answer's own `Date`, so that clocks that differ do not matter.
///
/// ```
/// use http::{HeaderMap, HeaderValue, header::RETRY_AFTER};
/// let headers = HeaderMap::from_iter([(RETRY_AFTER, HeaderValue::from_static("7"))]);
/// assert_eq!(unprovision_session::retry_after(&headers), Some(std::time::Duration::from_secs(7)));
/// ```
pub fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let until = date(text)?;
    let now = date_of(headers, DATE)?;
    // One that has passed already asks for no wait.
    Some(Duration::try_from(until.duration_since(now)).unwrap_or_default())
}

fn date_of(headers: &HeaderMap, name: HeaderName) -> Option<Timestamp> {
    date(headers.get(name)?.to_str().ok()?)
}

fn date(text: &str) -> Option<Timestamp> {
    DateTimeParser::new().parse_timestamp(text).ok()
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn both_forms_are_read_and_nonsense_is_nothing() {
        const NOW: &str = "Mon, 30 Nov 2026 03:27:59 GMT";
        for (value, now, seconds) in [
            ("0", None, Some(0)),
            (" 12 ", None, Some(12)),
            ("Mon, 30 Nov 2026 03:28:29 GMT", Some(NOW), Some(30)),
            ("Mon, 30 Nov 2026 03:27:00 GMT", Some(NOW), Some(0)),
            ("Mon, 30 Nov 2026 03:28:29 GMT", None, None),
            ("-1", Some(NOW), None),
            ("1.5", Some(NOW), None),
            ("soon", Some(NOW), None),
        ] {
            let mut headers = HeaderMap::from_iter([(RETRY_AFTER, HeaderValue::from_static(value))]);
            headers.extend(now.map(|now| (DATE, HeaderValue::from_static(now))));
            assert_eq!(retry_after(&headers), seconds.map(Duration::from_secs), "{value}");
        }
        assert_eq!(retry_after(&HeaderMap::new()), None);
    }
}
