//! Who we are to Keystone, as it says at the login.

use std::collections::BTreeSet;
use std::fmt;

use serde::Deserialize;
use serde_json::Value;

/// What a token is good for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TokenScope {
    /// The whole system.
    System,
    /// The project of this name.
    Project(String),
    /// The domain of this name.
    Domain(String),
    /// Nothing: a login without a scope.
    Nothing,
}

impl fmt::Display for TokenScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::System => f.write_str("the system"),
            Self::Project(name) => write!(f, "the project {name}"),
            Self::Domain(name) => write!(f, "the domain {name}"),
            Self::Nothing => f.write_str("no scope"),
        }
    }
}

/// Who somebody is to Keystone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// The user's name.
    pub user: String,
    /// What the token is good for.
    pub scope: TokenScope,
    /// The roles that the user has there.
    pub roles: BTreeSet<String>,
}

/// The part of Keystone's answer that tells it.
#[derive(Debug, Deserialize)]
pub(super) struct Said {
    user: Option<Named>,
    project: Option<Named>,
    domain: Option<Named>,
    system: Option<Value>,
    roles: Option<Vec<Named>>,
}

#[derive(Debug, Deserialize)]
struct Named {
    name: Option<String>,
    id: Option<String>,
}

impl Named {
    fn shown(self) -> String {
        self.name.or(self.id).unwrap_or_default()
    }
}

impl From<Said> for Standing {
    fn from(said: Said) -> Self {
        let scope = match (said.system, said.project, said.domain) {
            (Some(_), ..) => TokenScope::System,
            (None, Some(project), _) => TokenScope::Project(project.shown()),
            (None, None, Some(domain)) => TokenScope::Domain(domain.shown()),
            (None, None, None) => TokenScope::Nothing,
        };
        Self {
            user: said.user.map(Named::shown).unwrap_or_default(),
            scope,
            roles: said
                .roles
                .unwrap_or_default()
                .into_iter()
                .map(Named::shown)
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_scope_is_one_of_four() {
        let scope = |text: Value| Standing::from(serde_json::from_value::<Said>(text).unwrap()).scope;
        assert_eq!(scope(json!({"system": {"all": true}})), TokenScope::System);
        let project = json!({"project": {"name": "admin", "domain": {"name": "Default"}}, "roles": null});
        assert_eq!(scope(project), TokenScope::Project("admin".into()));
        assert_eq!(
            scope(json!({"domain": {"id": "d"}, "system": null})),
            TokenScope::Domain("d".into())
        );
        assert_eq!(scope(json!({"user": {}})), TokenScope::Nothing);
    }
}
