//! A repository's registered pipelines.
//!
//! `pipeline add` copies the file to `handoff/pipelines/<hex>.json` below the common git directory
//! and registers the copy. Later edits of the original have no effect, and every added version
//! stays available by its digest.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::Value;

use super::{Repository, read_up_to};
use crate::git::program;
use crate::model::any_error::AnyError;
use crate::model::digest::Digest;
use crate::model::json;
use crate::model::pipeline::{MAX_BYTES, Pipelines, Spec, Unusable};
use crate::model::problems::Problems;
use crate::model::registered::{Registered, RegisteredBy};

/// The output of `pipeline validate --json`.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(tag = "schema", rename = "git-handoff.pipeline-validate/1")]
pub struct PipelineVerdict<'a> {
    /// Whether the bytes are a valid pipeline.
    pub valid: bool,
    /// The id, if valid.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<&'a str>,
    /// The digest of the bytes, if valid.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hash: Option<Digest>,
    /// The number of blocks, if valid.
    pub blocks: usize,
    /// The first problems.
    pub problems: &'a Problems,
    /// The number of further problems.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub more: Option<usize>,
}

impl<'a> PipelineVerdict<'a> {
    /// Returns the answer for an invalid pipeline.
    pub fn refused(problems: &'a Problems) -> Self {
        let more = Some(problems.more()).filter(|more| *more > 0);
        Self { valid: false, id: None, hash: None, blocks: 0, problems, more }
    }

    /// Returns the answer for a valid pipeline; `none` is an empty list of problems.
    pub fn valid(spec: &'a Spec, none: &'a Problems) -> Self {
        let (id, hash, blocks) = (Some(spec.id.as_str()), Some(spec.digest()), spec.blocks.len());
        Self { valid: true, id, hash, blocks, problems: none, more: None }
    }
}

/// The output of `pipeline add --json`.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(tag = "schema", rename = "git-handoff.pipeline-add/1")]
pub struct PipelineAdded {
    /// The name that plans refer to.
    pub id: String,
    /// The digest of its bytes.
    pub hash: Digest,
    /// The reference that pins these bytes.
    pub pinned: String,
    /// Whether the registration changed.
    pub added: bool,
    /// The digest that was registered under this id before, if it differs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replaced: Option<Digest>,
}

/// The output of `pipeline list --json`.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(tag = "schema", rename = "git-handoff.pipelines/1")]
pub struct PipelineList {
    /// The pipelines, in order of their ids.
    pub pipelines: Vec<PipelineListed>,
}

/// A listed pipeline.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct PipelineListed {
    /// The name that plans refer to.
    pub id: String,
    /// The digest of its bytes, if usable.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hash: Option<Digest>,
    /// The reference that pins these bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pinned: Option<String>,
    /// A description of its blocks.
    pub blocks: Vec<String>,
    /// The file, as the setting names it.
    pub file: String,
    /// The reason why it cannot be used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// The output of `pipeline show --json`.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(tag = "schema", rename = "git-handoff.pipeline/1")]
pub struct PipelineShown {
    /// The name that plans refer to.
    pub id: String,
    /// The digest of its bytes.
    pub hash: Digest,
    /// The reference that pins these bytes.
    pub pinned: String,
    /// Whether the id alone refers to these bytes.
    pub registered: bool,
    /// A description of its blocks, for people.
    #[serde(skip)]
    pub blocks: Vec<String>,
    /// The content of the file.
    #[cfg_attr(feature = "schemas", schemars(with = "serde_json::Map<String, Value>"))]
    pub spec: Value,
}

impl Repository {
    /// Returns the pipelines that plans can refer to. Each file is read on first use.
    pub fn pipelines(&self) -> Pipelines {
        let mut known = Registered::default();
        for (id, registration) in &self.config.pipelines {
            let (path, place, expected_id) = (self.below_top(&registration.path), registration.place(), id.clone());
            let file = place.file.clone();
            known.add(
                id.clone(),
                place,
                Box::new(move || {
                    let spec = read(&path, &file)?;
                    if spec.id == expected_id { Ok(spec) } else { Err(format!("is another in {file}: {:?}", spec.id)) }
                }),
            );
        }
        Pipelines { known, stored: self.stored_pipelines(), ..Pipelines::default() }
    }

    /// Returns every pipeline that was ever added here; an unreadable folder counts as empty.
    fn stored_pipelines(&self) -> Registered<Digest, Spec> {
        let mut stored = Registered::default();
        let folder = self.pipelines_folder();
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let digest = name.to_str().and_then(|name| name.strip_suffix(".json"));
            let Some(digest) = digest.and_then(|hex| format!("sha256:{hex}").parse::<Digest>().ok()) else { continue };
            let path = entry.path();
            let place = RegisteredBy { file: path.display().to_string(), ..RegisteredBy::default() };
            stored.add(
                digest,
                place,
                Box::new(move || {
                    let file = path.display().to_string();
                    let spec = read(&path, &file)?;
                    if spec.digest() == digest { Ok(spec) } else { Err(format!("in {file} was changed")) }
                }),
            );
        }
        stored
    }

    /// Registers a pipeline. Invalid bytes are reported in the answer, not as an error.
    ///
    /// An earlier pipeline of this id stays available by its digest. An error registers nothing.
    pub fn add_pipeline(&self, bytes: &[u8]) -> Result<Result<PipelineAdded, Problems>, AddError> {
        let spec = match Spec::parse(json::unmarked(bytes)) {
            Ok(spec) => spec,
            Err(problems) => return Ok(Err(problems)),
        };
        self.gate().check("pipeline", bytes).map_err(AnyError::from)?;
        let before = self.pipelines().known.get(&spec.id).and_then(Result::ok).map(Spec::digest);
        let path = self.pipelines_folder().join(format!("{}.json", spec.digest().hex()));
        store(&path, bytes).map_err(|source| AddError::Write(path.clone(), source))?;
        let added = before != Some(spec.digest());
        if added {
            let key = format!("handoff.pipeline.{}.path", spec.id);
            self.store.git().args(["config", "--local", &key]).arg(&path).run().map_err(AddError::Config)?;
        }
        Ok(Ok(PipelineAdded {
            id: spec.id.clone(),
            hash: spec.digest(),
            pinned: spec.pinned(),
            added,
            replaced: before.filter(|_| added),
        }))
    }

    /// Lists the pipelines that plans can refer to, including unusable ones.
    pub fn list_pipelines(&self) -> PipelineList {
        let all = self.pipelines().known;
        PipelineList {
            pipelines: all
                .names()
                .filter_map(|id| {
                    let file = all.place(id).map(|place| place.file.clone()).unwrap_or_default();
                    let plain = PipelineListed {
                        id: id.clone(),
                        hash: None,
                        pinned: None,
                        blocks: Vec::new(),
                        file,
                        problem: None,
                    };
                    match all.get(id)? {
                        Ok(spec) => Some(PipelineListed {
                            hash: Some(spec.digest()),
                            pinned: Some(spec.pinned()),
                            blocks: in_words(spec),
                            ..plain
                        }),
                        Err(why) => Some(PipelineListed { problem: Some(why.to_string()), ..plain }),
                    }
                })
                .collect(),
        }
    }

    /// Shows the pipeline with an id, a digest, or both.
    pub fn show_pipeline(&self, name: &str) -> Result<PipelineShown, Unusable> {
        let all = self.pipelines();
        let by_digest = name.parse::<Digest>().ok();
        let spec = match by_digest {
            None => all.find(name)?,
            Some(digest) => {
                let registered = all.known.names().filter_map(|id| all.known.get(id)?.ok());
                let mut found = registered.filter(|spec| spec.digest() == digest);
                found
                    .next()
                    .or_else(|| all.stored.get(&digest).and_then(Result::ok))
                    .ok_or_else(|| Unusable::Unknown(name.to_owned()))?
            }
        };
        let registered = all.known.get(&spec.id).and_then(Result::ok).is_some_and(|now| now.digest() == spec.digest());
        Ok(PipelineShown {
            id: spec.id.clone(),
            hash: spec.digest(),
            pinned: spec.pinned(),
            registered,
            blocks: in_words(spec),
            spec: spec.to_json(),
        })
    }

    fn pipelines_folder(&self) -> PathBuf {
        self.store.common_dir().join("handoff").join("pipelines")
    }
}

fn in_words(spec: &Spec) -> Vec<String> {
    spec.blocks.iter().map(ToString::to_string).collect()
}

/// Reads a pipeline file; `file` names it in messages.
fn read(path: &Path, file: &str) -> Result<Spec, String> {
    let bytes = read_up_to(path, MAX_BYTES + 1).map_err(|e| format!("could not be read from {file}: {e}"))?;
    Spec::parse(json::unmarked(&bytes)).map_err(|problems| {
        let first = problems.first().map(ToString::to_string).unwrap_or_default();
        format!("in {file} is none: {first}")
    })
}

/// Writes a file atomically. An existing file is kept: its name is the digest of its bytes.
fn store(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if fs::read(path).is_ok_and(|there| there == bytes) {
        return Ok(());
    }
    let folder = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    fs::create_dir_all(folder)?;
    let new = path.with_extension(format!("{}.new", std::process::id()));
    let mut file = fs::File::create(&new)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&new, path)
}

errors! {
    /// An error while registering a pipeline.
    #[derive(Debug, thiserror::Error)] pub enum AddError = "pipeline";
    Write(PathBuf, #[source] io::Error): "the pipeline could not be written to {}" [.0.display()];
    Config(#[source] program::Error): "the pipeline could not be registered";
    #[from] Repository(AnyError);
}
