//! Verification of time-stamp tokens: content, signer, and a certificate path to a CA that the
//! verifier trusts.

use cms::cert::CertificateChoices;
use cms::content_info::ContentInfo;
use cms::signed_data::{SignedData, SignerIdentifier, SignerInfo};
use der::asn1::{Int, OctetString};
use der::oid::ObjectIdentifier;
use der::oid::db::{rfc5280, rfc5911, rfc5912};
use der::{Any, Decode as _, Encode as _, Sequence, Tag, Tagged as _};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, SignatureVerificationAlgorithm as Algorithm, TrustAnchor, UnixTime};
use sha2::{Digest as _, Sha256, Sha384, Sha512};
use webpki::ring as algorithms;
use webpki::{EndEntityCert, KeyUsage, VerifiedPath};
use x509_cert::Certificate;
use x509_cert::ext::pkix::name::GeneralName;
use x509_cert::ext::pkix::{ExtendedKeyUsage, KeyUsage as Usage, KeyUsages};
use x509_cert::spki::AlgorithmIdentifierOwned;
use x509_tsp::{Accuracy, MessageImprint};

use crate::model::digest::Digest;
use crate::model::time::Moment;

/// `id-kp-timeStamping`, in certificates.
const TIME_STAMPING: &[u8] = &[0x2b, 6, 1, 5, 5, 7, 3, 8];

/// `id-ct-TSTInfo`
const TST_INFO: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.9.16.1.4");
/// `id-aa-signingCertificate`
const SIGNING_CERTIFICATE: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.9.16.2.12");
/// `id-aa-signingCertificateV2`
const SIGNING_CERTIFICATE_V2: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.9.16.2.47");

/// The accepted signature algorithms.
static ALGORITHMS: &[&dyn Algorithm] = &[
    algorithms::RSA_PKCS1_2048_8192_SHA256,
    algorithms::RSA_PKCS1_2048_8192_SHA384,
    algorithms::RSA_PKCS1_2048_8192_SHA512,
    algorithms::ECDSA_P256_SHA256,
    algorithms::ECDSA_P256_SHA384,
    algorithms::ECDSA_P384_SHA256,
    algorithms::ECDSA_P384_SHA384,
    algorithms::ED25519,
];

/// The trusted CA certificates.
pub(super) struct Roots(Vec<(CertificateDer<'static>, Certificate)>);

impl Roots {
    /// Parses PEM.
    pub(super) fn read(text: &[u8]) -> Result<Self, Error> {
        let roots: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(text).collect();
        let roots =
            roots.ok().filter(|roots: &Vec<CertificateDer<'static>>| !roots.is_empty()).ok_or(Error::NoRoots)?;
        let read = roots.into_iter().map(|root| {
            webpki::anchor_from_trusted_cert(&root).map_err(|_| Error::NoRoots)?;
            let certificate = Certificate::from_der(&root).map_err(|_| Error::NoRoots)?;
            Ok((root, certificate))
        });
        Ok(Self(read.collect::<Result<_, Error>>()?))
    }

    /// Returns the certificates valid at a time, and the number of the others.
    fn anchors(&self, seconds: u64) -> (Vec<TrustAnchor<'_>>, usize) {
        let fit = self.0.iter().filter(|(_, certificate)| is_valid_at(certificate, seconds));
        let anchors: Vec<_> = fit.filter_map(|(root, _)| webpki::anchor_from_trusted_cert(root).ok()).collect();
        let unfit = self.0.len() - anchors.len();
        (anchors, unfit)
    }
}

fn is_valid_at(certificate: &Certificate, seconds: u64) -> bool {
    let validity = &certificate.tbs_certificate.validity;
    let (start, end) = (validity.not_before.to_unix_duration(), validity.not_after.to_unix_duration());
    (start.as_secs()..=end.as_secs()).contains(&seconds) && may_issue(certificate)
}

/// Returns true if a CA certificate permits signing certificates, as far as it says.
fn may_issue(certificate: &Certificate) -> bool {
    key_usage(certificate).is_none_or(|usage| usage.is_ok_and(|usage| usage.key_cert_sign()))
}

fn key_usage(certificate: &Certificate) -> Option<Result<Usage, der::Error>> {
    let mut extensions = certificate.tbs_certificate.extensions.iter().flatten();
    let usage = extensions.find(|extension| extension.extn_id == rfc5280::ID_CE_KEY_USAGE)?;
    Some(Usage::from_der(usage.extn_value.as_bytes()))
}

/// The content of a valid token.
pub(super) struct Stamp {
    pub(super) at: Moment,
    pub(super) nonce: Option<Int>,
}

/// `TSTInfo`, with the time as text, because it may have fractions that the library's
/// `GeneralizedTime` does not support.
#[derive(Sequence)]
struct Info {
    version: u8,
    policy: ObjectIdentifier,
    message_imprint: MessageImprint,
    serial_number: Int,
    gen_time: Any,
    #[asn1(optional = "true")]
    accuracy: Option<Accuracy>,
    #[asn1(default = "Default::default")]
    ordering: bool,
    #[asn1(optional = "true")]
    nonce: Option<Int>,
    #[asn1(context_specific = "0", tag_mode = "EXPLICIT", optional = "true")]
    tsa: Option<GeneralName>,
    #[asn1(context_specific = "1", tag_mode = "IMPLICIT", optional = "true")]
    extensions: Option<x509_cert::ext::Extensions>,
}

/// `SigningCertificate`; only the first certificate counts.
#[derive(Sequence)]
struct SigningCertificate {
    certs: Vec<EssCertId>,
    #[asn1(optional = "true")]
    policies: Option<Any>,
}

#[derive(Sequence)]
struct EssCertId {
    hash: OctetString,
    #[asn1(optional = "true")]
    issuer_serial: Option<Any>,
}

/// `SigningCertificateV2`
#[derive(Sequence)]
struct SigningCertificateV2 {
    certs: Vec<EssCertIdV2>,
    #[asn1(optional = "true")]
    policies: Option<Any>,
}

/// `ESSCertIDv2`; algorithm and issuer are both sequences, distinguished by the field between them.
#[derive(Sequence)]
struct EssCertIdV2 {
    #[asn1(optional = "true")]
    algorithm: Option<AlgorithmIdentifierOwned>,
    hash: OctetString,
    #[asn1(optional = "true")]
    issuer_serial: Option<Any>,
}

/// The parts of a token, unchecked.
struct Content {
    signed: SignedData,
    inner: OctetString,
    info: Info,
}

impl Content {
    fn read(token: &[u8]) -> Result<Self, Error> {
        let content = ContentInfo::from_der(token)?;
        if content.content_type != rfc5911::ID_SIGNED_DATA {
            return Err(Error::NoToken);
        }
        let signed: SignedData = content.content.decode_as()?;
        let inner =
            signed.encap_content_info.econtent.as_ref().filter(|_| signed.encap_content_info.econtent_type == TST_INFO);
        let inner = inner.ok_or(Error::NoToken)?.decode_as::<OctetString>()?;
        let info = Info::from_der(inner.as_bytes())?;
        Ok(Self { signed, inner, info })
    }

    /// Returns the SHA-256 that the token is over, or `None` for another kind of hash.
    fn imprint(&self) -> Option<Digest> {
        let imprint = &self.info.message_imprint;
        let bytes = imprint.hashed_message.as_bytes().try_into().ok();
        bytes.filter(|_| imprint.hash_algorithm.oid == rfc5912::ID_SHA_256).map(Digest::from_bytes)
    }
}

/// Returns the SHA-256 in a token, without verification.
pub(super) fn imprint(token: &[u8]) -> Result<Digest, Error> {
    Content::read(token)?.imprint().ok_or(Error::Imprint)
}

/// Verifies that a token is about a root and by an authority that the roots certify.
pub(super) fn check(token: &[u8], root: &Digest, roots: &Roots) -> Result<Stamp, Error> {
    let content = Content::read(token)?;
    if content.imprint() != Some(*root) {
        return Err(Error::Imprint);
    }
    let Content { signed, inner, info } = content;
    let (at, fraction) = gen_time(&info.gen_time)?;
    let [signer] = signed.signer_infos.0.as_slice() else { return Err(Error::NoToken) };
    let certificates: Vec<&Certificate> = signed
        .certificates
        .iter()
        .flat_map(|set| set.0.iter())
        .filter_map(|choice| match choice {
            CertificateChoices::Certificate(certificate) => Some(certificate),
            CertificateChoices::Other(_) => None,
        })
        .collect();
    let own = certificates.iter().find(|certificate| is_by(signer, certificate)).ok_or(Error::NoCertificate)?;
    let raw = own.to_der()?;
    check_usage(own)?;
    let attributes = check_attributes(signer, inner.as_bytes(), &raw)?;
    let ders: Vec<CertificateDer<'static>> =
        certificates.iter().filter_map(|certificate| Some(CertificateDer::from(certificate.to_der().ok()?))).collect();
    let raw = CertificateDer::from(raw);
    let end = EndEntityCert::try_from(&raw).map_err(|error| Error::Certificate(error.to_string()))?;
    let seconds = u64::try_from(at.seconds()).map_err(|_| Error::Time)?;
    let time = UnixTime::since_unix_epoch(std::time::Duration::from_secs(seconds));
    // The signer's own certificate was checked above; its issuers need not restrict their purpose.
    let usage = KeyUsage::required_if_present(TIME_STAMPING);
    let issuers = |path: &VerifiedPath<'_>| {
        if path
            .intermediate_certificates()
            .all(|issuer| Certificate::from_der(&issuer.der()).is_ok_and(|one| may_issue(&one)))
        {
            Ok(())
        } else {
            Err(webpki::Error::EndEntityUsedAsCa)
        }
    };
    let (anchors, unfit) = roots.anchors(seconds);
    end.verify_for_usage(ALGORITHMS, &anchors, &ders, time, usage, None, Some(&issuers)).map_err(|error| {
        let of_roots = if unfit > 0 { "; a CA certificate of yours was not valid then, or signs none" } else { "" };
        Error::Certificate(format!("{error}{of_roots}"))
    })?;
    let signature = signer.signature.as_bytes();
    if !candidates(signer)?.iter().any(|algorithm| end.verify_signature(*algorithm, &attributes, signature).is_ok()) {
        return Err(Error::Signature);
    }
    Ok(Stamp { at: latest(at, fraction, info.accuracy.as_ref())?, nonce: info.nonce })
}

/// Parses `YYYYMMDDhhmmss[.f…]Z` into a second and microseconds, rounded up.
fn gen_time(any: &Any) -> Result<(Moment, u64), Error> {
    let text = std::str::from_utf8(any.value()).ok().filter(|_| any.tag() == Tag::GeneralizedTime);
    let text = text.and_then(|text| text.strip_suffix('Z')).ok_or(Error::Time)?;
    let (whole, fraction) = text.split_once('.').map_or((text, None), |(whole, fraction)| (whole, Some(fraction)));
    if whole.len() != 14 || !are_digits(whole) || fraction.is_some_and(|fraction| !are_digits(fraction)) {
        return Err(Error::Time);
    }
    let part = |from: usize, to: usize| &whole[from..to];
    let (date, clock) = (
        format!("{}-{}-{}", part(0, 4), part(4, 6), part(6, 8)),
        format!("{}:{}:{}", part(8, 10), part(10, 12), part(12, 14)),
    );
    let stamp: jiff::Timestamp = format!("{date}T{clock}Z").parse().map_err(|_| Error::Time)?;
    let fraction = fraction.unwrap_or_default();
    let micros = format!("{:0<6}", &fraction[..fraction.len().min(6)]).parse::<u64>().map_err(|_| Error::Time)?;
    let rest = fraction.bytes().skip(6).any(|digit| digit != b'0');
    Ok((Moment::from_millis(stamp.as_millisecond()), micros + u64::from(rest)))
}

fn are_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

/// Returns the latest possible second of a token, with the accuracy it states.
fn latest(at: Moment, micros: u64, accuracy: Option<&Accuracy>) -> Result<Moment, Error> {
    let (mut seconds, mut micros) = (0, micros);
    if let Some(Accuracy { seconds: whole, millis, micros: small }) = accuracy {
        seconds = whole.map_or(Ok(0), u32::try_from).map_err(|_| Error::Time)?.into();
        micros += read_fraction(*millis)? * 1000 + read_fraction(*small)?;
    }
    Ok(at.plus_millis((seconds + micros.div_ceil(1_000_000)) * 1000))
}

fn read_fraction(part: Option<i16>) -> Result<u64, Error> {
    match part.map(u64::try_from) {
        None => Ok(0),
        Some(Ok(part @ 0..=999)) => Ok(part),
        Some(_) => Err(Error::Time),
    }
}

fn is_by(signer: &SignerInfo, certificate: &Certificate) -> bool {
    match &signer.sid {
        SignerIdentifier::IssuerAndSerialNumber(id) => {
            id.issuer == certificate.tbs_certificate.issuer
                && id.serial_number == certificate.tbs_certificate.serial_number
        }
        SignerIdentifier::SubjectKeyIdentifier(id) => {
            let extensions = certificate.tbs_certificate.extensions.iter().flatten();
            let mut own = extensions.filter(|e| e.extn_id == rfc5280::ID_CE_SUBJECT_KEY_IDENTIFIER);
            own.any(|e| id.to_der().is_ok_and(|id| id == e.extn_value.as_bytes()))
        }
    }
}

/// The certificate must be critically and only for time stamps, and its key for signatures, if
/// stated.
fn check_usage(certificate: &Certificate) -> Result<(), Error> {
    let signs = KeyUsages::DigitalSignature | KeyUsages::NonRepudiation;
    if let Some(usage) = key_usage(certificate)
        && !(usage.as_ref().is_ok_and(|usage| signs.contains(usage.0) && !usage.0.is_empty()))
    {
        return Err(Error::Usage);
    }
    let mut usages = certificate.tbs_certificate.extensions.iter().flatten();
    let usage = usages.find(|e| e.extn_id == rfc5280::ID_CE_EXT_KEY_USAGE).ok_or(Error::Usage)?;
    let purposes = ExtendedKeyUsage::from_der(usage.extn_value.as_bytes())?;
    let only = matches!(purposes.0.as_slice(), [one] if *one == rfc5280::ID_KP_TIME_STAMPING);
    if usage.critical && only { Ok(()) } else { Err(Error::Usage) }
}

/// The signed attributes must name this content and certificate; returns the signed bytes.
fn check_attributes(signer: &SignerInfo, content: &[u8], certificate: &[u8]) -> Result<Vec<u8>, Error> {
    let attributes = signer.signed_attrs.as_ref().ok_or(Error::Attributes)?;
    let one = |oid: ObjectIdentifier| {
        let mut of = attributes.iter().filter(|attribute| attribute.oid == oid);
        match (of.next().map(|attribute| attribute.values.as_slice()), of.next()) {
            (Some([value]), None) => Some(value),
            _ => None,
        }
    };
    let kind = one(rfc5911::ID_CONTENT_TYPE).ok_or(Error::Attributes)?.decode_as::<ObjectIdentifier>()?;
    let digest = one(rfc5911::ID_MESSAGE_DIGEST).ok_or(Error::Attributes)?.decode_as::<OctetString>()?;
    if kind != TST_INFO || digest.as_bytes() != hash(signer.digest_alg.oid, content)? {
        return Err(Error::Attributes);
    }
    let names_certificate = match (one(SIGNING_CERTIFICATE_V2), one(SIGNING_CERTIFICATE)) {
        (Some(v2), _) => {
            let signing: SigningCertificateV2 = v2.decode_as()?;
            let first = signing.certs.first().ok_or(Error::NotItsCertificate)?;
            let algorithm = first.algorithm.as_ref().map_or(rfc5912::ID_SHA_256, |algorithm| algorithm.oid);
            first.hash.as_bytes() == hash(algorithm, certificate)?
        }
        (None, Some(v1)) => {
            let signing: SigningCertificate = v1.decode_as()?;
            let mut sha1 = gix::hash::hasher(gix::hash::Kind::Sha1);
            sha1.update(certificate);
            let sha1 = sha1.try_finalize().map_err(|_| Error::NotItsCertificate)?;
            signing.certs.first().is_some_and(|first| first.hash.as_bytes() == sha1.as_slice())
        }
        (None, None) => false,
    };
    if !names_certificate {
        return Err(Error::NotItsCertificate);
    }
    Ok(attributes.to_der()?)
}

fn hash(algorithm: ObjectIdentifier, bytes: &[u8]) -> Result<Vec<u8>, Error> {
    match algorithm {
        rfc5912::ID_SHA_256 => Ok(Sha256::digest(bytes).to_vec()),
        rfc5912::ID_SHA_384 => Ok(Sha384::digest(bytes).to_vec()),
        rfc5912::ID_SHA_512 => Ok(Sha512::digest(bytes).to_vec()),
        other => Err(Error::Algorithm(other)),
    }
}

/// Returns the possible signature algorithms of the token.
fn candidates(signer: &SignerInfo) -> Result<&'static [&'static dyn Algorithm], Error> {
    // `rsaEncryption` takes the digest from the preceding field.
    let algorithm = match (signer.signature_algorithm.oid, signer.digest_alg.oid) {
        (rfc5912::RSA_ENCRYPTION, rfc5912::ID_SHA_256) => rfc5912::SHA_256_WITH_RSA_ENCRYPTION,
        (rfc5912::RSA_ENCRYPTION, rfc5912::ID_SHA_384) => rfc5912::SHA_384_WITH_RSA_ENCRYPTION,
        (rfc5912::RSA_ENCRYPTION, rfc5912::ID_SHA_512) => rfc5912::SHA_512_WITH_RSA_ENCRYPTION,
        (other, _) => other,
    };
    match algorithm {
        rfc5912::SHA_256_WITH_RSA_ENCRYPTION => Ok(&ALGORITHMS[0..1]),
        rfc5912::SHA_384_WITH_RSA_ENCRYPTION => Ok(&ALGORITHMS[1..2]),
        rfc5912::SHA_512_WITH_RSA_ENCRYPTION => Ok(&ALGORITHMS[2..3]),
        rfc5912::ECDSA_WITH_SHA_256 | rfc5912::ECDSA_WITH_SHA_384 => Ok(&ALGORITHMS[3..7]),
        other => Err(Error::Algorithm(other)),
    }
}

errors! {
    /// The reason why a token is invalid.
    #[derive(Debug, thiserror::Error)] pub enum Error = "time-stamp";
    NoRoots "bad-ca": "the file of CA certificates holds none that can be read";
    Der(#[from] der::Error): "the time stamp cannot be read: {0}";
    NoToken: "it is no time stamp";
    Imprint: "the time stamp is over something else than the root";
    Time: "the time in the time stamp makes no sense";
    NoCertificate: "the certificate of its signer is not in the time stamp";
    Usage: "the certificate of its signer is not critically, and only, for time stamps";
    Attributes: "what is signed is not about the content of the time stamp";
    NotItsCertificate: "the time stamp does not name the certificate of its signer";
    Certificate(String): "the certificate of its signer is not vouched for: {0}";
    Algorithm(ObjectIdentifier): "the algorithm {0} is not supported";
    Signature: "the signature of the time stamp does not match";
}

#[cfg(test)]
mod tests;
