//! What happens to nodes, as it happens: server-sent events.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::Query;
use axum::extract::rejection::QueryRejection;
use axum::http::HeaderMap;
use axum::response::Sse;
use axum::response::sse::{Event, KeepAlive};
use futures::{Stream, StreamExt};
use serde::Deserialize;
use unprovision::guard::Told;
use utoipa::IntoParams;

use super::State;
use crate::problem::Problem;

/// So often something is sent, so that nobody takes the connection for dead.
const ALIVE: Duration = Duration::from_secs(15);

/// Where to begin.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub(super) struct After {
    /// All events after this number; the header `Last-Event-ID` wins. Without either: all from now on.
    after: Option<u64>,
}

/// What happens to nodes, from now on or after an event that was seen last: `held`, `released`, `ended`, `stuck`, each with a number,
/// and `missed` where some are not kept any more. The data of each is one object of JSON.
#[utoipa::path(get, path = "/v1/events", tag = "events", params(After,
    ("Last-Event-ID" = Option<u64>, Header, description = "The number of the event that was seen last"),
), responses(
    (status = 200, description = "Server-sent events, until one of both goes", body = String, content_type = "text/event-stream"),
    (status = 400, description = "A number that is none", body = Problem, content_type = "application/problem+json"),
    (status = 503, description = "Too many streams", body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn events(
    state: State,
    headers: HeaderMap,
    after: Result<Query<After>, QueryRejection>,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, Problem> {
    let Query(After { after }) = after?;
    let after = last_seen(&headers)?.or(after);
    let place = Arc::clone(&state.streams).try_acquire_owned();
    let place = place.map_err(|_| Problem::unavailable("too many streams of events are open"))?;
    let service = &state.service;
    let told = service.guard.events().follow(after);
    let told = told.take_until(service.stop.clone().cancelled_owned());
    let events = told.map(move |told| {
        // As long as the stream lives, it has its place.
        let _ = &place;
        Ok(event(&told))
    });
    Ok(Sse::new(events).keep_alive(KeepAlive::new().interval(ALIVE)))
}

fn last_seen(headers: &HeaderMap) -> Result<Option<u64>, Problem> {
    let Some(value) = headers.get("Last-Event-ID") else {
        return Ok(None);
    };
    let number = value.to_str().ok().and_then(|text| text.trim().parse().ok());
    let wrong = || Problem::bad_request("the header Last-Event-ID is not the number of an event");
    number.ok_or_else(wrong).map(Some)
}

fn event(told: &Told) -> Event {
    let event = match told {
        Told::Event(event) => Event::default()
            .id(event.id.to_string())
            .event(event.event.name()),
        Told::Missed(_) => Event::default().event("missed"),
    };
    let data = serde_json::to_string(told).unwrap_or_default();
    event.data(data)
}
