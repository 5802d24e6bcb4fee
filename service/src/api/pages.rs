//! Lists in pages.

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use uuid::Uuid;

use crate::problem::Problem;

/// So many rows on a page, unless somebody says how many.
const USUAL: usize = 100;
/// The largest page.
const MOST: usize = 1000;

/// How many rows are wanted.
pub(super) fn limit(asked: Option<usize>) -> Result<usize, Problem> {
    match asked {
        None => Ok(USUAL),
        Some(limit @ 1..=MOST) => Ok(limit),
        Some(limit) => Err(Problem::bad_request(format!(
            "`limit` is {limit}, and 1 to {MOST} are possible"
        ))),
    }
}

/// Where the next page is.
pub(super) fn next(path: &str, query: &[(&str, Option<String>)], limit: usize, marker: Uuid) -> String {
    let mut place = format!("{path}?limit={limit}&marker={marker}");
    for (key, value) in query {
        if let Some(value) = value {
            place.push_str(&format!(
                "&{key}={}",
                utf8_percent_encode(value, NON_ALPHANUMERIC)
            ));
        }
    }
    place
}
