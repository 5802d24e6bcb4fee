//! Durations as people write them: `90s`, `20m`, `2h`, `3d`, `1h 30m`.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use jiff::{SignedDuration, Span, SpanRelativeTo};
use serde::{Deserialize, Serialize};

/// The longest that makes sense.
const LONGEST: Duration = Duration::from_secs(10 * 365 * 86_400);

/// A duration as people write it: above zero, with a unit. A day has 24 hours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) struct HumanDuration(Duration);

impl HumanDuration {
    pub(crate) const fn from_secs(secs: u64) -> Self {
        Self(Duration::from_secs(secs))
    }

    pub(crate) const fn from_millis(millis: u64) -> Self {
        Self(Duration::from_millis(millis))
    }

    /// The duration as others take it.
    pub(crate) fn get(self) -> Duration {
        self.0
    }

    /// The duration as jiff takes it.
    pub(crate) fn signed(self) -> SignedDuration {
        SignedDuration::try_from(self.0).unwrap_or(SignedDuration::MAX)
    }
}

impl FromStr for HumanDuration {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong =
            || format!("`{text}` is not a duration; write it with a unit, such as 90s, 20m, 2h or 3d");
        let span: Span = text.trim().parse().map_err(|_| wrong())?;
        let signed = span
            .to_duration(SpanRelativeTo::days_are_24_hours())
            .map_err(|_| wrong())?;
        match Duration::try_from(signed) {
            Ok(duration) if duration.is_zero() => Err(format!("`{text}` is no time at all")),
            Ok(duration) if duration <= LONGEST => Ok(Self(duration)),
            Ok(_) => Err(format!("`{text}` is too long")),
            Err(_) => Err(wrong()),
        }
    }
}

impl fmt::Display for HumanDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let secs = self.0.as_secs();
        if self.0.subsec_nanos() > 0 {
            return write!(f, "{:#}", self.signed());
        }
        match (secs % 3600, secs % 60) {
            (0, _) => write!(f, "{}h", secs / 3600),
            (_, 0) => write!(f, "{}m", secs / 60),
            _ => write!(f, "{secs}s"),
        }
    }
}

impl TryFrom<String> for HumanDuration {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<HumanDuration> for String {
    fn from(duration: HumanDuration) -> Self {
        duration.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_write_durations_in_many_ways() {
        for (text, millis, shown) in [
            ("90s", 90_000, "90s"),
            ("20m", 1_200_000, "20m"),
            ("2h", 7_200_000, "2h"),
            ("3d", 259_200_000, "72h"),
            ("1h 30m", 5_400_000, "90m"),
            ("1h30m", 5_400_000, "90m"),
            ("2 hours", 7_200_000, "2h"),
            ("1 week", 604_800_000, "168h"),
            ("PT90S", 90_000, "90s"),
            ("100ms", 100, "100ms"),
            (" 1.5s ", 1_500, "1s 500ms"),
        ] {
            let duration: HumanDuration = text.parse().unwrap();
            assert_eq!(duration.get(), Duration::from_millis(millis), "{text}");
            assert_eq!(duration.to_string(), shown);
            assert_eq!(duration.to_string().parse(), Ok(duration));
        }
    }

    #[test]
    fn what_is_no_duration_is_refused_with_an_example() {
        for text in ["", "90", "soon", "-5s", "5s ago", "1 month", "20 fortnights"] {
            assert!(
                text.parse::<HumanDuration>().unwrap_err().contains("90s"),
                "{text}"
            );
        }
        assert!("0s".parse::<HumanDuration>().unwrap_err().contains("no time"));
        assert!("99999999h".parse::<HumanDuration>().is_err());
    }
}
