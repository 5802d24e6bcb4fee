//! Keystone starts anew or changes its keys: for minutes every request is answered with 401.

use http::StatusCode;
use tokio_util::sync::CancellationToken;
use unprovision::core::{CaseId, Outcome};
use unprovision::orchestrator::{CaseReport, Until};
use unprovision_testkit::rig::Rig;
use unprovision_testkit::sandbox::{Fault, Sandbox, Service};

use crate::common::{
    assert_clean, assert_unexposed, count, is_offered, only, outcome, resumed, secs, strategies, writes,
};

/// What a service says while its Keystone knows no token.
fn storm(sandbox: &Sandbox) {
    for service in [Service::Ironic, Service::Placement] {
        sandbox.fault(Fault::on(service).status(StatusCode::UNAUTHORIZED, "{}"));
    }
}

/// Without trouble a strategy writes at most seven times; so many are sent in vain besides.
const WRITES: usize = 40;

fn one() -> Rig {
    let sandbox = Sandbox::builder().nodes(1).deployed(1);
    Rig::new(sandbox.teardown(secs(4)).cleaning(secs(60)).build())
}

/// Whenever it begins: before the hold, before the tear-down, in the cleaning, before the release.
#[tokio::test(start_paused = true)]
async fn a_storm_of_401_is_waited_out() {
    for strategy in strategies() {
        for begins in [0, 1, 2, 5, 30, 64, 66] {
            let rig = one();
            let node = only(&rig.sandbox).0;
            let request = rig.request(node, only(&rig.sandbox).1, strategy);
            let trouble = async {
                tokio::time::sleep(secs(begins)).await;
                storm(&rig.sandbox);
                tokio::time::sleep(secs(600)).await;
                rig.sandbox.clear_faults();
            };
            let cases = rig.open(&[request]).await.unwrap();
            let (report, ()) = tokio::join!(run(&rig, &cases), trouble);
            let what = format!("{strategy}, from {begins} s on");
            assert_eq!(outcome(&report), Outcome::Returned, "{what}: {report:?}");
            assert_clean(&rig.sandbox, node, strategy);
            assert_eq!(count(&rig.sandbox, "PUT", "/states/provision").0, 1, "{what}");
            let all = writes(&rig.sandbox);
            assert!(all <= WRITES, "{what}: {all} writes");
        }
    }
}

/// The deadline bounds it, and what is held stays held.
#[tokio::test(start_paused = true)]
async fn a_storm_of_401_that_does_not_end_is_waited_for_until_the_deadline() {
    for strategy in strategies() {
        let rig = one();
        let (node, instance) = only(&rig.sandbox);
        let mut request = rig.request(node, instance, strategy);
        request.limits = rig.limits(secs(300));
        let cases = rig.open(&[request]).await.unwrap();
        let begins = rig.sandbox.now();
        let trouble = async {
            tokio::time::sleep(secs(30)).await;
            storm(&rig.sandbox);
        };
        let (report, ()) = tokio::join!(run(&rig, &cases), trouble);
        assert_eq!(outcome(&report), Outcome::TimedOut, "{report:?}");
        assert!(
            report.held && report.reason.contains("the login is not accepted"),
            "{report:?}"
        );
        let waited = rig.sandbox.now().duration_since(begins).as_secs();
        assert!((300..360).contains(&waited), "{waited} s");
        tokio::time::sleep(secs(600)).await;
        assert!(!is_offered(&rig.sandbox, node, strategy), "{strategy}");
        assert_unexposed(&rig.sandbox, node, strategy);
    }
}

/// Whoever was never let in has a wrong password, and is told so at once.
#[tokio::test(start_paused = true)]
async fn a_login_that_is_refused_at_the_start_is_refused_at_once() {
    for strategy in strategies() {
        let rig = one();
        let (node, instance) = only(&rig.sandbox);
        let request = rig.request(node, instance, strategy);
        storm(&rig.sandbox);
        let begins = rig.sandbox.now();
        let refused = rig.open(std::slice::from_ref(&request)).await.unwrap_err();
        assert!(
            refused.to_string().contains("the login is not accepted"),
            "{refused}"
        );
        assert_eq!((rig.sandbox.now(), writes(&rig.sandbox)), (begins, 0));

        // The same for a case that another process has begun: it stays open, and held.
        rig.sandbox.clear_faults();
        let cases = rig.open(&[request]).await.unwrap();
        let stop = CancellationToken::new();
        let accepted = rig.orchestrator.run(&cases, Until::Accepted, &stop).await;
        assert!(accepted[0].as_ref().unwrap().held);
        storm(&rig.sandbox);
        let taken = [(cases[0], rig.limits(secs(86_400)))];
        let report = resumed(&rig.restarted(), &taken).await;
        assert_eq!(outcome(&report), Outcome::Failed, "{report:?}");
        assert!(report.held, "{report:?}");
        rig.sandbox.clear_faults();
        let report = resumed(&rig.restarted(), &taken).await;
        assert_eq!(outcome(&report), Outcome::Returned, "{report:?}");
        assert_clean(&rig.sandbox, node, strategy);
    }
}

async fn run(rig: &Rig, cases: &[CaseId]) -> CaseReport {
    let stop = CancellationToken::new();
    let reports = rig.orchestrator.run(cases, Until::Ended, &stop).await;
    reports.into_iter().next().unwrap().unwrap()
}
