//! Parses S3's XML answers. Only the requested element is an answer.

use quick_xml::Reader;
use quick_xml::events::Event;
use serde::Deserialize;

use super::wire::Error;

/// A form of answer with its element.
pub(super) trait Form<'x>: Deserialize<'x> {
    /// The name of the element without a namespace.
    const ROOT: &'static str;
}

/// A list of versions.
#[derive(Deserialize)]
pub(super) struct Listed {
    #[serde(rename = "Prefix")]
    prefix: Option<String>,
    #[serde(rename = "EncodingType")]
    encoding: Option<String>,
    #[serde(rename = "Contents", default)]
    contents: Vec<Object>,
    #[serde(rename = "Version", default)]
    pub(super) versions: Vec<Version>,
    #[serde(rename = "DeleteMarker", default)]
    pub(super) markers: Vec<Object>,
    #[serde(rename = "IsTruncated")]
    truncated: Option<bool>,
    #[serde(rename = "NextKeyMarker")]
    next_key: Option<String>,
    #[serde(rename = "NextVersionIdMarker")]
    next_version: Option<String>,
}

/// One version of an object.
#[derive(Deserialize)]
pub(super) struct Version {
    #[serde(rename = "Key")]
    pub(super) key: String,
    #[serde(rename = "VersionId")]
    pub(super) id: String,
    #[serde(rename = "LastModified")]
    pub(super) at: String,
    #[serde(rename = "Size")]
    pub(super) size: Option<u64>,
}

/// An object's name.
#[derive(Deserialize)]
pub(super) struct Object {
    #[serde(rename = "Key")]
    pub(super) key: String,
}

/// A bucket's lock configuration.
#[derive(Deserialize)]
pub(super) struct Lock {
    #[serde(rename = "ObjectLockEnabled")]
    pub(super) enabled: Option<String>,
}

/// An error.
#[derive(Deserialize)]
pub(super) struct Refusal {
    #[serde(rename = "Code")]
    pub(super) code: String,
    #[serde(rename = "Message", default)]
    pub(super) message: String,
}

impl Form<'_> for Listed {
    const ROOT: &'static str = "ListVersionsResult";
}

impl Form<'_> for Lock {
    const ROOT: &'static str = "ObjectLockConfiguration";
}

impl Form<'_> for Refusal {
    const ROOT: &'static str = "Error";
}

impl Listed {
    /// Decodes encoded names; fails if the list is not the requested one.
    pub(super) fn answering(mut self, prefix: &str) -> Result<Self, Error> {
        if self.encoding.as_deref().is_some_and(|encoding| encoding.eq_ignore_ascii_case("url")) {
            let versions = self.versions.iter_mut().map(|version| &mut version.key);
            let markers = self.markers.iter_mut().map(|marker| &mut marker.key);
            for name in versions.chain(markers).chain(&mut self.prefix).chain(&mut self.next_key) {
                *name = decoded(name).ok_or_else(|| Error::answer(&format!("the name {name} is not URL-encoded")))?;
            }
        }
        if let Some(Object { key }) = self.contents.first() {
            return Err(Error::answer(&format!("it lists the object {key} where versions were asked for")));
        }
        if let Some(other) = self.prefix.as_deref().filter(|given| *given != prefix) {
            return Err(Error::answer(&format!("it lists what begins with {other:?} instead of {prefix:?}")));
        }
        let mut keys = self.versions.iter().map(|version| &version.key).chain(self.markers.iter().map(|one| &one.key));
        match keys.find(|key| !key.starts_with(prefix)) {
            Some(other) => Err(Error::answer(&format!("it lists {other:?}, which does not begin with {prefix:?}"))),
            None => Ok(self),
        }
    }

    /// Returns the start of the next page, or `None` for the last one.
    pub(super) fn next(self) -> Result<Option<(String, String)>, Error> {
        match (self.truncated, self.next_key, self.next_version) {
            (Some(false), ..) | (None, None, None) => Ok(None),
            (_, Some(key), version) => Ok(Some((key, version.unwrap_or_default()))),
            (_, None, _) => Err(Error::answer("it is cut short and does not say where it continues")),
        }
    }
}

/// Parses an answer of the requested form.
pub(super) fn read<'x, T: Form<'x>>(bytes: &'x [u8]) -> Result<T, Error> {
    let text = std::str::from_utf8(bytes).map_err(|_| Error::answer("it is not text"))?;
    if text.trim().is_empty() {
        return Err(Error::answer("it is empty"));
    }
    let root = root(text);
    if root.as_deref() != Some(T::ROOT) {
        // The start of a web page is not worth showing.
        let from = root.and_then(|root| text.find(&format!("<{root}"))).unwrap_or(0);
        return Err(Error::answer(&text[from..]));
    }
    quick_xml::de::from_str(text).map_err(|error| Error::answer(&error.to_string()))
}

/// Returns the error in an answer, if it is one.
pub(super) fn refusal(bytes: &[u8]) -> Option<Refusal> {
    read(bytes).ok()
}

/// Returns the name of the outermost element.
fn root(text: &str) -> Option<String> {
    let mut reader = Reader::from_str(text);
    loop {
        match reader.read_event().ok()? {
            Event::Start(start) | Event::Empty(start) => {
                return Some(String::from_utf8_lossy(start.local_name().as_ref()).into_owned());
            }
            Event::Text(content) if !content.iter().all(u8::is_ascii_whitespace) => return None,
            Event::Decl(_) | Event::DocType(_) | Event::Comment(_) | Event::PI(_) | Event::Text(_) => {}
            _ => return None,
        }
    }
}

/// Decodes a URL-encoded name.
fn decoded(name: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(name.len());
    let mut rest = name.as_bytes();
    while let Some((first, more)) = rest.split_first() {
        rest = more;
        bytes.push(match first {
            b'%' => {
                let (hex, after) = rest.split_at_checked(2)?;
                rest = after;
                u8::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok()?
            }
            b'+' => b' ',
            other => *other,
        });
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(text: &str) -> Result<Listed, String> {
        let read: Listed = read(text.as_bytes()).map_err(|error| error.to_string())?;
        read.answering("git-handoff/a!").map_err(|error| error.to_string())
    }

    #[test]
    fn only_the_form_that_was_asked_for_is_an_answer() {
        let good = "\u{feff}<?xml version=\"1.0\"?>\n<!-- x -->\n<s3:ListVersionsResult xmlns:s3=\"x\"/>";
        assert!(listed(good).is_ok());
        for (text, why) in [
            ("", "it is empty"),
            (" \n", "it is empty"),
            ("ok", "ok"),
            ("<html>\n<p>Sign in</p>", "<html> <p>Sign in</p>"),
            ("<?xml version=\"1.0\"?>\n<!doctype html>\n<html lang=en>x</html>", "<html lang=en>x</html>"),
            ("{\"versions\":[]}", "{\"versions\":[]}"),
            ("<ListBucketResult/>", "<ListBucketResult/>"),
            ("ok <ListVersionsResult/>", "ok <ListVersionsResult/>"),
            (
                "<ListVersionsResult><Contents><Key>k</Key></Contents></ListVersionsResult>",
                "it lists the object k where versions were asked for",
            ),
            (
                "<ListVersionsResult><Prefix>b</Prefix></ListVersionsResult>",
                "it lists what begins with \"b\" instead of \"git-handoff/a!\"",
            ),
            (
                "<ListVersionsResult><DeleteMarker><Key>k</Key></DeleteMarker></ListVersionsResult>",
                "it lists \"k\", which does not begin with \"git-handoff/a!\"",
            ),
        ] {
            assert_eq!(listed(text).err(), Some(format!("the answer is not one of S3's: {why}")), "{text}");
        }
        let cut = "<ListVersionsResult><IsTruncated>false</IsTruncated>";
        assert!(listed(cut).is_err(), "an answer that was cut short");
    }

    #[test]
    fn names_are_decoded_where_the_server_encodes_them() {
        let text = "<ListVersionsResult><EncodingType>url</EncodingType><Prefix>git-handoff/a%21</Prefix>\
            <DeleteMarker><Key>git-handoff%2Fa%213+b</Key></DeleteMarker></ListVersionsResult>";
        assert_eq!(listed(text).unwrap().markers[0].key, "git-handoff/a!3 b");
        assert!(listed(&text.replace("%213", "%2")).is_err());
        assert!(listed(&text.replace("<EncodingType>url</EncodingType>", "")).is_err());
    }

    #[test]
    fn a_page_is_the_last_one_only_where_nothing_follows() {
        let next = |inside: &str| {
            let read: Listed = read(format!("<ListVersionsResult>{inside}</ListVersionsResult>").as_bytes()).unwrap();
            read.next().map_err(|error| error.to_string())
        };
        let place = "<NextKeyMarker>k</NextKeyMarker><NextVersionIdMarker>v</NextVersionIdMarker>";
        assert_eq!(next(""), Ok(None));
        assert_eq!(next("<IsTruncated>false</IsTruncated>"), Ok(None));
        assert_eq!(next(place), Ok(Some(("k".into(), "v".into()))));
        assert!(next("<IsTruncated>true</IsTruncated>").is_err());
    }
}
