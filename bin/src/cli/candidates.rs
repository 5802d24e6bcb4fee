//! `unprovision candidates`: what Placement offers now, and what Ironic says of it.

use std::collections::BTreeSet;
use std::process::ExitCode;

use anyhow::Context as _;
use placement_client::{CandidateQuery, ErrorKind, ResourceClass, TraitName};
use serde::Serialize;
use unprovision::cloud::{CloudError, Lookout, Offer};
use unprovision_session::{did_you_mean, nearest};

use super::Global;
use crate::failure::Usage;
use crate::output::{self, plain};
use crate::shape::Shape;

/// A node is offered although it is not free.
pub(super) const FALSE_OFFER: u8 = 3;

/// Options of `candidates`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLE)]
pub(crate) struct Args {
    /// One unit of this class; in Ironic's spelling, or in Placement's, which begins with CUSTOM_
    #[arg(long, value_name = "CLASS", value_parser = class)]
    resource_class: ResourceClass,
    #[command(flatten)]
    asked: Asked,
    /// At most so many
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    limit: Option<u32>,
    #[command(flatten)]
    shape: Shape,
}

/// What a request for candidates wants of a provider's traits.
#[derive(Clone, Debug, Default, clap::Args)]
pub(super) struct Asked {
    /// Only with this trait; may be given several times
    #[arg(long, value_name = "TRAIT")]
    pub(super) required: Vec<TraitName>,
    /// Only without this trait, as flavors do that forbid it; may be given several times
    #[arg(long, value_name = "TRAIT")]
    pub(super) forbidden: Vec<TraitName>,
}

impl Asked {
    pub(super) fn required(&self) -> BTreeSet<TraitName> {
        self.required.iter().cloned().collect()
    }

    pub(super) fn forbidden(&self) -> BTreeSet<TraitName> {
        self.forbidden.iter().cloned().collect()
    }
}

const EXAMPLE: &str = "\
Examples:
  unprovision candidates --resource-class baremetal
  unprovision candidates --resource-class baremetal -f value -c name -c reason

Nothing is changed. Exit status 3: one of them is offered although it is not free.";

/// The columns, which are the keys of the JSON.
const COLUMNS: [&str; 7] = [
    "node",
    "name",
    "provision_state",
    "maintenance",
    "instance",
    "free",
    "reason",
];

/// A candidate, and the node behind it.
#[derive(Debug, Serialize)]
struct Row {
    /// The provider, and the node.
    node: String,
    /// The node's name.
    name: Option<String>,
    /// The node's state; nothing where Ironic does not know it.
    provision_state: Option<String>,
    /// Whether the node is in maintenance.
    maintenance: Option<bool>,
    /// The instance that it carries.
    instance: Option<String>,
    /// Whether it is really free.
    free: bool,
    /// Why not.
    reason: Option<String>,
}

impl From<Offer> for Row {
    fn from(Offer { provider, node, look }: Offer) -> Self {
        let unknown = "Ironic does not know the node, or does not show it to these credentials";
        let reason = match (&node, &look.not_free) {
            (None, _) => Some(unknown.to_owned()),
            (_, why) => why.as_ref().map(ToString::to_string),
        };
        let node = node.as_ref();
        Self {
            node: provider.to_string(),
            name: node.and_then(|node| node.name.clone()),
            provision_state: node.map(|node| node.provision_state.to_string()),
            maintenance: node.map(|node| node.maintenance),
            instance: node
                .and_then(|node| node.instance_uuid)
                .map(|uuid| uuid.to_string()),
            free: look.is_free(),
            reason,
        }
    }
}

pub(super) async fn run(args: Args, global: Global) -> anyhow::Result<ExitCode> {
    args.shape.check(&COLUMNS)?;
    let loaded = global.load([])?;
    let lookout = global.lookout(&loaded).await?;
    let query = CandidateQuery {
        required: args.asked.required(),
        forbidden: args.asked.forbidden(),
        limit: args.limit,
        ..CandidateQuery::of(args.resource_class)
    };
    let offers = match lookout.offers(&query).await {
        Err(error) if is_unknown(&error) => return Err(unknown(&lookout, &query, &error).await),
        offers => offers,
    };
    let offers =
        offers.with_context(|| format!("the candidates of {} could not be read", query.resource_class))?;
    let rows = offers.into_iter().map(Row::from).collect::<Vec<_>>();
    let wrong = rows.iter().filter(|row| !row.free).count();
    args.shape
        .print(&rows, &COLUMNS, || table(&rows, &query.resource_class, wrong))?;
    Ok(ExitCode::from(if wrong > 0 { FALSE_OFFER } else { 0 }))
}

/// Whether Placement knows the class, or a trait, not at all.
fn is_unknown(error: &CloudError) -> bool {
    let cause = error
        .source
        .as_ref()
        .and_then(|cause| cause.downcast_ref::<placement_client::Error>());
    cause.is_some_and(|error| error.kind == ErrorKind::BadRequest)
}

/// What could have been asked for instead.
async fn unknown(lookout: &Lookout, query: &CandidateQuery, error: &CloudError) -> anyhow::Error {
    let class = &query.resource_class;
    // Only a hint: where it cannot be had, the error is told without.
    let known = lookout.classes().await.unwrap_or_default();
    if known.is_empty()
        || known
            .iter()
            .any(|name| ResourceClass::of_node_class(name).as_ref() == Ok(class))
    {
        return Usage(error.to_string()).into();
    }
    let asked = class.as_str().trim_start_matches("CUSTOM_").to_ascii_lowercase();
    let guess = did_you_mean(nearest(&asked, known.iter().map(String::as_str)));
    let known = known.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
    Usage(format!(
        "{error}\nno node of Ironic's has the class {class}{guess}; there are: {known}"
    ))
    .into()
}

fn table(rows: &[Row], class: &ResourceClass, wrong: usize) -> String {
    if rows.is_empty() {
        return format!("Placement offers nothing of {class} now");
    }
    let mut table = output::new_table(&["node", "uuid", "state", "maintenance", "instance", "free"]);
    let shown = |text: &Option<String>| text.as_deref().map_or_else(|| "-".to_owned(), plain);
    for row in rows {
        let maintenance = row.maintenance.map(|is| if is { "yes" } else { "no" }.to_owned());
        table.add_row([
            shown(&row.name),
            row.node.clone(),
            shown(&row.provision_state),
            shown(&maintenance),
            shown(&row.instance),
            row.reason
                .as_deref()
                .map_or_else(|| "yes".to_owned(), |why| format!("NO: {}", plain(why))),
        ]);
    }
    let verdict = match wrong {
        0 => "all of them are free".to_owned(),
        wrong => format!("{wrong} of them offered although not free"),
    };
    format!("{table}\nPlacement offers {} of {class}, {verdict}", rows.len())
}

/// A class in Placement's spelling or in Ironic's. What begins with CUSTOM_ is Placement's already.
fn class(text: &str) -> Result<ResourceClass, String> {
    let class = match text.starts_with("CUSTOM_") {
        true => text.parse(),
        false => ResourceClass::of_node_class(text),
    };
    class.map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_may_be_written_as_either_service_does() {
        for text in ["baremetal.small", "CUSTOM_BAREMETAL_SMALL"] {
            assert_eq!(class(text).unwrap().as_str(), "CUSTOM_BAREMETAL_SMALL");
        }
        for text in ["", "CUSTOM_baremetal"] {
            class(text).unwrap_err();
        }
    }
}
