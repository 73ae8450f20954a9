//! Connections with TLS, to a server whose certificate an authority of the test's own has signed.

use std::fs;
use std::sync::Arc;

use nstance_gce::{ApiError, ApiErrorKind, Operation};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use serde_json::json;

use crate::child::Job;
use crate::server::{Answer, Server};

/// What a server needs, and the authority's certificate as PEM.
fn certificate() -> (Arc<ServerConfig>, String) {
    let authority_key = KeyPair::generate().unwrap();
    let mut authority = CertificateParams::default();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let pem = authority.self_signed(&authority_key).unwrap().pem();
    let issuer = Issuer::new(authority, authority_key);
    let key = KeyPair::generate().unwrap();
    let server = CertificateParams::new(["127.0.0.1".to_owned()]).unwrap();
    let server = server.signed_by(&key, &issuer).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![server.der().clone()],
            PrivateKeyDer::try_from(key.serialize_der()).unwrap(),
        )
        .unwrap();
    (Arc::new(config), pem)
}

#[test]
fn a_certificate_has_to_be_trusted() {
    let (config, authority) = certificate();
    let home = tempfile::tempdir().unwrap();
    let trusted = home.path().join("authority.pem");
    fs::write(&trusted, authority).unwrap();
    let (_, stranger) = certificate();
    let other = home.path().join("other.pem");
    fs::write(&other, stranger).unwrap();
    for (file, trusts) in [(&trusted, true), (&other, false)] {
        let server = Server::start_tls(Arc::clone(&config), |_| Answer::json("{}"));
        let mut job = Job::call(
            &server.url,
            Operation::RegionsGet,
            json!({"project": "p", "region": "r"}),
        );
        job.environment
            .push(("SSL_CERT_FILE", file.to_str().unwrap().to_owned()));
        let answer = job.run(home.path()).remove(0);
        if trusts {
            assert_eq!(answer, Ok(json!({})));
            assert_eq!(server.requests().len(), 1);
        } else {
            let error = answer.unwrap_err();
            assert_eq!(error.kind, ApiErrorKind::Unsent, "{error}");
            assert_eq!(error.code, ApiError::NO_CONNECTION, "{error}");
            assert!(error.message.contains("certificate"), "{error}");
            assert_eq!(server.requests().len(), 0);
        }
    }
}
