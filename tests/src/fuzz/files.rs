//! `clouds.yaml`.

use std::path::Path;
use std::sync::LazyLock;

use tempfile::TempDir;
use unprovision_session::Clouds;

#[allow(clippy::expect_used, reason = "without a folder nothing can be tried")]
static FOLDER: LazyLock<TempDir> = LazyLock::new(|| tempfile::tempdir().expect("a folder"));

const PLAIN: &str = "\
clouds:
  prod:
    auth_type: v3applicationcredential
    auth: {auth_url: 'https://keystone.example.org:5000/v3', application_credential_id: a, application_credential_secret: b}
    region_name: north
    interface: internal
    verify: false
    baremetal_endpoint_override: http://[::1]:6385/baremetal/
    baremetal_api_version: '1.99'
";
const SHARED: &str = "\
clouds:
  prod: &prod
    profile: vendor
    auth:
      auth_url: http://keystone:5000
      username: u
      password: 0123
      project_name: p
      user_domain_name: Default
      project_domain_id: default
    regions: [{name: north, values: {interface: admin}}, south]
    cacert: ~/ca.pem
    cert: /c.pem
    key: /k.pem
  other: {<<: *prod, system_scope: all, auth_type: http_basic}
";

pub(super) fn seeds() -> Vec<Vec<u8>> {
    [PLAIN, SHARED].map(|text| text.as_bytes().to_vec()).into()
}

pub(super) fn clouds(input: &[u8]) {
    let folder: &Path = FOLDER.path();
    if std::fs::write(folder.join("clouds.yaml"), input).is_err() {
        return;
    }
    for name in ["prod", "other"] {
        let loaded = Clouds::new(|_| None).cloud(name).directories([folder]).load();
        match loaded {
            Ok(cloud) => assert!(!format!("{cloud:?}").is_empty()),
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
}
