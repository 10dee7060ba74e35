//! The only HTTP client: single requests with limits of time and size, without redirects.

use std::sync::Arc;
use std::time::Duration;

use ureq::http::{Request, Response};
use ureq::tls::{RootCerts, TlsConfig};
use ureq::{Agent, Body};

use crate::model::printable::line;

pub(super) use ureq::http::{Method, StatusCode};

/// A client.
pub(super) struct Client {
    agent: Agent,
    within: Duration,
}

/// A response.
pub(super) struct Reply {
    pub(super) status: StatusCode,
    pub(super) body: Vec<u8>,
    headers: ureq::http::HeaderMap,
}

/// The maximum length of an excerpt.
const SHOWN: usize = 120;

impl Reply {
    /// Returns the start of the body on one line, for messages.
    pub(super) fn excerpt(&self) -> String {
        match std::str::from_utf8(&self.body) {
            Ok(text) if text.trim().is_empty() => "it is empty".to_owned(),
            Ok(text) if !text.contains('\0') => shown(text),
            _ => {
                let kind = self.header("content-type").unwrap_or("no type that is said");
                line(&format!("it is {} bytes of {kind}", self.body.len()))
            }
        }
    }

    /// Returns a textual header.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

/// Returns the start of a text on one line.
pub(super) fn shown(text: &str) -> String {
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut short: String = words.chars().take(SHOWN).collect();
    if short.len() < words.len() {
        short.push('…');
    }
    line(&short)
}

impl Client {
    /// Creates a client with a time limit.
    pub(super) fn new(within: Duration) -> Self {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = TlsConfig::builder().unversioned_rustls_crypto_provider(provider);
        let tls = tls.root_certs(RootCerts::PlatformVerifier).build();
        let config = Agent::config_builder()
            .tls_config(tls)
            .timeout_global(Some(within))
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .user_agent(crate::model::format::TOOL)
            .build();
        Self { agent: config.new_agent(), within }
    }

    /// Sends a request. Fails on a redirect or a response above `limit` bytes.
    pub(super) fn ask(
        &self,
        method: Method,
        url: &str,
        headers: &[(&str, &str)],
        body: &[u8],
        limit: u64,
    ) -> Result<Reply, Error> {
        let mut request = Request::builder().method(method).uri(url);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let failed = |error| Error::of(error, self.within, limit);
        let request = request.body(body).map_err(|error| failed(error.into()))?;
        let answer: Response<Body> = self.agent.run(request).map_err(failed)?;
        let (parts, mut body) = answer.into_parts();
        if parts.status.is_redirection() {
            return Err(Error::Redirect(parts.status.as_u16()));
        }
        let body = body.with_config().limit(limit).read_to_vec().map_err(failed)?;
        Ok(Reply { status: parts.status, body, headers: parts.headers })
    }
}

/// The reason for a missing response. It never has the URL, which may contain a signature.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum Error {
    #[error("there was no answer after {0} seconds")]
    Late(u64),
    #[error("the answer is longer than {0} bytes")]
    Long(u64),
    #[error("the answer is a redirect (status {0}), which is not followed")]
    Redirect(u16),
    #[error("it could not be reached: {0}")]
    Unreachable(String),
}

impl Error {
    fn of(error: ureq::Error, within: Duration, limit: u64) -> Self {
        match error {
            ureq::Error::Timeout(_) => Self::Late(within.as_secs()),
            ureq::Error::BodyExceedsLimit(_) => Self::Long(limit),
            ureq::Error::Io(error) if error.kind() == std::io::ErrorKind::TimedOut => Self::Late(within.as_secs()),
            // It would contain the URL.
            ureq::Error::BadUri(_) => Self::Unreachable("its address makes no sense".to_owned()),
            other => Self::Unreachable(other.to_string()),
        }
    }
}
