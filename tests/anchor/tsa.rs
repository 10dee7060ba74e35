//! A time-stamping authority: `openssl ts` behind a few lines of HTTP, with a CA of its own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use super::answers::{Answer, serve};

/// The names and purposes of the certificates, and how tokens are made.
const SETTINGS: &str = "\
[req]
distinguished_name = name
prompt = no
[name]
CN = Nobody
[ca]
basicConstraints = critical, CA:TRUE
keyUsage = critical, keyCertSign
[stamps]
basicConstraints = CA:FALSE
extendedKeyUsage = critical, timeStamping
subjectKeyIdentifier = hash
[loose]
basicConstraints = CA:FALSE
extendedKeyUsage = timeStamping
[more]
basicConstraints = CA:FALSE
extendedKeyUsage = critical, timeStamping, codeSigning
[tsa]
default_tsa = one
[one]
serial = serial
crypto_device = builtin
signer_cert = stamps.pem
signer_key = stamps.key
signer_digest = sha256
default_policy = 1.2.3.4
digests = sha256
ess_cert_id_alg = sha256
accuracy = secs:1
";

/// The files of an authority.
#[derive(Clone)]
pub(super) struct Authority {
    dir: PathBuf,
}

impl Authority {
    /// Makes one whose keys are of this kind, as `openssl genpkey` names them.
    pub(super) fn new(dir: &Path, key: &[&str]) -> Self {
        fs::create_dir_all(dir).unwrap();
        let own = Self { dir: dir.to_owned() };
        fs::write(dir.join("settings"), SETTINGS).unwrap();
        fs::write(dir.join("serial"), "01").unwrap();
        own.openssl(&[&["genpkey", "-out", "ca.key"], key].concat());
        let ca = ["req", "-x509", "-new", "-config", "settings", "-extensions", "ca", "-subj", "/CN=CA", "-days", "30"];
        own.openssl(&[&ca[..], &["-key", "ca.key", "-out", "ca.pem"]].concat());
        for (serial, name) in [("2", "stamps"), ("3", "loose"), ("4", "more")] {
            let (private, request, out) = (format!("{name}.key"), format!("{name}.csr"), format!("{name}.pem"));
            own.openssl(&[&["genpkey", "-out", private.as_str()], key].concat());
            let subject = format!("/CN={name}");
            own.openssl(&["req", "-new", "-config", "settings", "-subj", &subject, "-key", &private, "-out", &request]);
            let sign = ["x509", "-req", "-in", &request, "-CA", "ca.pem", "-CAkey", "ca.key", "-set_serial", serial];
            let how = ["-extfile", "settings", "-extensions", name, "-days", "30", "-out", &out];
            own.openssl(&[&sign[..], &how[..]].concat());
        }
        own
    }

    /// Makes a further CA under the first, with these extensions; from now on stamps are made under
    /// it.
    pub(super) fn under(&self, extensions: &str) {
        fs::write(self.dir.join("middle.ext"), format!("[middle]\n{extensions}")).unwrap();
        let own = |request: &str, ca: &str, from: &str, name: &str| {
            let (key, out) = (ca.replace(".pem", ".key"), format!("{name}.pem"));
            let sign = ["x509", "-req", "-in", request, "-CA", ca, "-CAkey", &key, "-set_serial", "9", "-days", "30"];
            self.openssl(&[&sign[..], &["-extfile", from, "-extensions", name, "-out", &out]].concat());
        };
        fs::copy(self.dir.join("loose.key"), self.dir.join("middle.key")).unwrap();
        self.openssl(&["req", "-new", "-config", "settings", "-subj", "/CN=middle", "-key", "middle.key", "-out", "m"]);
        own("m", "ca.pem", "middle.ext", "middle");
        own("stamps.csr", "middle.pem", "settings", "stamps");
        let settings = fs::read_to_string(self.dir.join("settings")).unwrap();
        fs::write(self.dir.join("settings"), settings + "certs = middle.pem\n").unwrap();
    }

    /// Exchanges the CA's own certificate for one that ended a day ago.
    pub(super) fn end_ca(&self) {
        self.openssl(&["req", "-new", "-config", "settings", "-subj", "/CN=CA", "-key", "ca.key", "-out", "ca.csr"]);
        let sign = ["x509", "-req", "-in", "ca.csr", "-signkey", "ca.key", "-days", "-1"];
        self.openssl(&[&sign[..], &["-extfile", "settings", "-extensions", "ca", "-out", "ca.pem"]].concat());
    }

    pub(super) fn ca(&self) -> String {
        self.dir.join("ca.pem").to_str().unwrap().to_owned()
    }

    /// Serves until the test's process ends; `bend` may make something else of an answer. Returns
    /// the URL.
    pub(super) fn serve(&self, bend: impl Fn(Vec<u8>) -> Vec<u8> + Send + Sync + 'static) -> String {
        let own = Arc::new(self.clone());
        let (url, _) = serve(move |_, query| Answer::ok(bend(own.reply(query))));
        format!("{url}/tsr")
    }

    /// Answers a request.
    pub(super) fn reply(&self, query: &[u8]) -> Vec<u8> {
        fs::write(self.dir.join("query"), query).unwrap();
        self.openssl(&["ts", "-reply", "-config", "settings", "-queryfile", "query", "-out", "reply"]);
        fs::read(self.dir.join("reply")).unwrap()
    }

    /// Signs a modified token with one of the certificates.
    pub(super) fn forge(&self, token: &[u8], signer: &str, bend: impl FnOnce(Vec<u8>) -> Vec<u8>) -> Vec<u8> {
        fs::write(self.dir.join("token"), token).unwrap();
        self.openssl(&["cms", "-verify", "-noverify", "-inform", "DER", "-in", "token", "-out", "info"]);
        fs::write(self.dir.join("info"), bend(fs::read(self.dir.join("info")).unwrap())).unwrap();
        let (certificate, key) = (format!("{signer}.pem"), format!("{signer}.key"));
        let sign = ["cms", "-sign", "-binary", "-nodetach", "-cades", "-md", "sha256", "-outform", "DER"];
        let what = ["-econtent_type", "1.2.840.113549.1.9.16.1.4", "-in", "info", "-signer", &certificate];
        self.openssl(&[&sign[..], &what[..], &["-inkey", &key, "-out", "forged"]].concat());
        fs::read(self.dir.join("forged")).unwrap()
    }

    pub(super) fn openssl(&self, args: &[&str]) {
        let mut command = Command::new("openssl");
        let output = command.args(args).current_dir(&self.dir).stdin(Stdio::null()).output();
        let output = output.expect("the tests of time stamps need the program openssl");
        assert!(output.status.success(), "openssl {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
}
