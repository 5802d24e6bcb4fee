//! Identifiers and names, validated once, at the edge.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// A resource provider's UUID.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ProviderUuid(pub Uuid);

/// A consumer's UUID; for Nova the instance's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ConsumerUuid(pub Uuid);

impl fmt::Display for ProviderUuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for ConsumerUuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for ConsumerUuid {
    type Err = uuid::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Self)
    }
}

/// A name that Placement would refuse: what it should have been, and the text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not {what}: 1 to 255 characters of A-Z, 0-9 and _")]
pub struct InvalidName {
    what: &'static str,
    text: String,
}

fn check(what: &'static str, text: String) -> Result<String, InvalidName> {
    let fits = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    if (1..=255).contains(&text.len()) && text.chars().all(fits) {
        Ok(text)
    } else {
        Err(InvalidName { what, text })
    }
}

/// A resource class in Placement's spelling, such as `CUSTOM_BAREMETAL_SMALL`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ResourceClass(String);

impl ResourceClass {
    /// Placement's name for the resource class of an Ironic node, by the same rule as Nova
    /// (`os_resource_classes.normalize_name`): every run of characters outside `0-9A-Za-z` becomes one `_`,
    /// then upper case, then `CUSTOM_` in front, whether or not it stands there already.
    ///
    /// ```
    /// use placement_client::ResourceClass;
    /// let class = ResourceClass::of_node_class("baremetal.gp2.small")?;
    /// assert_eq!(class.as_str(), "CUSTOM_BAREMETAL_GP2_SMALL");
    /// # Ok::<(), placement_client::InvalidName>(())
    /// ```
    pub fn of_node_class(class: &str) -> Result<Self, InvalidName> {
        let mut name = String::from("CUSTOM_");
        let mut in_run = false;
        for c in class.chars() {
            if c.is_ascii_alphanumeric() {
                name.push(c.to_ascii_uppercase());
            } else if !in_run {
                name.push('_');
            }
            in_run = !c.is_ascii_alphanumeric();
        }
        if class.is_empty() {
            return Err(InvalidName {
                what: "a node's resource class",
                text: String::new(),
            });
        }
        Self::try_from(name)
    }
}

/// A trait's name, such as `CUSTOM_IRONIC_NEEDS_CLEANING` or `COMPUTE_NODE`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TraitName(String);

impl TraitName {
    /// Whether the trait is one that operators and tools may create and delete.
    pub fn is_custom(&self) -> bool {
        self.0.starts_with("CUSTOM_")
    }
}

/// A consumer's type (API 1.38), such as `INSTANCE`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ConsumerType(String);

impl ConsumerType {
    /// What Nova's consumers are, whatever they read as.
    pub fn instance() -> Self {
        Self("INSTANCE".to_owned())
    }
}

macro_rules! checked_name {
    ($name:ident, $what:literal) => {
        impl $name {
            /// The name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl TryFrom<String> for $name {
            type Error = InvalidName;

            fn try_from(text: String) -> Result<Self, Self::Error> {
                check($what, text).map(Self)
            }
        }

        impl FromStr for $name {
            type Err = InvalidName;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                Self::try_from(text.to_owned())
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> Self {
                name.0
            }
        }
    };
}

checked_name!(ResourceClass, "a resource class");
checked_name!(TraitName, "a trait");
checked_name!(ConsumerType, "a consumer type");

#[cfg(test)]
mod tests {
    use super::*;

    /// The vectors of case C15, as Nova's own function answers them.
    #[test]
    fn node_classes_become_what_nova_makes_of_them() {
        for (ironic, placement) in [
            ("baremetal", "CUSTOM_BAREMETAL"),
            ("baremetal.gp2.small", "CUSTOM_BAREMETAL_GP2_SMALL"),
            ("bm--x..y", "CUSTOM_BM_X_Y"),
            ("CUSTOM_BAREMETAL", "CUSTOM_CUSTOM_BAREMETAL"),
            ("-a-", "CUSTOM__A_"),
            ("größe", "CUSTOM_GR_E"),
            ("ı", "CUSTOM__"),
        ] {
            assert_eq!(
                ResourceClass::of_node_class(ironic).unwrap().as_str(),
                placement,
                "{ironic}"
            );
        }
        assert!(ResourceClass::of_node_class("").is_err());
    }

    #[test]
    fn names_that_placement_refuses_are_refused_here() {
        for text in ["", "lower", "A-B", "Ä", &"A".repeat(256)] {
            assert!(text.parse::<TraitName>().is_err(), "{text}");
        }
        assert!("A".repeat(255).parse::<ResourceClass>().is_ok());
    }
}
