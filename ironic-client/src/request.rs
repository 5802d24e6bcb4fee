//! Builds the requests; no IO.

use std::collections::BTreeSet;

use bytes::Bytes;
use http::{Method, Request, header};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};
use unprovision_session::{Microversion, Resend};

use crate::error::fail;
use crate::{Error, ErrorKind, Feature, NodeField, NodeFilter, NodeUuid, ProvisionRequest, SUPPORTED, Verb};

/// The header that asks for a microversion, and that names the one of the answer.
pub(crate) const VERSION_HEADER: &str = "x-openstack-ironic-api-version";

/// What an answer is held against.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    /// The call in words, with its object.
    pub(crate) call: String,
    /// The microversion asked for.
    pub(crate) version: Microversion,
    /// How often it may be sent; a read is always [`Resend::Safe`].
    pub(crate) resend: Resend,
}

/// A request, and what its answer is held against.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) asked: Asked,
    pub(crate) request: Request<Bytes>,
}

impl Call {
    fn new(
        call: String,
        version: Microversion,
        method: Method,
        path: &str,
        body: Option<Value>,
    ) -> Result<Self, Error> {
        let mut builder = Request::builder()
            .method(method)
            .uri(path)
            .header(header::ACCEPT, "application/json")
            .header(VERSION_HEADER, version.to_string());
        if body.is_some() {
            builder = builder.header(header::CONTENT_TYPE, "application/json");
        }
        let bytes = body.map(|body| Bytes::from(body.to_string())).unwrap_or_default();
        let request = builder
            .body(bytes)
            .map_err(|error| fail(&call, ErrorKind::BadRequest, error.to_string()))?;
        let resend = Resend::of(&request);
        Ok(Self {
            asked: Asked {
                call,
                version,
                resend,
            },
            request,
        })
    }

    fn never_resent(mut self) -> Self {
        self.asked.resend = Resend::Never;
        self.request.extensions_mut().insert(Resend::Never);
        self
    }
}

/// What stays as it is in a path segment or a query value; the comma parts the fields.
const KEPT: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~')
    .remove(b',');

fn encode(text: &str) -> String {
    utf8_percent_encode(text, KEPT).to_string()
}

/// The pairs as a query, in their order.
pub(crate) fn query(pairs: &[(String, String)]) -> String {
    let pairs: Vec<_> = pairs
        .iter()
        .map(|(key, value)| format!("{}={}", encode(key), encode(value)))
        .collect();
    pairs.join("&")
}

/// `GET /v1`, at the lowest microversion of ours, so that the answer also tells whether the header arrives.
pub(crate) fn discovery() -> Result<Call, Error> {
    Call::new(
        "read the API versions".into(),
        SUPPORTED.min,
        Method::GET,
        "/v1",
        None,
    )
}

/// A small read of nodes, for services whose `/v1` is not readable: every answer of Ironic carries the range.
pub(crate) fn probe() -> Result<Call, Error> {
    let path = "/v1/nodes?limit=1&fields=uuid";
    Call::new(
        "read the API versions from the nodes".into(),
        SUPPORTED.min,
        Method::GET,
        path,
        None,
    )
}

/// `GET /v1/nodes/{node}` with these fields.
pub(crate) fn show_node(version: Microversion, node: &str, fields: &str) -> Result<Call, Error> {
    let call = format!("show node {node}");
    // An empty segment would list nodes, and dot segments are taken out of URLs on the way.
    if matches!(node, "" | "." | "..") {
        return Err(fail(&call, ErrorKind::BadRequest, "this is no name of a node"));
    }
    let path = format!("/v1/nodes/{}?fields={fields}", encode(node));
    Call::new(call, version, Method::GET, &path, None)
}

/// The fields as the `fields` parameter takes them: those that this version knows, and always the UUID and the state.
pub(crate) fn fields(version: Microversion, wanted: &[NodeField]) -> String {
    let known = wanted
        .iter()
        .copied()
        .filter(|field| field.feature().is_none_or(|f| f.since() <= version));
    let mut fields: BTreeSet<NodeField> = known.collect();
    fields.insert(NodeField::ProvisionState);
    let words = fields.into_iter().map(NodeField::as_str);
    std::iter::once("uuid").chain(words).collect::<Vec<_>>().join(",")
}

/// The filter as pairs of a query.
///
/// A condition that the version does not know is an error: without it the list would hold nodes that are none of the
/// caller's business.
pub(crate) fn filter(
    call: &str,
    version: Microversion,
    filter: &NodeFilter,
) -> Result<Vec<(String, String)>, Error> {
    let all = [
        (
            "provision_state",
            filter.provision_state.clone().map(String::from),
            None,
        ),
        (
            "instance_uuid",
            filter.instance_uuid.map(|uuid| uuid.to_string()),
            None,
        ),
        ("associated", filter.associated.map(|yes| yes.to_string()), None),
        ("maintenance", filter.maintenance.map(|yes| yes.to_string()), None),
        ("resource_class", filter.resource_class.clone(), None),
        (
            "conductor_group",
            filter.conductor_group.clone(),
            Some(Feature::ConductorGroup),
        ),
        ("owner", filter.owner.clone(), Some(Feature::Owner)),
        ("shard", filter.shard.clone(), Some(Feature::Shard)),
    ];
    let mut pairs = Vec::new();
    for (key, value, feature) in all {
        let Some(value) = value else { continue };
        if let Some(feature) = feature {
            needs(call, version, &format!("the filter by {key}"), feature.since())?;
        }
        pairs.push((key.to_owned(), value));
    }
    Ok(pairs)
}

fn needs(call: &str, version: Microversion, what: &str, since: Microversion) -> Result<(), Error> {
    if version >= since {
        return Ok(());
    }
    let message =
        format!("{what} needs API {since}, and the service speaks at most {version} with this client");
    Err(fail(call, ErrorKind::Unsupported, message))
}

/// `GET /v1/nodes` with these pairs.
pub(crate) fn list_nodes(
    call: &str,
    version: Microversion,
    pairs: &[(String, String)],
) -> Result<Call, Error> {
    Call::new(
        call.to_owned(),
        version,
        Method::GET,
        &format!("/v1/nodes?{}", query(pairs)),
        None,
    )
}

/// `PUT /v1/nodes/{node}/states/provision`.
pub(crate) fn set_provision_state(
    version: Microversion,
    node: NodeUuid,
    request: &ProvisionRequest,
) -> Result<Call, Error> {
    let verb = request.verb;
    let call = format!("ask node {node} for `{verb}`");
    needs(&call, version, &format!("the verb `{verb}`"), verb.since())?;
    let mut body = json!({ "target": verb.as_str() });
    if verb == Verb::Clean {
        body["clean_steps"] = json!(request.clean_steps);
    }
    let path = format!("/v1/nodes/{node}/states/provision");
    Ok(Call::new(call, version, Method::PUT, &path, Some(body))?.never_resent())
}

/// A change of the provision state to one that does not exist: refused in every state.
pub(crate) fn no_provision_state(version: Microversion, node: NodeUuid) -> Result<Call, Error> {
    let call = format!("find out whether node {node} might be changed");
    let path = format!("/v1/nodes/{node}/states/provision");
    let body = json!({ "target": "unprovision-doctor" });
    Ok(Call::new(call, version, Method::PUT, &path, Some(body))?.never_resent())
}

/// Traits, and none of them said: refused always.
pub(crate) fn no_traits(version: Microversion, node: NodeUuid) -> Result<Call, Error> {
    let call = format!("find out whether traits of node {node} might be set");
    let path = format!("/v1/nodes/{node}/traits");
    Ok(Call::new(call, version, Method::PUT, &path, None)?.never_resent())
}

/// `GET /v1/nodes/{node}/traits`.
pub(crate) fn node_traits(version: Microversion, node: NodeUuid) -> Result<Call, Error> {
    Call::new(
        format!("read traits of node {node}"),
        version,
        Method::GET,
        &format!("/v1/nodes/{node}/traits"),
        None,
    )
}

/// `PUT` or `DELETE /v1/nodes/{node}/traits/{name}`.
pub(crate) fn node_trait(
    version: Microversion,
    method: Method,
    node: NodeUuid,
    name: &str,
) -> Result<Call, Error> {
    let call = match method {
        Method::DELETE => format!("remove trait {name} from node {node}"),
        _ => format!("add trait {name} to node {node}"),
    };
    // Without a name the call would replace or remove all traits of the node.
    if matches!(name, "" | "." | "..") {
        return Err(fail(&call, ErrorKind::BadRequest, "this is no name of a trait"));
    }
    let path = format!("/v1/nodes/{node}/traits/{}", encode(name));
    Call::new(call, version, method, &path, None)
}

/// `PUT /v1/nodes/{node}/maintenance` with the reason, or `DELETE` without one.
pub(crate) fn maintenance(
    version: Microversion,
    node: NodeUuid,
    reason: Option<&str>,
) -> Result<Call, Error> {
    let path = format!("/v1/nodes/{node}/maintenance");
    match reason {
        Some(reason) => {
            let body = json!({ "reason": reason });
            Call::new(
                format!("set maintenance of node {node}"),
                version,
                Method::PUT,
                &path,
                Some(body),
            )
        }
        None => Call::new(
            format!("clear maintenance of node {node}"),
            version,
            Method::DELETE,
            &path,
            None,
        ),
    }
}
