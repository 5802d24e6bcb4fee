//! [`PlacementClient`]: the trait over a transport.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;
use http::{Response, StatusCode};
use tracing::Instrument;
use unprovision_session::{Class, Microversion, Transport, VersionRange};

use crate::error::{fail, no_answer};
use crate::request::{self, Asked, Call};
use crate::wire::{Candidates, Holdings, Providers};
use crate::{
    Candidate, CandidateQuery, ConsumerAllocations, ConsumerUuid, Error, ErrorKind, Inventories, Placement,
    ProviderAllocations, ProviderFilter, ProviderTraits, ProviderUuid, ResourceClass, ResourceProvider,
    SUPPORTED, TraitName, answer,
};

/// Placement's API over a [`Transport`].
///
/// Cheap to clone; clones share what was negotiated. The microversion is negotiated at the first call, and anew after
/// a 406 (a service that was downgraded). Two first calls at once may both negotiate, which does no harm.
#[derive(Clone, Debug)]
pub struct PlacementClient {
    transport: Arc<dyn Transport>,
    negotiated: Arc<Mutex<Option<Microversion>>>,
}

impl PlacementClient {
    /// A client that sends through this transport, whose base is Placement's root.
    pub fn new(transport: Arc<dyn Transport>) -> Self {
        Self {
            transport,
            negotiated: Arc::default(),
        }
    }

    /// Sends, and hands on the answer of any status.
    async fn exchange(&self, call: Call) -> Result<(Asked, Response<Bytes>), Error> {
        let Call { asked, request } = call;
        let span = tracing::debug_span!("placement", call = %asked.call);
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
            "Placement's version document is not readable; asking for providers"
        );
        let (asked, response) = self.exchange(request::probe()?).await?;
        if let Some(range) = answer::offered(&response) {
            return Ok((asked, response, range));
        }
        // Answered at our highest: all that is known of the range is that it holds that one.
        answer::accept(&asked, response.clone())?;
        Ok((
            asked,
            response,
            VersionRange {
                min: SUPPORTED.max,
                max: SUPPORTED.max,
            },
        ))
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
impl Placement for PlacementClient {
    async fn versions(&self) -> Result<VersionRange, Error> {
        Ok(self.discover().await?.2)
    }

    async fn microversion(&self) -> Result<Microversion, Error> {
        let known = *self.negotiated.lock().unwrap_or_else(PoisonError::into_inner);
        match known {
            Some(version) => Ok(version),
            None => {
                let version = self.negotiate().await.map_err(nothing_was_done)?;
                tracing::debug!(%version, "speaking with Placement");
                self.remember(Some(version));
                Ok(version)
            }
        }
    }

    async fn show_provider(&self, provider: ProviderUuid) -> Result<ResourceProvider, Error> {
        self.call(
            request::show_provider(self.microversion().await?, provider)?,
            answer::json,
        )
        .await
    }

    async fn list_providers(&self, filter: &ProviderFilter) -> Result<Vec<ResourceProvider>, Error> {
        let call = request::list_providers(self.microversion().await?, filter)?;
        self.call(call, answer::json)
            .await
            .map(|Providers { resource_providers }| resource_providers)
    }

    async fn delete_provider(&self, provider: ProviderUuid) -> Result<(), Error> {
        self.write(request::delete_provider(self.microversion().await?, provider)?)
            .await
    }

    async fn inventories(&self, provider: ProviderUuid) -> Result<Inventories, Error> {
        self.call(
            request::part_of_provider(self.microversion().await?, provider, "inventories")?,
            answer::json,
        )
        .await
    }

    async fn replace_inventories(
        &self,
        provider: ProviderUuid,
        new: &Inventories,
    ) -> Result<Inventories, Error> {
        self.call(
            request::replace_inventories(self.microversion().await?, provider, new)?,
            answer::json,
        )
        .await
    }

    async fn provider_traits(&self, provider: ProviderUuid) -> Result<ProviderTraits, Error> {
        self.call(
            request::part_of_provider(self.microversion().await?, provider, "traits")?,
            answer::json,
        )
        .await
    }

    async fn replace_provider_traits(
        &self,
        provider: ProviderUuid,
        new: &ProviderTraits,
    ) -> Result<ProviderTraits, Error> {
        self.call(
            request::replace_provider_traits(self.microversion().await?, provider, new)?,
            answer::json,
        )
        .await
    }

    async fn create_trait(&self, name: &TraitName) -> Result<(), Error> {
        self.write(request::create_trait(self.microversion().await?, name)?)
            .await
    }

    async fn create_resource_class(&self, name: &ResourceClass) -> Result<(), Error> {
        self.write(request::create_resource_class(self.microversion().await?, name)?)
            .await
    }

    async fn consumer_allocations(&self, consumer: ConsumerUuid) -> Result<ConsumerAllocations, Error> {
        let call = request::consumer_allocations(self.microversion().await?, consumer)?;
        self.call(call, answer::json::<Holdings>).await.map(Into::into)
    }

    async fn provider_allocations(&self, provider: ProviderUuid) -> Result<ProviderAllocations, Error> {
        self.call(
            request::part_of_provider(self.microversion().await?, provider, "allocations")?,
            answer::holders,
        )
        .await
    }

    async fn write_consumer(&self, consumer: ConsumerUuid, new: &ConsumerAllocations) -> Result<(), Error> {
        self.write(request::write_consumer(
            self.microversion().await?,
            consumer,
            new,
        )?)
        .await
    }

    async fn write_consumers(&self, new: &BTreeMap<ConsumerUuid, ConsumerAllocations>) -> Result<(), Error> {
        self.write(request::write_consumers(self.microversion().await?, new)?)
            .await
    }

    async fn candidates(&self, query: &CandidateQuery) -> Result<Vec<Candidate>, Error> {
        let call = request::candidates(self.microversion().await?, query)?;
        self.call(call, answer::json::<Candidates>).await.map(Into::into)
    }
}
