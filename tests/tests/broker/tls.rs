//! TLS: our own authority, somebody else's, and a certificate of another host.

use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use tokio_rustls::rustls::{ServerConfig, crypto};
use unprovision_testkit::lab::broker::Broker;

use crate::common::{broker, deaf, listen_once, way_to};

struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    /// A port that speaks TLS with a certificate for this host, and leads to the broker.
    async fn serve(&self, broker: &Broker, host: &str) -> u16 {
        let (plain, way) = way_to(broker).await;
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![host.to_owned()]).unwrap();
        let cert = params.signed_by(&key, &self.0).unwrap();
        let provider = Arc::new(crypto::ring::default_provider());
        let builder = ServerConfig::builder_with_provider(provider);
        let builder = builder.with_safe_default_protocol_versions().unwrap();
        let key = PrivateKeyDer::Pkcs8(key.serialize_der().into());
        let config = builder
            .with_no_client_auth()
            .with_single_cert(vec![cert.der().clone()], key);
        let acceptor = TlsAcceptor::from(Arc::new(config.unwrap()));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move {
            let _way = way;
            while let Ok((here, _)) = listener.accept().await {
                let acceptor = acceptor.clone();
                tokio::spawn(async move {
                    let Ok(mut here) = acceptor.accept(here).await else {
                        return;
                    };
                    let mut there = TcpStream::connect(("127.0.0.1", plain)).await.unwrap();
                    let _ = copy_bidirectional(&mut here, &mut there).await;
                });
            }
        });
        port
    }
}

#[tokio::test]
async fn c20_only_whom_we_trust_is_spoken_to() {
    let broker = broker();
    let settings = broker.settings("tls").unwrap();
    let _ironic = broker.ironic(&settings).await.unwrap();
    let (ours, theirs) = (Authority::new(), Authority::new());
    let right = ours.serve(&broker, "localhost").await;
    let other_host = ours.serve(&broker, "elsewhere.example").await;
    let at = |port: u16, authorities: Option<&Authority>| {
        let mut settings = settings.clone();
        let url = format!("amqps://guest:guest@localhost:{port}/");
        settings.urls = vec![url.parse().unwrap()];
        settings.authorities = authorities.map(|authority| authority.0.pem());
        settings
    };
    listen_once(&at(right, Some(&ours))).await;
    for (settings, what) in [
        (at(right, None), "nobody's authority"),
        (at(right, Some(&theirs)), "another authority"),
        (at(other_host, Some(&ours)), "another host"),
    ] {
        let why = deaf(settings).await;
        assert!(why.contains("certificate"), "{what}: {why}");
    }
}
