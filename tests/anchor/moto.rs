//! A real server of S3 with Object Lock: moto's, from `PyPI`, installed below the target directory
//! by `.ci/moto`.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Headers of a signature and of a locked object.
const SIGNED: &str = "Authorization: AWS4-HMAC-SHA256 Credential=x/20260604/us-east-1/s3/aws4_request, \
                      SignedHeaders=host, Signature=x\r\nx-amz-sdk-checksum-algorithm: SHA256\r\n";

/// A server that forgets everything when it is dropped.
pub(crate) struct Moto {
    child: Child,
    host: String,
}

impl Moto {
    /// Starts one on a port of its own choice.
    pub(crate) fn start() -> Self {
        let mut child = Command::new(installed().join("bin/moto_server"))
            .args(["-H", "127.0.0.1", "-p", "0"])
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let host = lines.by_ref().map_while(Result::ok).find_map(|line| {
            let (_, rest) = line.split_once("Running on http://")?;
            Some(rest.trim().to_owned())
        });
        // It logs every request, so its output must be discarded.
        std::thread::spawn(move || lines.for_each(drop));
        Self { child, host: host.expect("moto's server says where it runs") }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.host)
    }

    /// Sends a request whose signature is none, which it takes all the same; returns the answer's
    /// body.
    pub(crate) fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> String {
        let mut stream = TcpStream::connect(&self.host).unwrap();
        let headers = headers.iter().fold(String::new(), |all, (name, value)| format!("{all}{name}: {value}\r\n"));
        let (host, length) = (&self.host, body.len());
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: {host}\r\nContent-Length: {length}\r\nConnection: close\r\n{SIGNED}"
        );
        write!(stream, "{head}{headers}\r\n{body}").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (answer_head, answer_body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(answer_head.starts_with("HTTP/1.1 2"), "{method} {path}: {answer}");
        answer_body.to_owned()
    }

    /// Makes a bucket whose objects can be locked.
    pub(crate) fn bucket(&self, name: &str) {
        self.send("PUT", &format!("/{name}"), &[("x-amz-bucket-object-lock-enabled", "true")], "");
    }

    /// Returns the path of the only object of a bucket.
    pub(crate) fn only_object(&self, bucket: &str) -> String {
        let listed = self.send("GET", &format!("/{bucket}?list-type=2"), &[], "");
        let keys: Vec<&str> = listed.split("<Key>").skip(1).filter_map(|rest| rest.split("</Key>").next()).collect();
        assert_eq!(keys.len(), 1, "{listed}");
        format!("/{bucket}/{}", keys[0])
    }
}

impl Drop for Moto {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the folder of the virtual environment, and installs it first if it is missing.
fn installed() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join(".ci/moto");
    let output = Command::new(script).arg(folder).stdin(Stdio::null()).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "the tests of S3 need Python with venv, and PyPI, for moto's server: {stderr}");
    folder.join("moto")
}
