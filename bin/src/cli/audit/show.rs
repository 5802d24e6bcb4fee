//! How findings are shown.

use std::collections::BTreeMap;

use unprovision::audit::{Finding, FindingKind};
use unprovision::cloud::{LOOKS, Survey};

use super::Row;
use crate::output::{self, plain};

/// The columns, which are the keys of the JSON.
pub(super) const COLUMNS: [&str; 20] = [
    "kind",
    "node",
    "name",
    "provision_state",
    "maintenance",
    "instance",
    "resource_class",
    "total",
    "reserved",
    "used",
    "consumers",
    "traits",
    "tag",
    "age_s",
    "what",
    "why",
    "advice",
    "commands",
    "remedy",
    "repair",
];

/// A line for each finding; what cannot be shown in a column stands below, with what to do.
pub(super) fn table(survey: &Survey, rows: &[Row<'_>], deep: bool) -> String {
    let summary = summary(survey, deep);
    if survey.findings.is_empty() {
        return summary;
    }
    let mut table = output::new_table(&[
        "kind",
        "node",
        "state",
        "maint.",
        "instance",
        "res/used/total",
        "age",
    ]);
    let mut below = String::new();
    for Row { finding, repair } in rows {
        let state = finding.provision_state.as_ref().map(ToString::to_string);
        let maintenance = finding
            .maintenance
            .map(|is| if is { "yes" } else { "no" }.to_owned());
        table.add_row([
            finding.kind.to_string(),
            name(finding),
            shown(state.as_deref()),
            shown(maintenance.as_deref()),
            shown(finding.instance.map(|uuid| uuid.to_string()).as_deref()),
            units(finding),
            finding.age_s.map_or_else(|| "-".to_owned(), age),
        ]);
        below.push_str(&format!(
            "\n\n{} ({}): {}\n  {}; {}",
            name(finding),
            finding.node,
            plain(&finding.what),
            finding.why,
            plain(&finding.advice)
        ));
        for command in &finding.commands {
            below.push_str(&format!("\n    {}", plain(command)));
        }
        if let Some(repair) = repair {
            below.push_str(&format!("\n  {}", plain(&repair.to_string())));
        }
    }
    format!("{table}{below}\n\n{summary}")
}

/// What is going to be done.
pub(super) fn question(planned: &[&Finding]) -> String {
    let lines = planned.iter().map(|finding| {
        let node = name(finding);
        format!(
            "{} {node}: {}; {}",
            finding.kind,
            plain(&finding.what),
            finding.remedy.words()
        )
    });
    format!("{}\nRepair these?", lines.collect::<Vec<_>>().join("\n"))
}

fn summary(survey: &Survey, deep: bool) -> String {
    let mut counts: BTreeMap<FindingKind, usize> = BTreeMap::new();
    for finding in &survey.findings {
        *counts.entry(finding.kind).or_default() += 1;
    }
    let counts = counts
        .iter()
        .map(|(kind, count)| format!("{count} {kind}"))
        .collect::<Vec<_>>();
    let found = match counts.as_slice() {
        [] => "nothing that does not fit".to_owned(),
        counts => counts.join(", "),
    };
    let mut text = format!("{} nodes, {} providers: {found}", survey.nodes, survey.providers);
    if survey.unconfirmed > 0 {
        text.push_str(&format!(
            "\nOnly {LOOKS} were looked at closer, the other {} may be changes under way; --deep looks at all",
            survey.unconfirmed
        ));
    }
    if !deep {
        text.push_str("\nWho holds what was not asked for; --deep does");
    }
    text
}

fn name(finding: &Finding) -> String {
    output::node_name(finding.name.as_deref(), finding.node)
}

fn shown(text: Option<&str>) -> String {
    text.map_or_else(|| "-".to_owned(), plain)
}

fn units(finding: &Finding) -> String {
    match (finding.reserved, finding.used, finding.total) {
        (Some(reserved), Some(used), Some(total)) => format!("{reserved}/{used}/{total}"),
        _ => "-".to_owned(),
    }
}

/// The largest unit of time that says enough.
fn age(seconds: i64) -> String {
    match seconds {
        ..=119 => format!("{seconds}s"),
        120..=7_199 => format!("{}m", seconds / 60),
        7_200..=172_799 => format!("{}h", seconds / 3_600),
        _ => format!("{}d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_has_a_unit_that_says_enough() {
        let ages = [
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (7_200, "2h"),
            (172_800, "2d"),
        ];
        for (seconds, text) in ages {
            assert_eq!(age(seconds), text);
        }
    }
}
