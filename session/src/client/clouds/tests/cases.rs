//! The matrix itself.

#[derive(Default)]
pub(super) struct Case {
    pub(super) what: &'static str,
    pub(super) clouds: &'static str,
    pub(super) secure: &'static str,
    pub(super) public: &'static str,
    pub(super) env: &'static [(&'static str, &'static str)],
    pub(super) set: &'static [(&'static str, &'static str)],
    pub(super) cloud: Option<&'static str>,
    /// What is resolved, or words of the error under the name `error`.
    pub(super) expect: &'static [(&'static str, &'static str)],
}

const KEYSTONE: &[(&str, &str)] = &[
    ("OS_AUTH_URL", "https://ks"),
    ("OS_USERNAME", "u"),
    ("OS_PASSWORD", "p"),
    ("OS_DEFAULT_DOMAIN", "d"),
];

pub(super) fn all() -> impl Iterator<Item = Case> {
    [
        who_wins(),
        who_we_are(),
        without_keystone(),
        where_and_how(),
        what_is_wrong(),
    ]
    .into_iter()
    .flatten()
}

#[rustfmt::skip]
fn who_wins() -> Vec<Case> {
    const ALL_LAYERS: Case = Case {
        what: "", cloud: Some("a"),
        public: "public-clouds: {vendor: {auth: {auth_url: 'https://public', username: public, password: public, project_name: public}, region_name: public, interface: internal}}",
        clouds: "clouds: {a: {profile: vendor, region_name: clouds, auth: {username: clouds, password: clouds, project_name: clouds}}}",
        secure: "clouds: {a: {auth: {password: secure, project_name: secure}}}",
        env: &[], set: &[], expect: &[],
    };
    vec![
        Case {
            what: "clouds.yaml over its profile, secure.yaml over both",
            expect: &[("auth_url", "https://public/v3"), ("user", "clouds@id:default"), ("secret", "secure"),
                ("scope", "project secure@id:default"), ("ironic", "catalog internal clouds")],
            ..ALL_LAYERS
        },
        Case {
            what: "the environment over the files, and what is set over the environment",
            env: &[("OS_PROJECT_NAME", "env"), ("OS_REGION_NAME", "env"), ("OS_USERNAME", "")],
            set: &[("region-name", "set")],
            expect: &[("user", "clouds@id:default"), ("secret", "secure"), ("scope", "project env@id:default"),
                ("ironic", "catalog internal set")],
            ..ALL_LAYERS
        },
        Case {
            what: "a name in a higher layer hides an id in a lower one, and one kind of scope the other",
            clouds: "clouds: {a: {auth: {auth_url: 'https://ks', user_id: i, password: p, project_id: i, project_domain_id: i}}}",
            env: &[("OS_USERNAME", "n"), ("OS_SYSTEM_SCOPE", "all"), ("OS_USER_DOMAIN_NAME", "N")],
            cloud: Some("a"),
            expect: &[("user", "n@N"), ("scope", "system")],
            ..Case::default()
        },
        Case {
            what: "`auth` wins over the same key beside it, and unknown keys are ignored",
            clouds: "clouds: {a: {password: beside, networks: [{name: x}], identity_api_version: 3, auth: {auth_url: 'https://ks/v3/', username: u, password: p, colour: blue}}}",
            cloud: Some("a"),
            expect: &[("secret", "p"), ("auth_url", "https://ks/v3"), ("scope", "unscoped")],
            ..Case::default()
        },
        Case {
            what: "OS_CLOUD names the cloud, a given name wins over it, and its other spellings work",
            clouds: "clouds: {b: {}, a: {endpoint_type: adminURL, auth: {auth_url: 'https://ks/identity', user_name: u, password: p, tenant-name: t}}}",
            env: &[("OS_CLOUD", "b")], cloud: Some("a"),
            expect: &[("auth_url", "https://ks/identity/v3"), ("user", "u@id:default"),
                ("scope", "project t@id:default"), ("placement", "catalog admin -")],
            ..Case::default()
        },
        Case {
            what: "without a cloud's name the environment alone, whatever the files say",
            clouds: "clouds: {a: {auth: {project_name: p, user_domain_name: n}}}",
            env: KEYSTONE,
            expect: &[("name", "environment"), ("auth_url", "https://ks/v3"), ("user", "u@id:d"), ("scope", "unscoped")],
            ..Case::default()
        },
        Case {
            what: "a cloud that is only in secure.yaml",
            secure: "clouds: {a: {auth_type: none, baremetal_endpoint_override: 'http://h:6385'}}",
            cloud: Some("a"),
            expect: &[("user", "nobody"), ("ironic", "http://h:6385/ public -"), ("placement", "catalog public -")],
            ..Case::default()
        },
    ]
}

#[rustfmt::skip]
fn who_we_are() -> Vec<Case> {
    vec![
        Case {
            what: "a system scope; domains by name; the type with its version",
            clouds: "clouds: {a: {auth_type: v3password, auth: {auth_url: 'https://ks', username: u, password: p, user_domain_name: Heat, system_scope: all}}}",
            cloud: Some("a"),
            expect: &[("user", "u@Heat"), ("scope", "system")],
            ..Case::default()
        },
        Case {
            what: "a domain is the scope if there is no project, and the default of both domains if there is",
            env: KEYSTONE, set: &[("domain_id", "D"), ("user_domain_id", "U")],
            expect: &[("user", "u@id:U"), ("scope", "domain id:D")],
            ..Case::default()
        },
        Case {
            what: "the same with a project",
            env: KEYSTONE, set: &[("domain_name", "D"), ("project_name", "p")],
            expect: &[("user", "u@D"), ("scope", "project p@D")],
            ..Case::default()
        },
        Case {
            what: "ids need no domains",
            env: KEYSTONE, set: &[("user_id", "ui"), ("project_id", "pi")],
            expect: &[("user", "id:ui"), ("scope", "project id:pi")],
            ..Case::default()
        },
        Case {
            what: "a token without a password is used as such",
            env: &[("OS_AUTH_URL", "https://ks"), ("OS_TOKEN", "t"), ("OS_PROJECT_ID", "pi")],
            expect: &[("user", "token"), ("secret", "t"), ("scope", "project id:pi")],
            ..Case::default()
        },
        Case {
            what: "an application credential has its scope, even beside a project",
            clouds: "clouds: {a: {auth_type: v3applicationcredential, auth: {auth_url: 'https://ks', application_credential_id: i, application_credential_secret: s, project_id: pi}}}",
            cloud: Some("a"),
            expect: &[("user", "credential id:i"), ("secret", "s"), ("scope", "unscoped")],
            ..Case::default()
        },
        Case {
            what: "an application credential by its name needs its user",
            env: &[("OS_AUTH_TYPE", "v3applicationcredential"), ("OS_AUTH_URL", "https://ks"), ("OS_USER_ID", "ui"),
                ("OS_APPLICATION_CREDENTIAL_NAME", "n"), ("OS_APPLICATION_CREDENTIAL_SECRET", "s")],
            expect: &[("user", "credential n of id:ui"), ("secret", "s")],
            ..Case::default()
        },
    ]
}

#[rustfmt::skip]
fn without_keystone() -> Vec<Case> {
    vec![
        Case {
            what: "http_basic with a standalone Ironic's endpoint, which is not Placement's",
            env: &[("OS_AUTH_TYPE", "http_basic"), ("OS_ENDPOINT", "http://h:6385/v1/"), ("OS_USERNAME", "u"), ("OS_PASSWORD", "p")],
            expect: &[("user", "basic u"), ("secret", "p"), ("ironic", "http://h:6385/ public -"), ("placement", "catalog public -")],
            ..Case::default()
        },
        Case {
            what: "a fixed token for Placement's noauth2",
            set: &[("auth_type", "admin_token"), ("token", "admin"), ("placement_endpoint", "http://h:8778/")],
            expect: &[("user", "fixed token"), ("secret", "admin"), ("placement", "http://h:8778/ public -")],
            ..Case::default()
        },
        Case {
            what: "none, in its old spelling, with a service's key in its other spelling",
            set: &[("auth_type", "noauth"), ("bare_metal_endpoint", "http://h/baremetal/v1")],
            expect: &[("user", "nobody"), ("ironic", "http://h/baremetal public -")],
            ..Case::default()
        },
    ]
}

#[rustfmt::skip]
fn where_and_how() -> Vec<Case> {
    const REGIONS: &str = "clouds: {a: {auth: {auth_url: 'https://ks', username: u, password: p}, regions: [R1, {name: R2, values: {interface: internal, auth: {auth_url: 'https://r2'}}}]}}";
    vec![
        Case {
            what: "a listed region, with what is different there",
            clouds: REGIONS, cloud: Some("a"), env: &[("OS_REGION_NAME", "R2")],
            expect: &[("auth_url", "https://r2/v3"), ("ironic", "catalog internal R2")],
            ..Case::default()
        },
        Case {
            what: "the same, and the environment over it",
            clouds: REGIONS, cloud: Some("a"), env: &[("OS_REGION_NAME", "R2"), ("OS_INTERFACE", "admin")],
            expect: &[("auth_url", "https://r2/v3"), ("ironic", "catalog admin R2")],
            ..Case::default()
        },
        Case {
            what: "several regions and no choice",
            clouds: REGIONS, cloud: Some("a"),
            expect: &[("error", "cloud `a`: `region_name` is missing: the cloud has the regions R1, R2")],
            ..Case::default()
        },
        Case {
            what: "a region that there is not",
            clouds: REGIONS, cloud: Some("a"), set: &[("region_name", "R3")],
            expect: &[("error", "`R3` is none of the cloud's regions R1, R2")],
            ..Case::default()
        },
        Case {
            what: "the only region of a profile, and settings of single services",
            public: "public-clouds: {v: {regions: [{name: only}]}}",
            clouds: "clouds: {a: {profile: v, placement_interface: internal, placement_region_name: P, auth: {auth_url: 'https://ks', username: u, password: p}}}",
            cloud: Some("a"),
            expect: &[("ironic", "catalog public only"), ("placement", "catalog internal P")],
            ..Case::default()
        },
        Case {
            what: "paths are relative to the file, `~` is the home, and numbers keep their zeros",
            clouds: "clouds: {a: {cacert: tls/ca.pem, cert: ~/c.pem, key: /k.pem, auth: {auth_url: 'https://ks', username: u, password: 0123}}}",
            cloud: Some("a"), env: &[("HOME", "/home/x")],
            expect: &[("tls", "verify ca=FOLDER/tls/ca.pem cert=/home/x/c.pem key=/k.pem"), ("secret", "0123")],
            ..Case::default()
        },
        Case {
            what: "certificates that are not verified, said in one layer's way over the other's",
            clouds: "clouds: {a: {verify: true, auth: {auth_url: 'https://ks', username: u, password: p}}}",
            cloud: Some("a"), env: &[("OS_INSECURE", "1"), ("OS_CACERT", "ca.pem")],
            expect: &[("tls", "insecure ca=ca.pem")],
            ..Case::default()
        },
        Case {
            what: "verify: false",
            clouds: "clouds: {a: {verify: false, auth: {auth_url: 'https://ks', username: u, password: p}}}",
            cloud: Some("a"),
            expect: &[("tls", "insecure")],
            ..Case::default()
        },
    ]
}

#[rustfmt::skip]
fn what_is_wrong() -> Vec<Case> {
    vec![
        Case { what: "nothing at all", expect: &[("error", "no cloud is chosen: name one (OS_CLOUD), or set OS_AUTH_URL or OS_AUTH_TYPE; there are no clouds")], ..Case::default() },
        Case { what: "no choice", clouds: "clouds: {a: , b: }", expect: &[("error", "clouds: a, b")], ..Case::default() },
        Case {
            what: "a wrong name",
            clouds: "clouds: {prod: , test: }", secure: "clouds: {prod: , lab: }", cloud: Some("prd"),
            expect: &[("error", "there is no cloud `prd`, did you mean `prod`?; clouds: lab, prod, test (looked into FOLDER/clouds.yaml)")],
            ..Case::default()
        },
        Case { what: "a name and no file", cloud: Some("a"), expect: &[("error", "FOLDER/clouds.yaml, FOLDER/clouds.yml, FOLDER/clouds.json")], ..Case::default() },
        Case {
            what: "a profile that is built into openstacksdk",
            clouds: "clouds: {a: {profile: vexxhost}}", public: "public-clouds: {vexhost: }", cloud: Some("a"),
            expect: &[("error", "cloud `a` has the profile `vexxhost`, which is in no clouds-public.yaml, did you mean `vexhost`?")],
            ..Case::default()
        },
        Case { what: "a file that is none", env: &[("OS_CLIENT_CONFIG_FILE", "/nowhere/c.yaml")], cloud: Some("a"), expect: &[("error", "/nowhere/c.yaml: OS_CLIENT_CONFIG_FILE names this file")], ..Case::default() },
        Case { what: "a file that is no YAML", clouds: "clouds: {a: [}", cloud: Some("a"), expect: &[("error", "FOLDER/clouds.yaml: not the YAML that is expected here")], ..Case::default() },
        Case { what: "a wrong key of the caller", env: KEYSTONE, set: &[("regionname", "x")], expect: &[("error", "no setting `regionname`, did you mean `region_name`?")], ..Case::default() },
        Case { what: "no password", env: &[("OS_AUTH_URL", "https://ks"), ("OS_USERNAME", "u")], expect: &[("error", "cloud `environment`: `password` is missing")], ..Case::default() },
        Case { what: "no user", env: &[("OS_AUTH_URL", "https://ks"), ("OS_PASSWORD", "p")], expect: &[("error", "`username` is missing: it or `user_id` says who logs in")], ..Case::default() },
        Case { what: "a type that is not supported", env: KEYSTONE, set: &[("auth_type", "v3oidcpassword")], expect: &[("error", "`auth_type` (given explicitly): `v3oidcpassword` is not supported; there are: password,")], ..Case::default() },
        Case { what: "two scopes", clouds: "clouds: {a: {auth: {auth_url: 'https://ks', username: u, password: p, project_id: p, system_scope: all}}}", cloud: Some("a"), expect: &[("error", "`system_scope` (FOLDER/clouds.yaml): there is a project as well")], ..Case::default() },
        Case { what: "a trust", env: KEYSTONE, set: &[("trust_id", "x")], expect: &[("error", "trusts are not supported")], ..Case::default() },
        Case { what: "Identity v2", env: KEYSTONE, set: &[("auth_url", "https://ks/v2.0/")], expect: &[("error", "Identity API v2.0 is gone")], ..Case::default() },
        Case { what: "an interface that there is not", env: KEYSTONE, set: &[("interface", "pubic")], expect: &[("error", "`pubic` is not one of public, internal, admin")], ..Case::default() },
        Case { what: "a switch that is none", env: KEYSTONE, set: &[("verify", "ca.pem")], expect: &[("error", "`verify` (given explicitly): `ca.pem` is neither true nor false")], ..Case::default() },
        Case { what: "a key without its certificate", env: KEYSTONE, set: &[("key", "k.pem")], expect: &[("error", "`cert` is missing")], ..Case::default() },
        Case { what: "a password in a URL", env: KEYSTONE, set: &[("baremetal_endpoint_override", "https://u:s3cr3t@h")], expect: &[("error", "`baremetal_endpoint_override` (given explicitly): a URL must not contain")], ..Case::default() },
    ]
}
