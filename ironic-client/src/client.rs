//! [`IronicClient`]: the trait over a transport.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;
use http::{Method, Response, StatusCode};
use serde::Deserialize;
use tracing::Instrument;
use unprovision_session::{Class, Microversion, Transport, VersionRange};

use crate::error::{fail, no_answer};
use crate::paging::{Page, Paging};
use crate::request::{self, Asked, Call};
use crate::{
    Error, ErrorKind, Ironic, Node, NodeField, NodeFilter, NodeUuid, ProvisionRequest, SUPPORTED, answer,
    node,
};

/// Ironic's API over a [`Transport`].
///
/// Cheap to clone; clones share what was negotiated. The microversion is negotiated at the first call, and anew after
/// a 406 (a service that was downgraded). Two first calls at once may both negotiate, which does no harm.
#[derive(Clone, Debug)]
pub struct IronicClient {
    transport: Arc<dyn Transport>,
    negotiated: Arc<Mutex<Option<Microversion>>>,
}

impl IronicClient {
    /// A client that sends through this transport, whose base is Ironic's root: paths begin with `/v1`.
    pub fn new(transport: Arc<dyn Transport>) -> Self {
        Self {
            transport,
            negotiated: Arc::default(),
        }
    }

    /// Sends, and hands on the answer of any status.
    async fn exchange(&self, call: Call) -> Result<(Asked, Response<Bytes>), Error> {
        let Call { asked, request } = call;
        let span = tracing::debug_span!("ironic", call = %asked.call);
        let answer = self.transport.send(request).instrument(span.clone()).await;
        let _entered = span.enter();
        match answer {
            Ok(response) => {
                let request_id = answer::request_id(response.headers());
                tracing::debug!(status = response.status().as_u16(), request_id, "answered");
                Ok((asked, response))
            }
            Err(source) => {
                tracing::debug!(error = %source, "no answer");
                Err(no_answer(&asked, source))
            }
        }
    }

    /// Sends, and reads the answer by `read`.
    async fn call<T>(
        &self,
        call: Call,
        read: impl FnOnce(&Asked, Response<Bytes>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let (asked, response) = self.exchange(call).await?;
        let result = read(&asked, response);
        if let Err(Error {
            kind: ErrorKind::NotAcceptable(_),
            ..
        }) = result
        {
            self.remember(None);
        }
        result
    }

    /// Sends a write that answers without a body.
    pub(crate) async fn write(&self, call: Call) -> Result<(), Error> {
        self.call(call, |asked, response| answer::accept(asked, response).map(drop))
            .await
    }

    /// The answer that tells the range of versions, and the range.
    async fn discover(&self) -> Result<(Asked, Response<Bytes>, VersionRange), Error> {
        let (asked, response) = self.exchange(request::discovery()?).await?;
        if let Some(range) = answer::offered(&response) {
            return Ok((asked, response, range));
        }
        let status = response.status();
        if status.is_server_error()
            || matches!(status, StatusCode::UNAUTHORIZED | StatusCode::TOO_MANY_REQUESTS)
        {
            return Err(answer::refusal(&asked, &response));
        }
        tracing::warn!(
            status = status.as_u16(),
            "Ironic's version document is not readable; asking the nodes instead"
        );
        let (asked, response) = self.exchange(request::probe()?).await?;
        match answer::offered(&response) {
            Some(range) => Ok((asked, response, range)),
            None => Err(match answer::accept(&asked, response) {
                Err(error) => error,
                Ok(_) => fail(
                    &asked.call,
                    ErrorKind::Unreadable,
                    "the answer does not tell the API versions",
                ),
            }),
        }
    }

    async fn negotiate(&self) -> Result<Microversion, Error> {
        let (asked, response, range) = self.discover().await?;
        // A 406 shows that our header arrived; any other answer must show the version that was asked for.
        if response.status().is_success() {
            answer::accept(&asked, response)?;
        }
        SUPPORTED.best_with(range).ok_or_else(|| {
            let message = format!("this client speaks API {SUPPORTED}, the service {range}");
            fail("agree on an API version", ErrorKind::Unsupported, message)
        })
    }

    fn remember(&self, version: Option<Microversion>) {
        *self.negotiated.lock().unwrap_or_else(PoisonError::into_inner) = version;
    }
}

#[derive(Deserialize)]
struct Traits {
    traits: BTreeSet<String>,
}

/// The call that the version is wanted for has not left yet, whatever became of asking for the version.
fn nothing_was_done(error: Error) -> Error {
    match error.kind.class() {
        Class::Unknown => Error {
            kind: ErrorKind::NoAnswer(Class::Transient),
            ..error
        },
        _ => error,
    }
}

#[async_trait]
impl Ironic for IronicClient {
    async fn versions(&self) -> Result<VersionRange, Error> {
        Ok(self.discover().await?.2)
    }

    async fn microversion(&self) -> Result<Microversion, Error> {
        let known = *self.negotiated.lock().unwrap_or_else(PoisonError::into_inner);
        match known {
            Some(version) => Ok(version),
            None => {
                let version = self.negotiate().await.map_err(nothing_was_done)?;
                tracing::debug!(%version, "speaking with Ironic");
                self.remember(Some(version));
                Ok(version)
            }
        }
    }

    async fn show_node(&self, uuid_or_name: &str) -> Result<Node, Error> {
        let version = self.microversion().await?;
        let fields = request::fields(version, &NodeField::ALL);
        let value = self
            .call(request::show_node(version, uuid_or_name, &fields)?, answer::json)
            .await?;
        let call = format!("show node {uuid_or_name}");
        node::read(value, &fields).map_err(|message| fail(&call, ErrorKind::Unreadable, message))
    }

    async fn list_nodes(&self, filter: &NodeFilter, fields: &[NodeField]) -> Result<Vec<Node>, Error> {
        let mut paging = Paging::new(self.microversion().await?, filter, fields)?;
        while paging.take(self.call(paging.request()?, answer::json::<Page>).await?)? {}
        Ok(paging.finish())
    }

    async fn set_provision_state(&self, node: NodeUuid, request: &ProvisionRequest) -> Result<(), Error> {
        self.write(request::set_provision_state(
            self.microversion().await?,
            node,
            request,
        )?)
        .await
    }

    async fn node_traits(&self, node: NodeUuid) -> Result<BTreeSet<String>, Error> {
        let call = request::node_traits(self.microversion().await?, node)?;
        self.call(call, answer::json)
            .await
            .map(|Traits { traits }| traits)
    }

    async fn add_node_trait(&self, node: NodeUuid, name: &str) -> Result<(), Error> {
        self.write(request::node_trait(
            self.microversion().await?,
            Method::PUT,
            node,
            name,
        )?)
        .await
    }

    async fn remove_node_trait(&self, node: NodeUuid, name: &str) -> Result<(), Error> {
        let call = request::node_trait(self.microversion().await?, Method::DELETE, node, name)?;
        match self.write(call).await {
            // `Node N doesn't have a trait 'T'`: that is what was wanted. A missing node is named without the trait.
            Err(error)
                if error.kind == ErrorKind::NotFound
                    && error.message.contains(&format!("trait '{name}'")) =>
            {
                Ok(())
            }
            result => result,
        }
    }

    async fn set_maintenance(&self, node: NodeUuid, reason: &str) -> Result<(), Error> {
        self.write(request::maintenance(
            self.microversion().await?,
            node,
            Some(reason),
        )?)
        .await
    }

    async fn clear_maintenance(&self, node: NodeUuid) -> Result<(), Error> {
        self.write(request::maintenance(self.microversion().await?, node, None)?)
            .await
    }
}
