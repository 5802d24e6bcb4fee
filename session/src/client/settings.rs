//! Flat settings of one cloud, and how one layer of them (environment, file, ...) covers another.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::ConfigError;

/// All keys that mean something here, in their canonical spelling.
const KEYS: &[&str] = &[
    "application_credential_id",
    "application_credential_name",
    "application_credential_secret",
    "auth_type",
    "auth_url",
    "baremetal_endpoint_override",
    "baremetal_interface",
    "baremetal_region_name",
    "cacert",
    "cert",
    "compute_endpoint_override",
    "compute_interface",
    "compute_region_name",
    "default_domain_id",
    "default_domain_name",
    "domain_id",
    "domain_name",
    "endpoint",
    "insecure",
    "interface",
    "key",
    "password",
    "placement_endpoint_override",
    "placement_interface",
    "placement_region_name",
    "project_domain_id",
    "project_domain_name",
    "project_id",
    "project_name",
    "region_name",
    "system_scope",
    "token",
    "trust_id",
    "user_domain_id",
    "user_domain_name",
    "user_id",
    "username",
    "verify",
];

/// Other spellings that OpenStack's tools accept.
const ALIASES: &[(&str, &str)] = &[
    ("auth_token", "token"),
    ("bare_metal_endpoint", "baremetal_endpoint_override"),
    ("bare_metal_endpoint_override", "baremetal_endpoint_override"),
    ("bare_metal_interface", "baremetal_interface"),
    ("bare_metal_region_name", "baremetal_region_name"),
    ("baremetal_endpoint", "baremetal_endpoint_override"),
    ("compute_endpoint", "compute_endpoint_override"),
    ("default_domain", "default_domain_id"),
    ("endpoint_type", "interface"),
    ("placement_endpoint", "placement_endpoint_override"),
    ("tenant_id", "project_id"),
    ("tenant_name", "project_name"),
    ("user_name", "username"),
];

/// Keys that say the same thing in different ways. A layer that has one of them hides all of them in
/// the layers below: `OS_PROJECT_NAME` must not lose against a `project_id` in a file.
const RIVALS: &[&[&str]] = &[
    &["application_credential_id", "application_credential_name"],
    &["default_domain_id", "default_domain_name"],
    &["domain_id", "domain_name"],
    &["insecure", "verify"],
    &["project_domain_id", "project_domain_name"],
    &["project_id", "project_name", "system_scope", "trust_id"],
    &["user_domain_id", "user_domain_name"],
    &["user_id", "username"],
];

/// Keys whose values are paths: relative to the file that has them.
const PATHS: &[&str] = &["cacert", "cert", "key"];

/// The canonical spelling of a key, where it means something here.
pub(super) fn canonical(key: &str) -> Option<&'static str> {
    let key = key.to_ascii_lowercase().replace('-', "_");
    let target = ALIASES
        .iter()
        .find(|(alias, _)| *alias == key)
        .map_or(key.as_str(), |(_, target)| target);
    KEYS.iter().find(|known| **known == target).copied()
}

/// A value and where it came from, for messages.
#[derive(Clone)]
struct Setting {
    text: String,
    from: Arc<str>,
}

/// One layer. Values may be secret: there is no `Debug` on purpose.
#[derive(Clone, Default)]
pub(super) struct Settings(BTreeMap<&'static str, Setting>);

impl Settings {
    /// The layer of the `OS_*` variables. Empty ones count as unset, as in OpenStack's tools.
    pub(super) fn from_environment(lookup: &dyn Fn(&str) -> Option<String>) -> Self {
        let spellings = ALIASES.iter().map(|(alias, key)| (*alias, *key));
        let mut settings = Self::default();
        // The canonical spelling comes last, and so wins.
        for (spelling, key) in spellings.chain(KEYS.iter().map(|key| (*key, *key))) {
            let variable = format!("OS_{}", spelling.to_ascii_uppercase());
            if let Some(text) = lookup(&variable) {
                settings.insert(key, text, &Arc::from(variable));
            }
        }
        settings
    }

    /// The layer of what the caller itself demands.
    pub(super) fn explicit(pairs: Vec<(String, String)>) -> Result<Self, ConfigError> {
        let mut settings = Self::default();
        for (name, text) in pairs {
            let Some(key) = canonical(&name) else {
                let nearest = super::nearest(&name, KEYS.iter().copied()).map(str::to_owned);
                return Err(ConfigError::UnknownKey { key: name, nearest });
            };
            settings.insert(key, text, &Arc::from("given explicitly"));
        }
        Ok(settings)
    }

    /// Sets a key; an empty text sets nothing.
    pub(super) fn insert(&mut self, key: &'static str, text: String, from: &Arc<str>) {
        if !text.is_empty() {
            self.0.insert(
                key,
                Setting {
                    text,
                    from: Arc::clone(from),
                },
            );
        }
    }

    /// Puts this layer over a lower one.
    #[must_use]
    pub(super) fn over(self, lower: Self) -> Self {
        let mut merged = lower;
        for rivals in RIVALS {
            if rivals.iter().any(|key| self.0.contains_key(key)) {
                merged.0.retain(|key, _| !rivals.contains(key));
            }
        }
        merged.0.extend(self.0);
        merged
    }

    /// Makes paths relative to the folder of the file that they were read from; `~/` is the home.
    pub(super) fn anchor_paths(&mut self, folder: &Path, home: Option<&str>) {
        for key in PATHS {
            if let Some(setting) = self.0.get_mut(key) {
                let path = match (setting.text.strip_prefix("~/"), home) {
                    (Some(rest), Some(home)) => PathBuf::from(home).join(rest),
                    _ => folder.join(&setting.text),
                };
                setting.text = path.to_string_lossy().into_owned();
            }
        }
    }

    /// The value of a key.
    pub(super) fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(|setting| setting.text.as_str())
    }

    /// Where a key's value came from.
    pub(super) fn from(&self, key: &str) -> &str {
        self.0.get(key).map_or("nowhere", |setting| &setting.from)
    }

    /// Whether these settings by themselves mean a cloud.
    pub(super) fn mean_a_cloud(&self) -> bool {
        self.0.contains_key("auth_url") || self.0.contains_key("auth_type")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_alias_leads_to_a_key_and_every_rival_is_one() {
        for (alias, target) in ALIASES {
            assert_eq!(canonical(alias), Some(*target));
        }
        for key in RIVALS.iter().copied().flatten().chain(PATHS) {
            assert_eq!(canonical(key), Some(*key));
        }
        assert_eq!(canonical("Project-Name"), Some("project_name"));
        assert_eq!(canonical("networks"), None);
    }

    #[test]
    fn keys_are_sorted_and_unique() {
        assert!(KEYS.is_sorted_by(|a, b| a < b));
    }
}
