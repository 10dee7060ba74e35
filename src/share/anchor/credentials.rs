//! S3 credentials: configuration, then environment, then the shared credentials file.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use rusty_s3::Credentials;

use super::Environment;

impl Environment {
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str)
    }
}

/// The configured location of credentials.
#[derive(Clone, Default)]
pub(super) struct Named {
    /// A file in the format of `~/.aws/credentials`.
    pub(super) file: Option<PathBuf>,
    /// The section.
    pub(super) profile: Option<String>,
}

/// Finds credentials; `None` for public access.
pub(super) fn find(named: &Named, around: &Environment) -> Result<Option<Credentials>, Error> {
    let asked = named.file.is_some() || named.profile.is_some();
    if !asked && let (Some(key), Some(secret)) = (around.get("AWS_ACCESS_KEY_ID"), around.get("AWS_SECRET_ACCESS_KEY"))
    {
        return Ok(Some(credentials(key, secret, around.get("AWS_SESSION_TOKEN"))));
    }
    let usual = || around.get("AWS_SHARED_CREDENTIALS_FILE").map(PathBuf::from);
    let usual = || usual().or_else(|| Some(around.home.as_ref()?.join(".aws/credentials")));
    let expand = |file: &Path| match (file.strip_prefix("~"), &around.home) {
        (Ok(rest), Some(home)) => home.join(rest),
        _ => file.to_owned(),
    };
    let Some(file) = named.file.as_deref().map(expand).or_else(usual) else { return Ok(None) };
    let text = match std::fs::read_to_string(&file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound && !asked => return Ok(None),
        other => other.map_err(|error| Error::Read(file.clone(), error))?,
    };
    let profile = named.profile.as_deref().or_else(|| around.get("AWS_PROFILE")).unwrap_or("default");
    let section = section(&text, profile);
    match (section.get("aws_access_key_id"), section.get("aws_secret_access_key")) {
        (Some(key), Some(secret)) => Ok(Some(credentials(key, secret, section.get("aws_session_token").copied()))),
        _ if asked => Err(Error::Profile(file, profile.to_owned())),
        _ => Ok(None),
    }
}

fn credentials(key: &str, secret: &str, token: Option<&str>) -> Credentials {
    match token {
        Some(token) => Credentials::new_with_token(key, secret, token),
        None => Credentials::new(key, secret),
    }
}

/// Parses a section of an INI file.
fn section<'t>(text: &'t str, wanted: &str) -> BTreeMap<&'t str, &'t str> {
    let mut inside = false;
    let mut found = BTreeMap::new();
    for line in text.lines().map(str::trim).filter(|line| !line.starts_with(['#', ';'])) {
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            inside = name.trim() == wanted;
        } else if let (true, Some((key, value))) = (inside, line.split_once('=')) {
            found.insert(key.trim(), value.trim());
        }
    }
    found
}

/// The reason why configured credentials are missing.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum Error {
    #[error("the credentials in {} could not be read", .0.display())]
    Read(PathBuf, #[source] io::Error),
    #[error("{} has no access key and secret in its section [{}]", .0.display(), .1)]
    Profile(PathBuf, String),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_configured_goes_before_the_environment_and_that_before_the_file() {
        let dir = tempfile::tempdir().expect("a folder");
        let file = dir.path().join("credentials");
        let text = "[default]\naws_access_key_id=F\naws_secret_access_key = s\n# [other]\n[other]\naws_access_key_id = O\n\
                    aws_secret_access_key = s=t\naws_session_token = t\n[half]\naws_access_key_id = H\n";
        std::fs::write(&file, text).expect("it can be written");
        let variable = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let in_file = Environment {
            variables: [variable("AWS_SHARED_CREDENTIALS_FILE", file.to_str().expect("plain"))].into(),
            home: None,
        };
        let mut both = in_file.clone();
        both.variables.extend([variable("AWS_ACCESS_KEY_ID", "E"), variable("AWS_SECRET_ACCESS_KEY", "s")]);
        let profile = |name: &str| Named { file: None, profile: Some(name.to_owned()) };
        let key = |named: &Named, around: &Environment| {
            find(named, around).map(|found| found.map(|found| (found.key().to_owned(), found.secret().to_owned())))
        };
        let is = |key: &str, secret: &str| Some((key.to_owned(), secret.to_owned()));
        assert_eq!(key(&Named::default(), &in_file).expect("there"), is("F", "s"));
        assert_eq!(key(&Named::default(), &both).expect("there"), is("E", "s"));
        assert_eq!(key(&profile("other"), &both).expect("there"), is("O", "s=t"));
        assert_eq!(key(&Named::default(), &Environment::default()).expect("none are configured"), None);
        assert!(matches!(key(&profile("half"), &both), Err(Error::Profile(..))));
        let gone = Named { file: Some(dir.path().join("gone")), profile: None };
        assert!(matches!(key(&gone, &both), Err(Error::Read(..))));
    }
}
