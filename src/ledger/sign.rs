//! Signing keys and signatures: SSHSIG over ed25519, in git's namespace, so that plain git can
//! check every entry.

mod algorithm;
pub mod program;

use std::cell::Cell;
use std::ffi::OsString;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use program::Elsewhere;

use ed25519_dalek::{Signature, VerifyingKey};
use signature::Signer as _;
use ssh_key::{Algorithm, HashAlg, LineEnding, PrivateKey, PublicKey, SshSig};

use crate::model::digest::hex;

/// The SSHSIG namespace in which git signs commits.
pub const NAMESPACE: &str = "git";

/// A key that can sign.
#[derive(Clone, Debug)]
pub struct Signer {
    public: PublicKey,
    secret: Secret,
}

#[derive(Clone, Debug)]
enum Secret {
    /// A private key in memory.
    Held(Box<PrivateKey>),
    /// A key that only a program can use.
    Elsewhere(Elsewhere),
}

impl Signer {
    /// Reads a key file: an OpenSSH private key, or a public key whose private half an agent or a
    /// program holds. For a certificate, reads the key beside it.
    pub fn from_file(path: &Path) -> Result<Self, Error> {
        let text = fs::read_to_string(path).map_err(|e| Error::Read(path.to_owned(), e))?;
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
        let other = || algorithm::other_type(text).map(|found| Error::KeyAlgorithm(path.to_owned(), found.to_owned()));
        if let Ok(public) = PublicKey::from_openssh(text.trim()) {
            return Ok(Self { public: ed25519(public, path)?, secret: Secret::Elsewhere(key_elsewhere(path)) });
        }
        if let Some(public) = algorithm::certified(text) {
            return Self::from_certificate(path, &public);
        }
        if !text.contains("-----BEGIN") {
            return Err(other().unwrap_or_else(|| Error::NoKey(path.to_owned())));
        }
        let key = PrivateKey::from_openssh(text.trim_start());
        let key = key.map_err(|e| other().unwrap_or_else(|| Error::Key(path.to_owned(), e)))?;
        let public = ed25519(key.public_key().clone(), path)?;
        let secret =
            if key.is_encrypted() { Secret::Elsewhere(key_elsewhere(path)) } else { Secret::Held(Box::new(key)) };
        Ok(Self { public, secret })
    }

    /// Reads the key of a certificate, which is in the file beside it: `id` or `id.pub` for
    /// `id-cert.pub`.
    fn from_certificate(certificate: &Path, public: &PublicKey) -> Result<Self, Error> {
        let file = certificate.to_str().and_then(|name| name.strip_suffix("-cert.pub"));
        let files = file.into_iter().flat_map(|file| [PathBuf::from(file), PathBuf::from(format!("{file}.pub"))]);
        let mut signers = files.filter_map(|path| Self::from_file(&path).ok());
        let found = signers.find(|signer| signer.public.key_data() == public.key_data());
        found.ok_or_else(|| Error::Certificate(certificate.to_owned(), Box::new(public.clone())))
    }

    /// Reads a public key from `user.signingKey`, whose private half an agent or a program holds.
    ///
    /// Signing programs need a file, so the key is stored in `folder`.
    pub fn from_literal(text: &str, folder: &Path) -> Result<Self, Error> {
        let certified = algorithm::certified(text).map(|public| in_one_line(&public)).transpose()?;
        let text = certified.as_deref().unwrap_or(text).trim();
        if let Some(found) = algorithm::other_type(text) {
            return Err(Error::LiteralAlgorithm(found));
        }
        let path = folder.join("agent_key.pub");
        if fs::read_to_string(&path).ok().as_deref().map(str::trim) != Some(text) {
            fs::create_dir_all(folder)
                .and_then(|()| fs::write(&path, format!("{text}\n")))
                .map_err(|e| Error::Write(path.clone(), e))?;
        }
        let mut signer = Self::from_file(&path)?;
        if let Secret::Elsewhere(elsewhere) = &mut signer.secret {
            elsewhere.literal = true;
        }
        Ok(signer)
    }

    /// Signs with this program instead of `ssh-keygen`, unless the private key is in memory.
    #[must_use]
    pub fn through(mut self, program: Option<&OsString>) -> Self {
        if let Secret::Elsewhere(elsewhere) = &mut self.secret {
            elsewhere.program = program.cloned();
        }
        self
    }

    /// Reads the repository's own key, and creates it on first use.
    ///
    /// The file appears complete, readable only by its owner, or not at all. Two processes that
    /// create it at the same time get the same key.
    pub fn own(path: &Path) -> Result<Self, Error> {
        if path.exists() {
            return Self::from_file(path);
        }
        let mut key = PrivateKey::random(&mut ssh_key::rand_core::OsRng, Algorithm::Ed25519)
            .map_err(|e| Error::Key(path.to_owned(), e))?;
        key.set_comment("git-handoff");
        let text = key.to_openssh(LineEnding::LF).map_err(|e| Error::Key(path.to_owned(), e))?;
        let written = || -> io::Result<()> {
            let dir = path.parent().expect("the key lies in a directory");
            fs::create_dir_all(dir)?;
            // Temporary files have mode 0600.
            let mut file = tempfile::NamedTempFile::new_in(dir)?;
            file.write_all(text.as_bytes())?;
            file.as_file().sync_all()?;
            match file.persist_noclobber(path) {
                Err(lost) if lost.error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
                other => other.map(drop).map_err(|e| e.error),
            }
        };
        written().map_err(|e| Error::Write(path.to_owned(), e))?;
        Self::from_file(path)
    }

    /// Returns `SHA256:<base64>` of the public key.
    pub fn fingerprint(&self) -> String {
        fingerprint(&self.public)
    }

    /// Returns the public key.
    pub fn public(&self) -> &PublicKey {
        &self.public
    }

    /// Signs bytes; returns the armoured signature without a final line end.
    pub fn sign(&self, payload: &[u8]) -> Result<String, Error> {
        match &self.secret {
            Secret::Held(key) => {
                let signature = key.sign(NAMESPACE, HashAlg::Sha512, payload).map_err(Error::Sign)?;
                armoured(&signature).map_err(Error::Sign)
            }
            Secret::Elsewhere(elsewhere) => Ok(elsewhere.sign(&self.public, payload)?),
        }
    }
}

fn key_elsewhere(path: &Path) -> Elsewhere {
    Elsewhere { key: path.to_owned(), literal: false, program: None }
}

impl Signer {
    /// Signs bytes with the bare ed25519 key, for formats other than SSH's.
    ///
    /// Fails for keys that are not in memory: programs only sign in SSH's format.
    pub fn sign_raw(&self, message: &[u8]) -> Result<Vec<u8>, Error> {
        let Secret::Held(key) = &self.secret else { return Err(Error::Bare) };
        let signature = key.key_data().try_sign(message).map_err(|e| Error::Sign(e.into()))?;
        Ok(signature.as_bytes().to_vec())
    }
}

/// Checks an armoured signature over `payload`; returns the key that the signature names.
///
/// The caller decides whether that key may sign.
pub fn check(payload: &[u8], armour: &str) -> Result<PublicKey, Error> {
    let signature = SshSig::from_pem(armour).map_err(Error::Malformed)?;
    // The parser accepts more than OpenSSH. Only OpenSSH's form is accepted, so that a signature
    // has one spelling.
    if armoured(&signature).map_err(Error::Malformed)? != armour {
        return Err(Error::NotExact);
    }
    let public = PublicKey::from(signature.public_key().clone());
    for algorithm in [public.algorithm(), signature.algorithm()] {
        if algorithm != Algorithm::Ed25519 {
            return Err(Error::Algorithm(algorithm.to_string()));
        }
    }
    // OpenSSH leaves the field empty, and requires it to be empty.
    if !signature.reserved().is_empty() {
        return Err(Error::Reserved);
    }
    let signed = SshSig::signed_data(NAMESPACE, signature.hash_alg(), payload).map_err(Error::Malformed)?;
    if signature.namespace() != NAMESPACE || !check_raw(&public, &signed, signature.signature_bytes()) {
        return Err(Error::Bad);
    }
    Ok(public)
}

/// Returns the fingerprint of the key that signed `payload`.
///
/// The caller decides whether that key may sign.
pub fn signer(payload: &[u8], armour: Option<&str>) -> Result<String, Error> {
    Ok(fingerprint(&check(payload, armour.ok_or(Error::Unsigned)?)?))
}

/// Returns the fingerprint of the key that a signature names, without a check of the signature.
///
/// For commits whose signatures were checked before.
pub fn named_signer(armour: Option<&str>) -> Result<String, Error> {
    let signature = SshSig::from_pem(armour.ok_or(Error::Unsigned)?).map_err(Error::Malformed)?;
    Ok(fingerprint(&PublicKey::from(signature.public_key().clone())))
}

/// Returns true if the bytes are a bare ed25519 signature of `key` over `message`. All other checks
/// use this one.
///
/// The check is strict: it rejects keys and R values of small order, with which one signature fits
/// many messages, and keys in a non-canonical encoding. Batch verification would accept them, so it
/// is not used.
pub fn check_raw(key: &PublicKey, message: &[u8], signature: &[u8]) -> bool {
    let Some(key) = key.key_data().ed25519() else { return false };
    let (Some(point), Ok(signature)) = (expand(&key.0), Signature::from_slice(signature)) else { return false };
    point.verify_strict(message, &signature).is_ok()
}

/// Returns the point of a key, or `None` unless the bytes are its only encoding.
fn expand(key: &[u8; 32]) -> Option<VerifyingKey> {
    thread_local! {
        /// The last key: nearly all entries of a chain have the same, and this takes as long as a
        /// third of a check.
        static LAST: Cell<Option<VerifyingKey>> = const { Cell::new(None) };
    }
    if let Some(point) = LAST.get().filter(|point| point.as_bytes() == key) {
        return Some(point);
    }
    let point = VerifyingKey::from_bytes(key).ok().filter(|point| point.to_edwards().compress().0 == *key)?;
    LAST.set(Some(point));
    Some(point)
}

/// Returns the public key in a setting, as git reads it (`key::…`, `ssh-…`), or `None` if the
/// setting names a file.
///
/// Other key types are returned as well, so that the error names the type instead of a missing
/// file.
pub fn literal(setting: &str) -> Option<&str> {
    let others = ["ssh-", "ecdsa-sha2-", "sk-ssh-", "sk-ecdsa-"];
    setting.strip_prefix("key::").or_else(|| others.iter().any(|other| setting.starts_with(other)).then_some(setting))
}

/// Returns 32 random hex digits, for unique names.
pub fn nonce() -> String {
    use ssh_key::rand_core::RngCore as _;
    let mut bytes = [0; 16];
    ssh_key::rand_core::OsRng.fill_bytes(&mut bytes);
    hex(&bytes)
}

/// Returns `SHA256:<base64>` of a public key.
pub fn fingerprint(key: &PublicKey) -> String {
    key.fingerprint(HashAlg::Sha256).to_string()
}

/// Returns a public key in OpenSSH's one-line form.
pub fn in_one_line(key: &PublicKey) -> Result<String, Error> {
    key.to_openssh().map_err(Error::Malformed)
}

/// Returns the fingerprint of a public key in OpenSSH's one-line form. Only ed25519 keys are
/// accepted.
pub fn public_fingerprint(text: &str) -> Result<String, Error> {
    let text = text.trim();
    // Checked before parsing, which fails for other types.
    if let Some(other) = text.split_whitespace().next().filter(|word| *word != Algorithm::Ed25519.as_str()) {
        return Err(Error::KeyType(other.to_owned()));
    }
    let key = PublicKey::from_openssh(text).map_err(Error::MalformedKey)?;
    if key.algorithm() != Algorithm::Ed25519 {
        return Err(Error::KeyType(key.algorithm().to_string()));
    }
    Ok(fingerprint(&key))
}

/// Returns the fingerprint of the public key in a line, or `None` if there is none.
///
/// The line may be in OpenSSH's form, with or without a comment, or in that of an allowed-signers
/// file, as `git handoff key` prints it.
pub fn public_in(line: &str) -> Option<Result<String, Error>> {
    // Principals and options precede the key, and are never key types.
    let words: Vec<&str> = line.split_whitespace().collect();
    let at =
        words.iter().take(3).position(|word| ["ssh-", "ecdsa-", "sk-"].iter().any(|start| word.starts_with(start)))?;
    let key = words.get(at + 1).copied().unwrap_or_default();
    Some(public_fingerprint(&format!("{} {key}", words[at])))
}

/// Returns the line of an allowed-signers file for a key.
pub fn allowed_signers_line(principal: &str, key: &PublicKey) -> Result<String, Error> {
    let mut key = key.clone();
    key.set_comment("");
    let openssh = key.to_openssh().map_err(Error::Malformed)?;
    Ok(format!("{principal} namespaces=\"{NAMESPACE}\" {}", openssh.trim_end()))
}

fn ed25519(key: PublicKey, path: &Path) -> Result<PublicKey, Error> {
    if key.algorithm() == Algorithm::Ed25519 {
        Ok(key)
    } else {
        Err(Error::KeyAlgorithm(path.to_owned(), key.algorithm().to_string()))
    }
}

/// Returns a signature in OpenSSH's form, without a final line end.
fn armoured(signature: &SshSig) -> Result<String, ssh_key::Error> {
    Ok(signature.to_pem(LineEnding::LF)?.trim_end().to_owned())
}

errors! {
    /// An error with keys or signatures.
    #[derive(Debug, thiserror::Error)] pub enum Error = "signing";
    Read(PathBuf, #[source] io::Error): "cannot read the signing key {}" [.0.display()];
    Write(PathBuf, #[source] io::Error): "cannot write the signing key {}" [.0.display()];
    NoKey(PathBuf): "{} holds no OpenSSH key" [.0.display()];
    Certificate(PathBuf, Box<PublicKey>): "{} is a certificate, and its key is not beside it" [.0.display()];
    Key(PathBuf, #[source] ssh_key::Error): "{} is not a usable OpenSSH key" [.0.display()];
    KeyAlgorithm(PathBuf, String):
        "{file} is a key of type {algorithm}; git-handoff signs with ed25519" [file = .0.display(), algorithm = .1];
    LiteralAlgorithm(&'static str): "the configured signing key is of type {0}; git-handoff signs with ed25519";
    Sign(#[source] ssh_key::Error): "signing failed";
    Bare: "this needs a key file without a passphrase: an agent signs in the SSH format only";
    Malformed(#[source] ssh_key::Error): "the signature cannot be read";
    MalformedKey(#[source] ssh_key::Error): "cannot read the key; copy it whole";
    KeyType(String): "the key is of type {0}; git-handoff signs with ed25519";
    Unsigned: "it is not signed";
    NotExact: "the signature is not in the form that OpenSSH writes";
    Reserved: "the signature has a `reserved` field that is not empty";
    Algorithm(String): "the signature is by a {0} key, not ed25519";
    Bad: "the signature does not match";
    #[from "signing"] Program(program::Error);
}
