//! Running a file: requests out, answers compared, everything cleaned up.

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, Method, Request, Response};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::{Instant, sleep};

use super::matching::{compare, error_text};
use super::vars::Vars;
use super::{
    Answer, Defaults, Difference, Error, Expect, Failure, File, Outcome, RepeatUntil, Report, Seed, Service,
    Status, Step, StepReport, Target, Token,
};

const AUTH_TOKEN: &str = "x-auth-token";
const SUBJECT_TOKEN: &str = "x-subject-token";
/// Between two tries of a request that is repeated.
const PAUSE: Duration = Duration::from_millis(100);
/// How long a cleanup waits for locks and the like.
const CLEANUP: Duration = Duration::from_secs(30);

/// Runs one file: all tests in their order, then the cleanup.
///
/// A test that fails does not end the run, unless it waited in vain for a state: what follows would
/// only wait as well. The cleanup runs in any case.
pub async fn run_file(file: &File, target: &mut dyn Target, seed: &Seed) -> Report {
    let mut vars = Vars::new(&file.name, seed, &file.vars);
    let identity = target.identity().clone();
    for (name, value) in [
        ("username", identity.username),
        ("password", identity.password),
        ("user_domain", identity.user_domain_id),
        ("project", identity.project_name),
        ("project_domain", identity.project_domain_id),
        ("keystone_url", target.root(Service::Keystone).to_owned()),
        ("ironic_url", target.root(Service::Ironic).to_owned()),
        ("placement_url", target.root(Service::Placement).to_owned()),
    ] {
        vars.save(name, Value::String(value));
    }
    for (name, value) in target.variables() {
        vars.save(&name, Value::String(value));
    }
    let mut run = Run {
        defaults: &file.defaults,
        target,
        vars,
        tokens: BTreeMap::new(),
    };
    let mut report = Report {
        file: file.name.clone(),
        seed: seed.to_string(),
        steps: Vec::new(),
    };
    let mut lost = false;
    for step in &file.tests {
        let outcome = if lost {
            Outcome::Skipped
        } else {
            run.step(step).await
        };
        lost |= step.repeat_until.is_some() && matches!(outcome, Outcome::Failed(_));
        report.steps.push(StepReport {
            name: step.name.clone(),
            outcome,
        });
    }
    for step in &file.cleanup {
        let outcome = run.cleanup(step, report.is_ok()).await;
        report.steps.push(StepReport {
            name: format!("cleanup: {}", step.name),
            outcome,
        });
    }
    report
}

/// The state of a file's run.
struct Run<'a> {
    defaults: &'a Defaults,
    target: &'a mut dyn Target,
    vars: Vars<'a>,
    tokens: BTreeMap<&'static str, String>,
}

/// A request and the text that describes it.
struct Prepared {
    request: Request<Bytes>,
    text: String,
}

impl Run<'_> {
    /// A cleanup succeeds when the thing is gone, however that came about, and is patient.
    async fn cleanup(&mut self, step: &Step, all_well: bool) -> Outcome {
        let mut step = step.clone();
        if step.expect.status.is_none() && step.repeat_until.is_none() {
            let status = Some(Status::OneOf(vec![200, 202, 204, 404]));
            step.repeat_until = Some(RepeatUntil {
                status,
                body: None,
                within: CLEANUP,
            });
        }
        match self.prepare(&step).await {
            Err(Error::Unset(_)) if !all_well => Outcome::Skipped,
            _ => self.step(&step).await,
        }
    }

    async fn step(&mut self, step: &Step) -> Outcome {
        let begun = Instant::now();
        let mut failure = Failure {
            request: step.request.clone(),
            answer: None,
            differences: Vec::new(),
            problem: None,
            tries: 0,
            took: Duration::ZERO,
        };
        let tried = self.attempt(step, begun, &mut failure).await;
        failure.took = begun.elapsed();
        failure.problem = tried.err().map(|error| error.to_string());
        if failure.problem.is_none() && failure.differences.is_empty() {
            Outcome::Passed
        } else {
            Outcome::Failed(Box::new(failure))
        }
    }

    /// Sends the request, once or until it is answered as wanted, and notes all that is wrong.
    async fn attempt(&mut self, step: &Step, begun: Instant, failure: &mut Failure) -> Result<(), Error> {
        let prepared = self.prepare(step).await?;
        failure.request = prepared.text;
        let until = step.repeat_until.as_ref();
        let answer = loop {
            failure.tries += 1;
            let answer = decode(self.target.send(prepared.request.clone()).await?);
            failure.answer = Some(answer.clone());
            let Some(until) = until else { break answer };
            failure.differences = self.differences(&Expect::from(until), &answer)?;
            if failure.differences.is_empty() {
                break answer;
            }
            if begun.elapsed() >= until.within {
                return Ok(());
            }
            sleep(PAUSE).await;
        };
        failure.differences = self.differences(&step.expect, &answer)?;
        for (name, source) in &step.save {
            match find(&answer, source) {
                Some(value) => self.vars.save(name, value),
                None => failure.differences.push(Difference {
                    at: source.clone(),
                    expected: format!("something to save as {name}"),
                    got: "nothing".to_owned(),
                }),
            }
        }
        Ok(())
    }

    async fn prepare(&mut self, step: &Step) -> Result<Prepared, Error> {
        let service = step.service.or(self.defaults.service);
        let service = service.ok_or_else(|| Error::Request("no service is named".to_owned()))?;
        let line = self.vars.fill_text(&step.request)?;
        let (method, path) = line.split_once(' ').ok_or_else(|| Error::Request(line.clone()))?;
        let url = self.url(service, path.trim())?;
        let version = step.version.as_ref().or(self.defaults.version.as_ref());
        let version = version.map(|version| self.vars.fill_text(version)).transpose()?;
        let mut builder = Request::builder()
            .method(method)
            .uri(&url)
            .header(ACCEPT, "application/json");
        let mut text = format!("{method} {url}");
        if let Some((name, value)) = version.and_then(|version| version_header(service, &version)) {
            text.push_str(&format!("\n{name}: {value}"));
            builder = builder.header(name, value);
        }
        for (name, value) in &step.headers {
            let value = self.vars.fill_text(value)?;
            text.push_str(&format!(
                "\n{name}: {}",
                if name.ends_with("token") { "..." } else { &value }
            ));
            builder = builder.header(name, value);
        }
        if let Some(token) = self.token(service, &step.token).await? {
            builder = builder.header(AUTH_TOKEN, token);
        }
        let mut body = Bytes::new();
        if let Some(value) = &step.body {
            let value = self.vars.fill(value)?.to_string();
            text.push_str(&format!("\n{value}"));
            body = Bytes::from(value);
            builder = builder.header(CONTENT_TYPE, "application/json");
        }
        let request = builder
            .body(body)
            .map_err(|error| Error::Request(error.to_string()))?;
        Ok(Prepared { request, text })
    }

    /// The URL of a path; links from answers are whole URLs already, but a token goes to its service only.
    fn url(&self, service: Service, path: &str) -> Result<String, Error> {
        let root = self.target.root(service);
        match path {
            _ if path.starts_with('/') => Ok(format!("{root}{path}")),
            _ if path.starts_with(&format!("{root}/")) => Ok(path.to_owned()),
            _ => Err(Error::Request(format!(
                "{path} is not a path, and not below {root}"
            ))),
        }
    }

    async fn token(&mut self, service: Service, token: &Token) -> Result<Option<String>, Error> {
        let scope = match (token, service) {
            (Token::None, _) | (Token::Default, Service::Keystone) => return Ok(None),
            (Token::Garbage, _) => return Ok(Some("garbage".to_owned())),
            (Token::Text(text), _) => return self.vars.fill_text(text).map(Some),
            (Token::System, _) | (Token::Default, Service::Ironic) => "system",
            (Token::Project, _) | (Token::Default, Service::Placement) => "project",
        };
        if let Some(token) = self.tokens.get(scope) {
            return Ok(Some(token.clone()));
        }
        let token = log_in(self.target, scope).await?;
        self.tokens.insert(scope, token.clone());
        Ok(Some(token))
    }

    /// Where an answer is not as expected.
    fn differences(&self, expect: &Expect, answer: &Answer) -> Result<Vec<Difference>, Error> {
        let mut all = Vec::new();
        if let Some(status) = expect
            .status
            .as_ref()
            .filter(|status| !status.accepts(answer.status))
        {
            let (expected, got) = (status.to_string(), answer.status.to_string());
            all.push(Difference {
                at: "status".to_owned(),
                expected,
                got,
            });
        }
        for (name, wanted) in &expect.headers {
            let actual = answer
                .headers
                .get(&name.to_lowercase())
                .cloned()
                .map(Value::String);
            all.extend(compare(
                &format!("header {name}"),
                &self.vars.fill(wanted)?,
                actual.as_ref(),
            ));
        }
        if let Some(body) = &expect.body {
            all.extend(compare("body", &self.vars.fill(body)?, Some(&answer.body)));
        }
        if let Some(code) = &expect.error_code {
            all.extend(compare("error code", code, answer.body.pointer("/errors/0/code")));
        }
        if let Some(part) = &expect.message_contains {
            let wanted = json!({ "$contains": self.vars.fill_text(part)? });
            let text = error_text(&answer.body).map(Value::String);
            all.extend(compare("error message", &wanted, text.as_ref()));
        }
        Ok(all)
    }
}

/// The header that asks for an API version; Keystone has none.
pub fn version_header(service: Service, version: &str) -> Option<(&'static str, String)> {
    match service {
        _ if version == "none" => None,
        Service::Keystone => None,
        Service::Ironic => Some(("X-OpenStack-Ironic-API-Version", version.to_owned())),
        Service::Placement => Some(("OpenStack-API-Version", format!("placement {version}"))),
    }
}

/// A token from Keystone, by password, for `system` or the administrator's project.
///
/// # Errors
///
/// Where Keystone gives none.
pub async fn log_in(target: &mut dyn Target, scope: &str) -> Result<String, Error> {
    let who = target.identity();
    let scope = match scope {
        "system" => json!({"system": {"all": true}}),
        _ => json!({"project": {"name": who.project_name, "domain": {"id": who.project_domain_id}}}),
    };
    let user = json!({"name": who.username, "domain": {"id": who.user_domain_id}, "password": who.password});
    let identity = json!({"methods": ["password"], "password": {"user": user}});
    let body = json!({"auth": {"identity": identity, "scope": scope}}).to_string();
    let request = Request::builder()
        .method(Method::POST)
        .uri(format!("{}/v3/auth/tokens", target.root(Service::Keystone)))
        .header(CONTENT_TYPE, "application/json")
        .body(Bytes::from(body))
        .map_err(|error| Error::Request(error.to_string()))?;
    let answer = decode(target.send(request).await?);
    let refused = || Error::NoToken(format!("keystone answers {} {}", answer.status, answer.body));
    answer.headers.get(SUBJECT_TOKEN).cloned().ok_or_else(refused)
}

fn decode(response: Response<Bytes>) -> Answer {
    let body = serde_json::from_slice(response.body())
        .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(response.body()).into_owned()));
    Answer {
        status: response.status().as_u16(),
        headers: texts(response.headers()),
        body,
    }
}

fn texts(headers: &HeaderMap) -> BTreeMap<String, String> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    headers
        .iter()
        .map(|(name, value)| (name.as_str().to_owned(), text(value.as_bytes())))
        .collect()
}

/// The part of an answer that a `save` names.
fn find(answer: &Answer, source: &str) -> Option<Value> {
    match source.strip_prefix("header:") {
        Some(name) => answer
            .headers
            .get(&name.to_lowercase())
            .cloned()
            .map(Value::String),
        None => answer.body.pointer(source).cloned(),
    }
}

#[cfg(test)]
mod tests;
