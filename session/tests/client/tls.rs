//! TLS settings: none of them is silently ignored.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig, crypto};
use unprovision_session::{Auth, Clouds, ConfigError, HttpTransport, RetryPolicy, Service, TransportError};

use super::fake::get;

/// A certificate with its key, both as DER and PEM.
struct Certified {
    cert: CertificateDer<'static>,
    key: KeyPair,
    pem: String,
}

struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    fn certify(&self, name: &str) -> Certified {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        let cert = params.signed_by(&key, &self.0).unwrap();
        Certified {
            cert: cert.der().clone(),
            key,
            pem: cert.pem(),
        }
    }
}

/// Answers 200 to whoever gets through the handshake; returns the URL.
async fn serve(authority: &Authority, demand_client_cert: bool) -> String {
    let own = authority.certify("127.0.0.1");
    let provider = Arc::new(crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider));
    let builder = builder.with_safe_default_protocol_versions().unwrap();
    let builder = if demand_client_cert {
        let mut roots = RootCertStore::empty();
        roots.add(authority.0.der().clone()).unwrap();
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
        builder.with_client_cert_verifier(verifier.build().unwrap())
    } else {
        builder.with_no_client_auth()
    };
    let key = PrivateKeyDer::Pkcs8(own.key.serialize_der().into());
    let acceptor = TlsAcceptor::from(Arc::new(builder.with_single_cert(vec![own.cert], key).unwrap()));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let Ok(mut stream) = acceptor.accept(stream).await else {
                continue;
            };
            let mut head = [0; 4096];
            if stream.read(&mut head).await.is_ok() {
                let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok";
                let _ = stream.write_all(answer).await;
                let _ = stream.shutdown().await;
            }
        }
    });
    url
}

async fn transport(url: &str, settings: &[(&str, &str)]) -> Result<HttpTransport, ConfigError> {
    let clouds = Clouds::new(|_| None)
        .set("auth_type", "none")
        .set("endpoint", url);
    let clouds = settings
        .iter()
        .fold(clouds, |clouds, (key, value)| clouds.set(*key, *value));
    let builder = HttpTransport::builder(Service::Ironic, Auth::new(clouds.load()?)?);
    builder.retry(RetryPolicy::none()).build().await
}

fn write(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    fs::write(&path, text).unwrap();
    path.to_string_lossy().into_owned()
}

#[tokio::test]
async fn a_certificate_is_verified_against_the_named_authority_or_not_at_all() {
    let folder = tempfile::tempdir().unwrap();
    let (authority, other) = (Authority::new(), Authority::new());
    let url = serve(&authority, false).await;
    let good = write(folder.path(), "good.pem", &authority.0.pem());
    let bad = write(folder.path(), "bad.pem", &other.0.pem());
    for (settings, trusted) in [
        (vec![], false),
        (vec![("cacert", bad.as_str())], false),
        (vec![("cacert", good.as_str())], true),
        (vec![("verify", "false")], true),
        (vec![("insecure", "true")], true),
    ] {
        let result = get(&transport(&url, &settings).await.unwrap(), "/").await;
        match result {
            Ok(answer) => assert!(trusted && answer.status() == 200, "{settings:?}"),
            Err(error) => {
                assert!(
                    !trusted && matches!(error, TransportError::NotSent { .. }),
                    "{settings:?} {error:?}"
                );
            }
        }
    }
}

#[tokio::test]
async fn a_client_certificate_is_shown() {
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::new();
    let url = serve(&authority, true).await;
    let own = authority.certify("client");
    let ca = write(folder.path(), "ca.pem", &authority.0.pem());
    let cert = write(folder.path(), "cert.pem", &own.pem);
    let key = write(folder.path(), "key.pem", &own.key.serialize_pem());
    let both = write(
        folder.path(),
        "both.pem",
        &format!("{}{}", own.key.serialize_pem(), own.pem),
    );
    let ca = ("cacert", ca.as_str());
    for settings in [
        vec![ca, ("cert", &cert), ("key", &key)],
        vec![ca, ("cert", &both)],
    ] {
        let answer = get(&transport(&url, &settings).await.unwrap(), "/")
            .await
            .unwrap();
        assert_eq!(answer.status(), 200);
    }
    assert!(get(&transport(&url, &[ca]).await.unwrap(), "/").await.is_err());
}

#[tokio::test]
async fn unusable_files_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let empty = write(folder.path(), "empty.pem", "");
    let authority = write(folder.path(), "cert.pem", &Authority::new().0.pem());
    for (settings, file) in [
        (vec![("cacert", "/nowhere/ca.pem")], "/nowhere/ca.pem"),
        (vec![("cacert", empty.as_str())], "empty.pem"),
        (vec![("cert", "/nowhere/cert.pem")], "/nowhere/cert.pem"),
        (vec![("cert", authority.as_str())], "cert.pem"),
        (
            vec![("cert", authority.as_str()), ("key", empty.as_str())],
            "empty.pem",
        ),
    ] {
        let error = transport("https://127.0.0.1:1", &settings).await.unwrap_err();
        assert!(matches!(error, ConfigError::File { .. }), "{error:?}");
        assert!(error.to_string().contains(file), "{error}");
    }
}
