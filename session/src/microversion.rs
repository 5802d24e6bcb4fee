//! Microversions: the numbered dialects of Ironic's and Placement's API.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A microversion such as `1.39`. Ordered numerically: `1.9 < 1.39`.
///
/// ```
/// use unprovision_session::Microversion;
/// let version: Microversion = "1.39".parse()?;
/// assert!(version > Microversion::new(1, 9));
/// assert_eq!(version.to_string(), "1.39");
/// # Ok::<(), unprovision_session::ParseMicroversionError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Microversion {
    major: u16,
    minor: u16,
}

impl Microversion {
    /// The microversion `major.minor`.
    pub const fn new(major: u16, minor: u16) -> Self {
        Self { major, minor }
    }
}

impl fmt::Display for Microversion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// A text that is not a microversion; it holds the text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a microversion such as 1.39")]
pub struct ParseMicroversionError(String);

impl FromStr for Microversion {
    type Err = ParseMicroversionError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parse = || {
            let (major, minor) = text.trim().split_once('.')?;
            Some(Self::new(major.parse().ok()?, minor.parse().ok()?))
        };
        parse().ok_or_else(|| ParseMicroversionError(text.to_owned()))
    }
}

impl TryFrom<String> for Microversion {
    type Error = ParseMicroversionError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<Microversion> for String {
    fn from(version: Microversion) -> Self {
        version.to_string()
    }
}

/// The microversions that a server speaks, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VersionRange {
    /// The lowest.
    pub min: Microversion,
    /// The highest.
    pub max: Microversion,
}

impl VersionRange {
    /// The highest microversion that lies in both ranges: what two sides that speak `self` and
    /// `other` should use. `None` where they do not meet.
    ///
    /// ```
    /// use unprovision_session::{Microversion, VersionRange};
    /// let v = Microversion::new;
    /// let ours = VersionRange { min: v(1, 28), max: v(1, 39) };
    /// let old = VersionRange { min: v(1, 0), max: v(1, 30) };
    /// let ancient = VersionRange { min: v(1, 0), max: v(1, 25) };
    /// assert_eq!(ours.best_with(old), Some(v(1, 30)));
    /// assert_eq!(ours.best_with(ancient), None);
    /// ```
    pub fn best_with(self, other: Self) -> Option<Microversion> {
        let best = self.max.min(other.max);
        (best >= self.min && best >= other.min).then_some(best)
    }
}

impl fmt::Display for VersionRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} to {}", self.min, self.max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn garbage_is_refused_with_its_text() {
        for text in ["", "1", "1.", ".1", "1.x", "-1.2", "latest", "1.2.3"] {
            let error = text.parse::<Microversion>().unwrap_err();
            assert!(error.to_string().contains(text));
        }
    }
}
