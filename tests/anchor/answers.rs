//! A server with scripted answers that records its requests.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// The answer to one request.
pub(crate) struct Answer {
    pub(crate) status: &'static str,
    pub(crate) headers: String,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn ok(body: impl Into<Vec<u8>>) -> Self {
        Self { status: "200 OK", headers: String::new(), body: body.into() }
    }
}

/// A request: its first line and body.
pub(crate) type Asked = Arc<Mutex<Vec<(String, Vec<u8>)>>>;

/// Serves until the test's process ends; returns the URL and the requests.
pub(crate) fn serve(answer: impl Fn(&str, &[u8]) -> Answer + Send + Sync + 'static) -> (String, Asked) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let requests = Asked::default();
    let recorded = requests.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let _ = handle(stream, &answer, &recorded);
        }
    });
    (url, requests)
}

fn handle(mut stream: TcpStream, answer: &dyn Fn(&str, &[u8]) -> Answer, requests: &Asked) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut request = String::new();
    reader.read_line(&mut request)?;
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        if line.trim().is_empty() {
            break;
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let Answer { status, headers, body: content } = answer(request.trim(), &body);
    requests.lock().unwrap().push((request.trim().to_owned(), body));
    write!(stream, "HTTP/1.1 {status}\r\n{headers}Content-Length: {}\r\nConnection: close\r\n\r\n", content.len())?;
    stream.write_all(&content)
}
