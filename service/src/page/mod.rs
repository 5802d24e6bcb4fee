//! The live page: files that are part of the program, and what a browser may do with them.

use axum::Router;
use axum::http::{HeaderName, HeaderValue, header};
use axum::response::IntoResponse;
use axum::routing::get;

/// Nothing from elsewhere, nothing in line, no frame around it, and no form that leaves.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; \
                      form-action 'none'; frame-ancestors 'none'";

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";

/// Where each file is, what it is, and what is in it.
const FILES: [(&str, &str, &str); 9] = [
    ("/", HTML, include_str!("index.html")),
    ("/page/page.css", CSS, include_str!("page.css")),
    ("/page/icon.svg", "image/svg+xml", include_str!("icon.svg")),
    ("/page/page.js", SCRIPT, include_str!("page.js")),
    ("/page/api.js", SCRIPT, include_str!("api.js")),
    ("/page/list.js", SCRIPT, include_str!("list.js")),
    ("/page/model.js", SCRIPT, include_str!("model.js")),
    ("/page/story.js", SCRIPT, include_str!("story.js")),
    ("/page/times.js", SCRIPT, include_str!("times.js")),
];

/// The page. It shows nothing by itself: what it asks for is asked with the login of whoever looks.
pub(crate) fn router() -> Router {
    FILES
        .into_iter()
        .fold(Router::new(), |router, (path, kind, text)| {
            router.route(path, get(async move || (headers(kind), text).into_response()))
        })
}

fn headers(kind: &'static str) -> [(HeaderName, HeaderValue); 5] {
    [
        (header::CONTENT_TYPE, kind),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        // A page of an older program with the interface of a newer one helps nobody.
        (header::CACHE_CONTROL, "no-cache"),
    ]
    .map(|(name, value)| (name, HeaderValue::from_static(value)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_file_that_the_page_names_is_there_and_nothing_is_elsewhere() {
        let paths = FILES.map(|(path, ..)| path);
        for (_, _, text) in FILES {
            for quoted in text.split('"').filter(|word| word.starts_with("/page/")) {
                assert!(paths.contains(&quoted), "{quoted} is not served");
            }
            for import in text.split("from \"./").skip(1) {
                let file = import.split('"').next().unwrap_or_default();
                assert!(
                    paths.contains(&format!("/page/{file}").as_str()),
                    "{file} is not served"
                );
            }
            let elsewhere = text.replace("http://www.w3.org/2000/svg", "");
            assert!(
                !elsewhere.contains("http://")
                    && !elsewhere.contains("https://")
                    && !elsewhere.contains("innerHTML")
            );
            assert!(text.lines().count() <= 400);
        }
    }
}
