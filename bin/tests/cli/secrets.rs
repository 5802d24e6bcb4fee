//! Nothing secret is printed, however much is logged.

use unprovision_testkit::sandbox::Fault;
use unprovision_testkit::sandbox::Service;

use crate::support::{Cloud, finish, quick};

#[tokio::test]
async fn neither_password_nor_token_is_printed() {
    let cloud = Cloud::start(quick(1)).await;
    let password = cloud
        .served()
        .environment()
        .into_iter()
        .find(|(name, _)| *name == "OS_PASSWORD")
        .unwrap()
        .1;
    cloud
        .sandbox()
        .fault(Fault::on(Service::Placement).bad_gateway().times(1));
    let ran = finish(
        cloud
            .command(&["-vvv", "delete", "node-0001", "--yes", "-o", "json"])
            .spawn()
            .unwrap(),
    )
    .await;
    ran.assert_code(0);
    assert!(ran.stderr.lines().count() > 20, "{}", ran.stderr);
    // All of the sandbox's tokens begin so.
    for secret in [password.as_str(), "gAAAA"] {
        assert!(
            !ran.stderr.contains(secret) && !ran.stdout.contains(secret),
            "{secret}"
        );
    }
}
