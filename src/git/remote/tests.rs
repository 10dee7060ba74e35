//! Tests of words that name remotes, and of URLs in messages.

use super::*;

#[test]
fn a_password_in_a_url_is_not_shown() {
    assert_eq!(without_password("https://ada:secret@host/x@y"), "https://ada:…@host/x@y");
    for plain in ["https://ada@host/x", "host:x", "/a/b", "https://host/a:b@c"] {
        assert_eq!(without_password(plain), plain);
    }
}

#[test]
fn words_become_remotes_as_git_would_take_them() {
    let mut remotes = Remotes {
        settings: [setting("remote.hub.url", "x"), setting("remote.team/a.url", "y")].into(),
        branch: Some("main".into()),
    };
    assert_eq!(remotes.names(), ["hub", "team/a"]);
    assert_eq!(remotes.default(false), "origin");
    remotes.settings.extend([setting("branch.main.remote", "hub"), setting("remote.pushdefault", "team/a")]);
    assert_eq!((remotes.default(false).as_str(), remotes.default(true).as_str()), ("hub", "team/a"));
    let url = remotes.find("https://host/x/project.git").expect("it is a URL");
    assert!(url.name.starts_with("project-") && !url.configured, "{url:?}");
    assert!(remotes.find("host:project").is_ok());
    for word in ["nowhere", "--upload-pack=x", "-host:x", "a/b:c"] {
        assert!(matches!(remotes.find(word), Err(Error::Unknown(_))), "{word}");
    }
}

fn setting(key: &str, value: &str) -> (String, String) {
    (key.to_owned(), value.to_owned())
}
