//! Which nodes the guard is about, and how it treats them: the first scope that fits a node counts.

use std::collections::BTreeSet;

use ironic_client::{Node, NodeField};

use crate::strategy;

/// What the nodes of a scope have in common. All conditions must be met, each by one of its values; an empty value stands for
/// nodes that have none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selector {
    /// Conductor groups, whose case does not matter; the empty one is Ironic's default group.
    pub conductor_groups: Option<Vec<String>>,
    /// Shards.
    pub shards: Option<Vec<String>>,
    /// Resource classes, in Ironic's spelling.
    pub resource_classes: Option<Vec<String>>,
    /// Owners, which are projects.
    pub owners: Option<Vec<String>>,
    /// Globs of the whole name: `*` is any text, `?` one character.
    pub names: Option<Vec<String>>,
}

/// How the nodes of a scope are guarded.
#[derive(Clone, Debug, PartialEq)]
pub struct Care {
    /// The strategy's name.
    pub strategy: String,
    /// Whether to lift the reservation that Nova leaves on a free node until its next pass.
    pub release_nova_reservations: bool,
    /// The share of a resource class of this scope that may be held, before all writes stop (rule 14).
    pub max_held_share: f64,
    /// So many of a class of this scope may always be held.
    pub max_held_floor: usize,
}

/// Nodes that are treated alike.
#[derive(Clone, Debug, PartialEq)]
pub struct Scope {
    /// What it is called in messages.
    pub name: String,
    /// Its nodes.
    pub nodes: Selector,
    /// How they are guarded; `None`: what does not fit is told, and nothing is written.
    pub care: Option<Care>,
}

/// All scopes, in their order. Without any, the whole cloud is one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scopes(Vec<Scope>);

/// Scopes that cannot be meant so.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("scope `{scope}`: {problem}")]
pub struct ScopeError {
    /// The scope's name.
    pub scope: String,
    /// What is wrong with it.
    pub problem: String,
}

/// A condition: where a node has it, and how values are compared.
struct Condition {
    key: &'static str,
    field: NodeField,
    of: fn(&Selector) -> Option<&Vec<String>>,
    has: fn(&Node) -> Option<&String>,
    fits: fn(&str, &str) -> bool,
}

/// As the configuration calls them.
const CONDITIONS: [Condition; 5] = [
    Condition {
        key: "conductor_group",
        field: NodeField::ConductorGroup,
        of: |selector| selector.conductor_groups.as_ref(),
        has: |node| node.conductor_group.as_ref(),
        fits: str::eq_ignore_ascii_case,
    },
    Condition {
        key: "shard",
        field: NodeField::Shard,
        of: |selector| selector.shards.as_ref(),
        has: |node| node.shard.as_ref(),
        fits: same,
    },
    Condition {
        key: "resource_class",
        field: NodeField::ResourceClass,
        of: |selector| selector.resource_classes.as_ref(),
        has: |node| node.resource_class.as_ref(),
        fits: same,
    },
    Condition {
        key: "owner",
        field: NodeField::Owner,
        of: |selector| selector.owners.as_ref(),
        has: |node| node.owner.as_ref(),
        fits: same,
    },
    Condition {
        key: "names",
        field: NodeField::Name,
        of: |selector| selector.names.as_ref(),
        has: |node| node.name.as_ref(),
        fits: glob,
    },
];

impl Selector {
    /// Whether the node is one of these.
    pub fn fits(&self, node: &Node) -> bool {
        CONDITIONS.iter().all(|condition| {
            let has = (condition.has)(node).map_or("", String::as_str);
            (condition.of)(self).is_none_or(|values| values.iter().any(|value| (condition.fits)(value, has)))
        })
    }

    /// Whether every node that fits the other one fits this one too, as far as the texts tell.
    fn covers(&self, other: &Self) -> bool {
        CONDITIONS
            .iter()
            .all(|condition| match ((condition.of)(self), (condition.of)(other)) {
                (None, _) => true,
                (Some(mine), None) => {
                    condition.field == NodeField::Name && mine.iter().any(|glob| glob == "*")
                }
                (Some(mine), Some(theirs)) => theirs
                    .iter()
                    .all(|value| mine.iter().any(|mine| (condition.fits)(mine, value))),
            })
    }

    fn check(&self) -> Result<(), String> {
        let mut any = false;
        for condition in &CONDITIONS {
            let Some(values) = (condition.of)(self) else {
                continue;
            };
            if values.is_empty() {
                return Err(format!("`{}` is an empty list, so no node fits", condition.key));
            }
            any = true;
        }
        let odd = |c: char| !(c.is_ascii_alphanumeric() || "-._~*?".contains(c));
        if let Some(glob) = self.names.iter().flatten().find(|glob| glob.contains(odd)) {
            return Err(format!(
                "no node is called like `{glob}`; `names` takes globs, in which `*` is any text and `?` one character"
            ));
        }
        match any {
            true => Ok(()),
            false => Err(format!(
                "it does not say which nodes: set one of {}; `names = [\"*\"]` takes all",
                CONDITIONS.map(|condition| condition.key).join(", ")
            )),
        }
    }
}

impl Scopes {
    /// These scopes, first things first.
    ///
    /// # Errors
    ///
    /// Where one has no name or that of another, says nothing of its nodes, can never be reached, or has a strategy that does
    /// not guard.
    pub fn new(scopes: Vec<Scope>) -> Result<Self, ScopeError> {
        for (index, scope) in scopes.iter().enumerate() {
            scope.check(&scopes[..index]).map_err(|problem| ScopeError {
                scope: scope.name.clone(),
                problem,
            })?;
        }
        Ok(Self(scopes))
    }

    /// Whether there are none: the whole cloud is meant.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Scope> {
        self.0.iter()
    }

    /// The node's place in the list, and its scope; `None` where it is outside of all.
    pub fn of(&self, node: &Node) -> Option<(usize, &Scope)> {
        self.0
            .iter()
            .enumerate()
            .find(|(_, scope)| scope.nodes.fits(node))
    }

    /// The scope of this name.
    pub fn named(&self, name: &str) -> Option<&Scope> {
        self.0.iter().find(|scope| scope.name == name)
    }

    /// What of a node tells its scope.
    pub fn reads(&self) -> BTreeSet<NodeField> {
        let used = |condition: &&Condition| self.0.iter().any(|scope| (condition.of)(&scope.nodes).is_some());
        CONDITIONS
            .iter()
            .filter(used)
            .map(|condition| condition.field)
            .collect()
    }
}

impl Scope {
    fn check(&self, before: &[Self]) -> Result<(), String> {
        if self.name.is_empty() {
            return Err("each scope needs a `name`".to_owned());
        }
        if before.iter().any(|other| other.name == self.name) {
            return Err("there are two of this name".to_owned());
        }
        self.nodes.check()?;
        if let Some(other) = before.iter().find(|other| other.nodes.covers(&self.nodes)) {
            return Err(format!(
                "it can never be reached, since `{}` before it takes all of its nodes",
                other.name
            ));
        }
        let Some(care) = &self.care else { return Ok(()) };
        let strategy = strategy::by_name(&care.strategy)
            .ok_or_else(|| format!("there is no strategy `{}`", care.strategy))?;
        strategy.guards().map_err(str::to_owned)
    }
}

fn same(wanted: &str, has: &str) -> bool {
    wanted == has
}

/// Whether the whole text is like the glob. For another glob as the text it tells whether that one's texts all are: what a star
/// stands for is only taken by a star.
fn glob(glob: &str, text: &str) -> bool {
    let (glob, text) = (glob.as_bytes(), text.as_bytes());
    let (mut g, mut t) = (0, 0);
    let mut star = None;
    loop {
        match (glob.get(g), text.get(t)) {
            (Some(b'*'), _) => {
                star = Some((g, t));
                g += 1;
            }
            (Some(b'?'), Some(c)) if *c != b'*' => (g, t) = (g + 1, t + 1),
            (Some(a), Some(c)) if a == c && *c != b'*' => (g, t) = (g + 1, t + 1),
            (None, None) => return true,
            // What was tried after the last star does not fit: the star takes one more.
            _ => match star {
                Some((at, taken)) if taken < text.len() => {
                    star = Some((at, taken + 1));
                    (g, t) = (at + 1, taken + 1);
                }
                _ => return false,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::glob;

    #[test]
    fn globs_are_of_the_whole_name() {
        for (pattern, fits, others) in [
            ("*", &["", "a", "node-1"][..], &[][..]),
            ("", &[""], &["a"]),
            ("node-?", &["node-1"], &["node-", "node-12", "xnode-1"]),
            (
                "rack1-*-gpu",
                &["rack1-a-gpu", "rack1--gpu", "rack1-gpu-gpu"],
                &["rack1-gpu", "rack1-a-gpu2"],
            ),
            ("*a*b", &["ab", "xaxb", "aab", "abab"], &["ba", "abc"]),
            ("a", &["a"], &["A", "aa"]),
        ] {
            for text in fits {
                assert!(glob(pattern, text), "{pattern} {text}");
            }
            for text in others {
                assert!(!glob(pattern, text), "{pattern} {text}");
            }
        }
    }

    #[test]
    fn a_glob_covers_another_only_if_all_its_names_fit() {
        for (wide, narrow, covers) in [
            ("*", "a*", true),
            ("a*", "ab*", true),
            ("a*", "a?c", true),
            ("a?", "a*", false),
            ("a?", "a?", true),
            ("a*c", "a*", false),
            ("ab*", "a*", false),
            ("a*", "*", false),
            ("a*b", "a*b", true),
            ("*b*", "a*b", true),
        ] {
            assert_eq!(glob(wide, narrow), covers, "{wide} {narrow}");
        }
    }
}
