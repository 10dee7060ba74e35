//! Smart HTTP on the loopback: as little of a web server as `git http-backend` needs.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Serves the repositories in a folder without authentication, until the test ends; returns the
/// URL.
pub(super) fn serve(root: &Path) -> String {
    serve_but(root, |_| false)
}

/// As [`serve`], but for requests that are answered with 403, as a proxy does it.
pub(super) fn serve_but(root: &Path, forbids: fn(&Request) -> bool) -> String {
    serve_with(root, "403 Forbidden", forbids)
}

/// As [`serve`], but for requests that are answered with a status.
pub(super) fn serve_with(root: &Path, status: &'static str, when: fn(&Request) -> bool) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let root = root.to_owned();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let root = root.clone();
            std::thread::spawn(move || answer(stream, &root, (status, when)));
        }
    });
    format!("http://{address}")
}

/// One request, handed to git by the rules of CGI.
pub(super) struct Request {
    pub(super) method: String,
    pub(super) path: String,
    pub(super) query: String,
    headers: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
}

impl Request {
    fn read(stream: &TcpStream) -> Option<Self> {
        let mut reader = BufReader::new(stream);
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let mut words = line.split_whitespace();
        let (method, target) = (words.next()?.to_owned(), words.next()?.to_owned());
        let (path, query) = target.split_once('?').unwrap_or((&target, ""));
        let (path, query) = (path.to_owned(), query.to_owned());
        let mut headers = Vec::new();
        loop {
            let mut second_line = String::new();
            reader.read_line(&mut second_line).ok()?;
            let Some((name, value)) = second_line.trim_end().split_once(": ") else { break };
            headers.push((name.to_ascii_lowercase(), value.to_owned()));
        }
        let mut request = Self { method, path, query, headers, body: Vec::new() };
        assert_eq!(request.header("transfer-encoding"), "", "the test's packs are small");
        let length = request.header("content-length").parse().unwrap_or(0);
        request.body = vec![0; length];
        reader.read_exact(&mut request.body).ok()?;
        Some(request)
    }

    fn header(&self, name: &str) -> &str {
        self.headers.iter().find(|(key, _)| key == name).map_or("", |(_, value)| value)
    }
}

fn answer(mut stream: TcpStream, root: &Path, (status, when): (&str, fn(&Request) -> bool)) -> Option<()> {
    let request = Request::read(&stream)?;
    if when(&request) {
        return write!(stream, "HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n").ok();
    }
    let mut child = Command::new("git")
        .arg("http-backend")
        .env_clear()
        .env("PATH", std::env::var_os("PATH")?)
        .env("HOME", PathBuf::from("/nonexistent"))
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_PROJECT_ROOT", root)
        .env("GIT_HTTP_EXPORT_ALL", "1")
        .env("REMOTE_USER", "somebody")
        .env("REQUEST_METHOD", &request.method)
        .env("PATH_INFO", &request.path)
        .env("QUERY_STRING", &request.query)
        .env("CONTENT_TYPE", request.header("content-type"))
        .env("CONTENT_LENGTH", request.body.len().to_string())
        .env("HTTP_CONTENT_ENCODING", request.header("content-encoding"))
        .env("GIT_PROTOCOL", request.header("git-protocol"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let mut stdin = child.stdin.take()?;
    let body = request.body;
    let writer = std::thread::spawn(move || stdin.write_all(&body));
    let out = child.wait_with_output().ok()?.stdout;
    let _ = writer.join();
    let end = out.windows(4).position(|w| w == b"\r\n\r\n")?;
    let head = String::from_utf8_lossy(&out[..end]).into_owned();
    let second_status = head.lines().find_map(|line| line.strip_prefix("Status: ")).unwrap_or("200 OK").to_owned();
    let length = out.len() - end - 4;
    write!(stream, "HTTP/1.1 {second_status}\r\n{head}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n")
        .ok()?;
    stream.write_all(&out[end + 4..]).ok()
}
