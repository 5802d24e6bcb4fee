//! The resources, one file for each, and their description.

mod audit;
mod cases;
mod events;
mod health;
mod hints;
mod nodes;
mod pages;
mod pause;
mod rows;
mod status;

use std::sync::Arc;

use axum::extract::{FromRequest, Json, Request};
use axum::response::IntoResponse;
use axum::{Extension, Router};
use serde::de::DeserializeOwned;
use utoipa::OpenApi;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::Shared;
use crate::access::Caller;
use crate::problem::Problem;

pub(crate) use audit::Audits;

/// What all handlers get.
type State = axum::extract::State<Arc<Shared>>;
/// Who asks.
type From = Extension<Caller>;

#[derive(OpenApi)]
#[openapi(info(
    title = "unprovision",
    description = "What a guard does with the bare-metal nodes of an OpenStack cloud"
))]
struct Description;

/// All resources. What is not described is not there.
pub(crate) fn router(shared: Arc<Shared>) -> Router {
    let (router, mut description) = OpenApiRouter::with_openapi(Description::openapi())
        .routes(routes!(health::healthz))
        .routes(routes!(health::readyz))
        .routes(routes!(status::status))
        .routes(routes!(cases::cases))
        .routes(routes!(cases::history))
        .routes(routes!(nodes::nodes))
        .routes(routes!(audit::audit))
        .routes(routes!(events::events))
        .routes(routes!(hints::hint))
        .routes(routes!(pause::pause, pause::go_on))
        .with_state(Arc::clone(&shared))
        .split_for_parts();
    description.info.version = shared.service.version.to_owned();
    let description = Arc::new(description);
    let described = move || {
        let description = Arc::clone(&description);
        async move { Json(&*description).into_response() }
    };
    router
        .route("/openapi.json", axum::routing::get(described))
        .fallback(async |request: Request| {
            Problem::not_found(format!("there is nothing at {}", request.uri().path()))
                .next("/openapi.json says what there is")
        })
        .method_not_allowed_fallback(async || Problem::method_not_allowed())
}

/// The longest reason, in bytes.
const LONGEST_REASON: usize = 1000;

/// Refuses a reason that is longer than whoever reads it would like.
fn is_short(reason: &str) -> Result<(), Problem> {
    match reason.len() > LONGEST_REASON {
        true => Err(Problem::bad_request(format!(
            "`reason` is longer than {LONGEST_REASON} bytes"
        ))),
        false => Ok(()),
    }
}

/// A body of JSON, or what is wrong with it.
struct Input<T>(T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Input<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        let Json(input) = Json::<T>::from_request(request, state).await?;
        Ok(Self(input))
    }
}
