//! Follows the pages of `GET /v1/nodes` to the end; no IO.

use std::collections::BTreeSet;

use percent_encoding::percent_decode_str;
use serde::Deserialize;
use serde_json::Value;
use unprovision_session::Microversion;

use crate::error::fail;
use crate::node;
use crate::request::{self, Call};
use crate::{Error, ErrorKind, Node, NodeField, NodeFilter};

/// Nodes asked for at once; also the most that Ironic gives by default.
const PAGE: usize = 1000;

/// No list has more pages: ten million nodes.
const MOST_PAGES: usize = 10_000;

const CALL: &str = "list nodes";

/// A page as it comes. Whatever lacks `nodes` is none: an empty list is never guessed.
#[derive(Debug, Deserialize)]
pub(crate) struct Page {
    nodes: Vec<Value>,
    next: Option<String>,
}

/// A list on its way.
#[derive(Debug)]
pub(crate) struct Paging {
    version: Microversion,
    fields: String,
    /// What every page is asked with, so that nothing depends on what the server's link still carries.
    ours: Vec<(String, String)>,
    /// What the server's link adds, such as the order.
    theirs: Vec<(String, String)>,
    marker: Option<String>,
    markers: BTreeSet<String>,
    /// At most one node carries an instance: old services give a `next` there that leads to the same node again.
    one_page: bool,
    nodes: Vec<Node>,
}

impl Paging {
    /// Before the first page.
    pub(crate) fn new(
        version: Microversion,
        filter: &NodeFilter,
        fields: &[NodeField],
    ) -> Result<Self, Error> {
        let mut ours = request::filter(CALL, version, filter)?;
        let fields = request::fields(version, fields);
        ours.push(("fields".into(), fields.clone()));
        ours.push(("limit".into(), PAGE.to_string()));
        let one_page = filter.instance_uuid.is_some();
        Ok(Self {
            version,
            fields,
            ours,
            theirs: Vec::new(),
            marker: None,
            markers: BTreeSet::new(),
            one_page,
            nodes: Vec::new(),
        })
    }

    /// The request for the next page.
    pub(crate) fn request(&self) -> Result<Call, Error> {
        let mut pairs = self.ours.clone();
        pairs.extend(self.theirs.iter().cloned());
        pairs.extend(
            self.marker
                .iter()
                .map(|marker| ("marker".to_owned(), marker.clone())),
        );
        request::list_nodes(CALL, self.version, &pairs)
    }

    /// Takes a page in; whether there is another one to ask for.
    pub(crate) fn take(&mut self, page: Page) -> Result<bool, Error> {
        let full = page.nodes.len() >= PAGE;
        let empty = page.nodes.is_empty();
        for value in page.nodes {
            self.nodes
                .push(node::read(value, &self.fields).map_err(unreadable)?);
        }
        // A full page without a link may be a service that forgot it: ask once more, the answer may be empty.
        let more = page.next.is_some() || full;
        if self.one_page || empty || !more {
            return Ok(false);
        }
        let link = page.next.as_deref().map(pairs_of).unwrap_or_default();
        let in_link = link
            .iter()
            .find(|(key, _)| key == "marker")
            .map(|(_, value)| value.clone());
        let marker = in_link.or_else(|| self.nodes.last().map(|node| node.uuid.to_string()));
        self.theirs = link;
        self.theirs
            .retain(|(key, _)| key != "marker" && self.ours.iter().all(|(ours, _)| ours != key));
        self.go_on_at(marker.unwrap_or_default())?;
        Ok(true)
    }

    fn go_on_at(&mut self, marker: String) -> Result<(), Error> {
        if self.markers.len() + 1 >= MOST_PAGES {
            return Err(unreadable(format!("there are more than {MOST_PAGES} pages")));
        }
        if !self.markers.insert(marker.clone()) {
            return Err(unreadable(format!(
                "the pages go round in a circle at marker {marker}"
            )));
        }
        self.marker = Some(marker);
        Ok(())
    }

    /// All nodes, each once.
    pub(crate) fn finish(self) -> Vec<Node> {
        let mut seen = BTreeSet::new();
        self.nodes
            .into_iter()
            .filter(|node| seen.insert(node.uuid))
            .collect()
    }
}

fn unreadable(message: String) -> Error {
    fail(CALL, ErrorKind::Unreadable, message)
}

/// The pairs in a link's query. Its host and path are not looked at: behind a proxy they are often wrong.
fn pairs_of(link: &str) -> Vec<(String, String)> {
    let decode = |text: &str| {
        percent_decode_str(&text.replace('+', " "))
            .decode_utf8_lossy()
            .into_owned()
    };
    let query = link.split_once('?').map_or("", |(_, query)| query);
    let query = query.split_once('#').map_or(query, |(query, _)| query);
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    pairs
        .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
        .map(|(key, value)| (decode(key), decode(value)))
        .collect()
}
