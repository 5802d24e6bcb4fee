//! Small files and environments, with what they resolve to next to each.

use std::collections::BTreeMap;
use std::fs;

use secrecy::{ExposeSecret, SecretString};

use super::super::Service;
use super::super::cloud_config::{ApplicationCredential, Credentials, Domain, Identity, Named, Scope};
use super::*;

mod cases;

use cases::Case;

fn load(case: &Case, folder: &std::path::Path) -> Result<CloudConfig, ConfigError> {
    for (name, text) in [
        ("clouds", case.clouds),
        ("secure", case.secure),
        ("clouds-public", case.public),
    ] {
        if !text.is_empty() {
            fs::write(folder.join(format!("{name}.yaml")), text).unwrap();
        }
    }
    let lookup = |name: &str| Some(case.env.iter().find(|(own, _)| *own == name)?.1.to_owned());
    let mut clouds = Clouds::new(lookup).directories([folder]);
    for (key, value) in case.set {
        clouds = clouds.set(*key, *value);
    }
    if let Some(name) = case.cloud {
        clouds = clouds.cloud(name);
    }
    clouds.load()
}

fn domain(domain: &Domain) -> String {
    match domain {
        Domain::Id(id) => format!("id:{id}"),
        Domain::Name(name) => name.clone(),
    }
}

fn named(named: &Named) -> String {
    match named {
        Named::Id(id) => format!("id:{id}"),
        Named::Name { name, domain: own } => format!("{name}@{}", domain(own)),
    }
}

/// Who we are, and the secret.
fn identity(identity: &Identity) -> (String, &SecretString) {
    match identity {
        Identity::Password { user, password } => (named(user), password),
        Identity::Token(token) => ("token".to_owned(), token),
        Identity::ApplicationCredential { credential, secret } => {
            let credential = match credential {
                ApplicationCredential::Id(id) => format!("credential id:{id}"),
                ApplicationCredential::Name { name, user } => format!("credential {name} of {}", named(user)),
            };
            (credential, secret)
        }
    }
}

fn describe(config: &CloudConfig) -> BTreeMap<&'static str, String> {
    let mut is = BTreeMap::from([("name", config.name().to_owned())]);
    let nothing = SecretString::default();
    let (user, secret) = match &config.credentials {
        Credentials::Nobody => ("nobody".to_owned(), &nothing),
        Credentials::FixedToken(token) => ("fixed token".to_owned(), token),
        Credentials::HttpBasic { username, password } => (format!("basic {username}"), password),
        Credentials::Keystone {
            auth_url,
            identity: own,
            scope,
        } => {
            is.insert("auth_url", auth_url.to_string());
            let scope = match scope {
                None => "unscoped".to_owned(),
                Some(Scope::System) => "system".to_owned(),
                Some(Scope::Domain(own)) => format!("domain {}", domain(own)),
                Some(Scope::Project(project)) => format!("project {}", named(project)),
            };
            is.insert("scope", scope);
            identity(own)
        }
    };
    is.insert("user", user);
    is.insert("secret", secret.expose_secret().to_owned());
    for service in [Service::Ironic, Service::Placement] {
        let own = config.service(service);
        let endpoint = own.endpoint.as_ref().map_or("catalog", |url| url.as_str());
        let region = own.region.as_deref().unwrap_or("-");
        is.insert(service.name(), format!("{endpoint} {} {region}", own.interface));
    }
    let mut tls = if config.tls.verify {
        "verify".to_owned()
    } else {
        "insecure".to_owned()
    };
    for (name, path) in [
        ("ca", &config.tls.cacert),
        ("cert", &config.tls.cert),
        ("key", &config.tls.key),
    ] {
        if let Some(path) = path {
            tls.push_str(&format!(" {name}={}", path.display()));
        }
    }
    is.insert("tls", tls);
    is
}

#[test]
fn the_matrix() {
    for case in cases::all() {
        let folder = tempfile::tempdir().unwrap();
        let result = load(&case, folder.path());
        let is = match &result {
            Ok(config) => describe(config),
            Err(error) => BTreeMap::from([("error", error.to_string())]),
        };
        assert!(!case.expect.is_empty());
        for (key, expected) in case.expect {
            let expected = expected.replace("FOLDER", &folder.path().to_string_lossy());
            let is = is
                .get(key)
                .unwrap_or_else(|| panic!("{}: no {key}: {is:?}", case.what));
            let fits = if *key == "error" {
                is.contains(&expected)
            } else {
                *is == expected
            };
            assert!(fits, "{}: {key} is `{is}`, not `{expected}`", case.what);
            assert!(!is.contains("s3cr3t"), "{}: {is}", case.what);
        }
    }
}

#[test]
fn the_first_place_with_a_file_wins() {
    let folder = tempfile::tempdir().unwrap();
    let write = |path: &str, region: &str| {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let text = format!("clouds: {{a: {{auth_type: none, region_name: {region}}}}}");
        fs::write(&path, text).unwrap();
        path.to_string_lossy().into_owned()
    };
    let region = |env: &[(&str, &str)]| {
        let lookup = |name: &str| Some(env.iter().find(|(own, _)| *own == name)?.1.to_owned());
        let config = Clouds::new(lookup).cloud("a").load().unwrap();
        config.service(Service::Ironic).region.clone().unwrap()
    };
    let home = folder.path().to_string_lossy().into_owned();
    write(".config/openstack/clouds.yml", "home");
    assert_eq!(region(&[("HOME", &home)]), "home");
    write("xdg/openstack/clouds.json", "xdg");
    let xdg = format!("{home}/xdg");
    assert_eq!(region(&[("HOME", &home), ("XDG_CONFIG_HOME", &xdg)]), "xdg");
    let named = write("elsewhere.yaml", "named");
    assert_eq!(
        region(&[("HOME", &home), ("OS_CLIENT_CONFIG_FILE", &named)]),
        "named"
    );
    let secure = write("secret.yaml", "secure");
    assert_eq!(
        region(&[
            ("OS_CLIENT_CONFIG_FILE", &named),
            ("OS_CLIENT_SECURE_FILE", &secure)
        ]),
        "secure"
    );
}

#[test]
fn debug_shows_no_secret() {
    let clouds = || {
        Clouds::new(|_| None)
            .set("auth_url", "https://ks")
            .set("username", "u")
            .set("password", "s3cr3t")
            .set("token", "s3cr3t")
            .set("application_credential_id", "i")
            .set("application_credential_secret", "s3cr3t")
            .set("baremetal_endpoint_override", "http://h")
    };
    assert!(!format!("{:?}", clouds()).contains("s3cr3t"));
    for auth_type in [
        "password",
        "token",
        "v3applicationcredential",
        "http_basic",
        "admin_token",
        "none",
    ] {
        let config = clouds().set("auth_type", auth_type).load().unwrap();
        let debug = format!("{config:?} {config:#?}");
        assert!(!debug.contains("s3cr3t"), "{debug}");
    }
}
