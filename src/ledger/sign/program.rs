//! Signs with a program: `ssh-keygen`, or the one that `gpg.ssh.program` names.
//!
//! The program is called exactly as git calls it to sign a commit, with the payload in a file: the signing programs of password
//! managers know no other form.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use super::{NAMESPACE, armoured, check, fingerprint};
use ssh_key::{PublicKey, SshSig};

/// The program that signs unless another is configured.
const SSH_KEYGEN: &str = "ssh-keygen";

/// A private key that only a program can use: encrypted, in an agent, or in a password manager.
#[derive(Clone, Debug)]
pub(super) struct Elsewhere {
    /// The file of the key or of its public half, as the program is given it.
    pub(super) key: PathBuf,
    /// The configuration holds the public half itself, so the program must find the private half elsewhere.
    pub(super) literal: bool,
    /// The program, if it is not `ssh-keygen`.
    pub(super) program: Option<OsString>,
}

impl Elsewhere {
    /// Signs bytes; returns the armoured signature without a line end.
    ///
    /// A signature by another key, or over something else, is refused: a program may have mistaken the key.
    pub(super) fn sign(&self, public: &PublicKey, payload: &[u8]) -> Result<String, Error> {
        let program = self.program.clone().unwrap_or_else(|| SSH_KEYGEN.into());
        let name = program.to_string_lossy().into_owned();
        let run = self.run(&program, payload);
        let (said, written) = run.map_err(|source| Error::Run { program: name.clone(), source })?;
        let Some(written) = written else { return Err(Error::Refused { program: name, said }) };
        let wrong = |why: String| Error::Wrong { program: name.clone(), why };
        let signature = SshSig::from_pem(written.trim()).map_err(|error| wrong(error.to_string()))?;
        let armour = armoured(&signature).map_err(|error| wrong(error.to_string()))?;
        let signer = check(payload, &armour).map_err(|error| wrong(error.to_string()))?;
        if signer.key_data() != public.key_data() {
            return Err(wrong(format!("it is by the key {}", fingerprint(&signer))));
        }
        Ok(armour)
    }

    /// Runs the program; returns what it said, and the signature if it made one.
    fn run(&self, program: &OsString, payload: &[u8]) -> io::Result<(String, Option<String>)> {
        let folder = tempfile::TempDir::new()?;
        let payload_file = folder.path().join("payload");
        fs::write(&payload_file, payload)?;
        let mut command = Command::new(program);
        command.args(["-Y", "sign", "-n", NAMESPACE, "-f"]).arg(&self.key);
        if self.literal {
            command.arg("-U");
        }
        let output = command.arg(&payload_file).stdin(Stdio::null()).output()?;
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        if !output.status.success() {
            return Ok((said, None));
        }
        match fs::read_to_string(folder.path().join("payload.sig")) {
            Ok(signature) => Ok((said, Some(signature))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok((said, None)),
            Err(error) => Err(error),
        }
    }
}

/// Why a program did not sign.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum Error {
    #[error("cannot sign: cannot run {program}")]
    Run { program: String, source: io::Error },
    #[error("{program} did not sign: {said}")]
    Refused { program: String, said: String },
    #[error("{program} did not sign with the configured key: {why}")]
    Wrong { program: String, why: String },
}
