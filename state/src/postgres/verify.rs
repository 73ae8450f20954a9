//! How a server's certificate is verified.
//!
//! In: what is asked for, and trusted authorities. Out: a verifier. Must not: trust more than asked
//! for.

use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};

/// What is verified of a server.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Verification {
    /// Nothing: `require`.
    Nothing,
    /// Its authority: `verify-ca`.
    Authority,
    /// Its authority and its name: `verify-full`.
    Full,
}

/// A verifier of certificates.
///
/// Fails if no authority is usable.
pub(super) fn verifier(
    verification: Verification,
    roots: RootCertStore,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<dyn ServerCertVerifier>, String> {
    if verification == Verification::Nothing {
        return Ok(Arc::new(Lenient {
            inner: None,
            provider: Arc::clone(provider),
        }));
    }
    let roots = Arc::new(roots);
    let full = WebPkiServerVerifier::builder_with_provider(roots, Arc::clone(provider))
        .build()
        .map_err(|error| error.to_string())?;
    if verification == Verification::Full {
        return Ok(full);
    }
    Ok(Arc::new(Lenient {
        inner: Some(full),
        provider: Arc::clone(provider),
    }))
}

/// Verifies less than all.
#[derive(Debug)]
struct Lenient {
    /// Verifies the authority, if that is asked for.
    inner: Option<Arc<WebPkiServerVerifier>>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Lenient {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(inner) = &self.inner else {
            return Ok(ServerCertVerified::assertion());
        };
        match inner.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now) {
            // The name is checked after everything else.
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => Ok(ServerCertVerified::assertion()),
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let known = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, cert, dss, known)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let known = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, cert, dss, known)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}
