//! Signs with a program: `ssh-keygen`, or the one in `gpg.ssh.program`.
//!
//! The call is exactly the one that git makes to sign a commit, with the payload in a file. The
//! signing programs of password managers support no other call.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use super::{NAMESPACE, armoured, check, fingerprint};
use ssh_key::{PublicKey, SshSig};

const SSH_KEYGEN: &str = "ssh-keygen";

/// A private key that only a program can use: encrypted, in an agent, or in a password manager.
#[derive(Clone, Debug)]
pub(super) struct Elsewhere {
    /// The file of the key or of its public half, passed to the program.
    pub(super) key: PathBuf,
    /// True if the configuration holds the public key itself. Then the program must find the
    /// private key.
    pub(super) literal: bool,
    pub(super) program: Option<OsString>,
}

impl Elsewhere {
    /// Signs bytes; returns the armoured signature without a final line end.
    ///
    /// Rejects a signature by another key or over other bytes, in case the program chose the wrong
    /// key.
    pub(super) fn sign(&self, public: &PublicKey, payload: &[u8]) -> Result<String, Error> {
        let program = self.program.clone().unwrap_or_else(|| SSH_KEYGEN.into());
        let name = program.to_string_lossy().into_owned();
        let run = self.run(&program, payload);
        let (message, written) = run.map_err(|source| Error::Run { program: name.clone(), source })?;
        let Some(written) = written else { return Err(Error::Refused { program: name, message }) };
        let wrong = |why: String| Error::Wrong { program: name.clone(), why };
        let signature = SshSig::from_pem(written.trim()).map_err(|_| wrong("it wrote no SSH signature".to_owned()))?;
        let armour = armoured(&signature).map_err(|error| wrong(error.to_string()))?;
        let signer = check(payload, &armour).map_err(|error| wrong(error.to_string()))?;
        if signer.key_data() != public.key_data() {
            return Err(wrong(format!("it is by the key {}", fingerprint(&signer))));
        }
        Ok(armour)
    }

    /// Runs the program; returns its error output, and the signature if there is one.
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
        let message = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        if !output.status.success() {
            return Ok((message, None));
        }
        match fs::read_to_string(folder.path().join("payload.sig")) {
            Ok(signature) => Ok((message, Some(signature))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok((message, None)),
            Err(error) => Err(error),
        }
    }
}

errors! {
    /// A reason why a program did not sign.
    #[derive(Debug, thiserror::Error)] pub enum Error;
    Run { program: String, source: io::Error }: "cannot sign: cannot run {program}";
    Refused { program: String, message: String }: "{program} did not sign: {message}";
    Wrong { program: String, why: String }: "{program} did not sign with the configured key: {why}";
}
