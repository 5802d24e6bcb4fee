use super::*;
use async_trait::async_trait;
use std::collections::VecDeque;

use super::super::Identity;

/// Gives the answers it was told to give, and notes what it was asked.
struct Scripted {
    identity: Identity,
    answers: VecDeque<(u16, &'static str)>,
    asked: Vec<String>,
}

#[async_trait]
impl Target for Scripted {
    fn root(&self, service: Service) -> &str {
        match service {
            Service::Keystone => "http://keystone",
            Service::Ironic => "http://ironic",
            Service::Placement => "http://placement",
        }
    }

    fn identity(&self) -> &Identity {
        &self.identity
    }

    async fn send(&mut self, request: Request<Bytes>) -> Result<Response<Bytes>, Error> {
        let token = request
            .headers()
            .get(AUTH_TOKEN)
            .map_or("-", |token| token.to_str().unwrap());
        self.asked
            .push(format!("{} {} {token}", request.method(), request.uri()));
        if request.uri().path() == "/v3/auth/tokens" {
            let scope = String::from_utf8_lossy(request.body()).contains("system");
            let token = if scope { "system" } else { "project" };
            return Ok(Response::builder()
                .status(201)
                .header(SUBJECT_TOKEN, token)
                .body(Bytes::new())
                .unwrap());
        }
        let (status, body) = self.answers.pop_front().unwrap_or((500, "nothing left"));
        Ok(Response::builder()
            .status(status)
            .body(Bytes::from(body))
            .unwrap())
    }
}

/// Runs the steps of a file against these answers.
async fn run(steps: &str, answers: &[(u16, &'static str)]) -> (Report, Vec<String>) {
    let file: File = serde_saphyr::from_str(&format!("about: a test\n{steps}")).unwrap();
    let identity = Identity {
        username: "u".into(),
        password: "p".into(),
        user_domain_id: "d".into(),
        project_name: "p".into(),
        project_domain_id: "d".into(),
    };
    let mut target = Scripted {
        identity,
        answers: answers.iter().copied().collect(),
        asked: Vec::new(),
    };
    let report = run_file(&file, &mut target, &Seed::from("s")).await;
    (report, target.asked)
}

#[tokio::test]
async fn what_was_saved_is_used_and_each_service_gets_its_token() {
    let steps = "
tests:
  - {name: a, service: ironic, request: GET /v1, expect: {status: 200}, save: {n: /n}}
  - {name: b, service: placement, request: 'GET /x/${n}', expect: {status: 204, body: ''}}
  - {name: c, service: placement, request: GET /y, token: none, expect: {status: 401}}";
    let (report, asked) = run(steps, &[(200, r#"{"n": 7}"#), (204, ""), (401, "")]).await;
    assert!(report.is_ok(), "{report}");
    let login = "POST http://keystone/v3/auth/tokens -";
    let wanted = [
        login,
        "GET http://ironic/v1 system",
        login,
        "GET http://placement/x/7 project",
        "GET http://placement/y -",
    ];
    assert_eq!(asked, wanted);
}

#[tokio::test]
async fn a_wrong_answer_is_reported_with_all_that_helps() {
    let steps = "
tests:
  - {name: it fits, service: keystone, request: GET /, expect: {status: 200, body: {a: {b: 1}}}}";
    let (report, _) = run(steps, &[(404, r#"{"a": {"b": 2}}"#)]).await;
    let text = report.to_string();
    for part in [
        "FAILED: it fits",
        "GET http://keystone/",
        "expected 200",
        "got      404",
        "body/a/b:",
        r#"{"a":{"b":2}}"#,
    ] {
        assert!(text.contains(part), "{part} is not in: {text}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_is_repeated_until_it_fits() {
    let steps = "
tests:
  - {name: a, service: keystone, request: GET /, repeat_until: {status: 200, within: 1s}, expect: {body: {s: 1}}}";
    let (report, asked) = run(steps, &[(409, ""), (409, ""), (200, r#"{"s": 1}"#)]).await;
    assert!(report.is_ok(), "{report}");
    assert_eq!(asked.len(), 3);
}

#[tokio::test(start_paused = true)]
async fn who_waits_in_vain_goes_no_further_but_cleans_up() {
    let steps = "
tests:
  - {name: a, service: keystone, request: GET /a, repeat_until: {status: 200, within: 300ms}, save: {n: /n}}
  - {name: b, service: keystone, request: GET /b, expect: {status: 200}}
cleanup:
  - {name: c, service: keystone, request: DELETE /c}
  - {name: d, service: keystone, request: 'DELETE /${n}'}";
    let (report, asked) = run(steps, &[(409, ""), (409, ""), (409, ""), (409, ""), (404, "")]).await;
    let outcomes: Vec<&Outcome> = report.steps.iter().map(|step| &step.outcome).collect();
    assert!(
        matches!(
            outcomes[..],
            [
                Outcome::Failed(_),
                Outcome::Skipped,
                Outcome::Passed,
                Outcome::Skipped
            ]
        ),
        "{outcomes:?}"
    );
    assert_eq!(
        asked.last().map(String::as_str),
        Some("DELETE http://keystone/c -")
    );
}

#[tokio::test]
async fn a_cleanup_that_cannot_be_done_is_a_failure() {
    let steps = "
tests:
  - {name: a, service: keystone, request: GET /a, expect: {status: 200}}
cleanup:
  - {name: c, service: keystone, request: 'DELETE /${typo}'}";
    let (report, _) = run(steps, &[(200, "")]).await;
    assert!(report.to_string().contains("${typo} is not set"), "{report}");
}

#[tokio::test]
async fn a_token_does_not_follow_a_link_elsewhere() {
    let steps = "
tests:
  - {name: a, service: ironic, request: 'GET http://elsewhere/v1/nodes', expect: {status: 200}}";
    let (report, asked) = run(steps, &[(200, "")]).await;
    assert!(!report.is_ok());
    assert_eq!(asked, Vec::<String>::new());
}
