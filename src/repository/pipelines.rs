//! The pipelines of a repository: added by their bytes, listed, shown.
//!
//! What is added is copied to `handoff/pipelines/<hex>.json` below the common git directory, and a setting names the copy: nobody
//! changes it by editing the file that it was made of, and what was added once can be had by its digest for good.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::Value;

use super::{Error, Repository, read_up_to};
use crate::git::program;
use crate::model::digest::Digest;
use crate::model::json;
use crate::model::pipeline::{MAX_BYTES, Pipelines, Spec, Unusable};
use crate::model::problems::Problems;
use crate::model::registered::{Registered, RegisteredBy};

/// Whether the bytes of a pipeline are one: what `pipeline validate --json` prints.
#[derive(Clone, Debug, Serialize)]
pub struct PipelineVerdict<'a> {
    schema: &'static str,
    /// Whether they are.
    pub valid: bool,
    /// Its id, if they are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<&'a str>,
    /// The digest of the bytes, if they are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hash: Option<Digest>,
    /// How many blocks it has, if they are.
    pub blocks: usize,
    /// The problems that are told.
    pub problems: &'a Problems,
    /// How many more there are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub more: Option<usize>,
}

impl<'a> PipelineVerdict<'a> {
    const SCHEMA: &'static str = "git-handoff.pipeline-validate/1";

    /// Answers what is wrong with the bytes.
    pub fn refused(problems: &'a Problems) -> Self {
        let more = Some(problems.more()).filter(|more| *more > 0);
        Self { schema: Self::SCHEMA, valid: false, id: None, hash: None, blocks: 0, problems, more }
    }

    /// Answers what a pipeline is; `none` are no problems.
    pub fn valid(spec: &'a Spec, none: &'a Problems) -> Self {
        let (id, hash, blocks) = (Some(spec.id.as_str()), Some(spec.digest()), spec.blocks.len());
        Self { schema: Self::SCHEMA, valid: true, id, hash, blocks, problems: none, more: None }
    }
}

/// A pipeline that plans can name now: what `pipeline add --json` prints.
#[derive(Clone, Debug, Serialize)]
pub struct PipelineAdded {
    schema: &'static str,
    /// What plans call it.
    pub id: String,
    /// The digest of its bytes.
    pub hash: Digest,
    /// What plans call just these bytes.
    pub pinned: String,
    /// Whether it was not what is registered under this id already.
    pub added: bool,
    /// The digest of what was registered under this id before, if that was another.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replaced: Option<Digest>,
}

/// What plans can name: what `pipeline list --json` prints.
#[derive(Clone, Debug, Serialize)]
pub struct PipelineList {
    schema: &'static str,
    /// In the order of their ids.
    pub pipelines: Vec<PipelineListed>,
}

/// One of them.
#[derive(Clone, Debug, Serialize)]
pub struct PipelineListed {
    /// What plans call it.
    pub id: String,
    /// The digest of its bytes, where they can be used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hash: Option<Digest>,
    /// What plans call just these bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pinned: Option<String>,
    /// Its blocks in words.
    pub blocks: Vec<String>,
    /// The file that holds it, as the setting names it.
    pub file: String,
    /// Why it cannot be used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// A pipeline: what `pipeline show --json` prints.
#[derive(Clone, Debug, Serialize)]
pub struct PipelineShown {
    schema: &'static str,
    /// What plans call it.
    pub id: String,
    /// The digest of its bytes.
    pub hash: Digest,
    /// What plans call just these bytes.
    pub pinned: String,
    /// Whether its id alone names these bytes.
    pub registered: bool,
    /// Its blocks in words.
    #[serde(skip)]
    pub blocks: Vec<String>,
    /// What its file says.
    pub spec: Value,
}

impl Repository {
    /// Returns the pipelines that plans can name, of which none is read before it is needed.
    pub fn pipelines(&self) -> Pipelines {
        let mut known = Registered::default();
        for (id, registration) in &self.config.pipelines {
            let (path, place, wanted) = (self.below_top(&registration.path), registration.place(), id.clone());
            let file = place.file.clone();
            let read = move || {
                let spec = read(&path, &file)?;
                let other = || format!("is another in {file}: {:?}", spec.id);
                if spec.id == wanted { Ok(spec) } else { Err(other()) }
            };
            known.add(id.clone(), place, Box::new(read));
        }
        Pipelines { known, stored: self.stored_pipelines(), ..Pipelines::default() }
    }

    /// Returns all that were ever added here; a folder that cannot be read holds none.
    fn stored_pipelines(&self) -> Registered<Digest, Spec> {
        let mut stored = Registered::default();
        let folder = self.pipelines_folder();
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let digest = name.to_str().and_then(|name| name.strip_suffix(".json"));
            let Some(digest) = digest.and_then(|hex| format!("sha256:{hex}").parse::<Digest>().ok()) else { continue };
            let path = entry.path();
            let place = RegisteredBy { file: path.display().to_string(), ..RegisteredBy::default() };
            let read = move || {
                let file = path.display().to_string();
                let spec = read(&path, &file)?;
                if spec.digest() == digest { Ok(spec) } else { Err(format!("in {file} was changed")) }
            };
            stored.add(digest, place, Box::new(read));
        }
        stored
    }

    /// Registers a pipeline by its bytes; problems of these are an answer, not a failure.
    ///
    /// Another one that is registered under its id stays to be had by its digest. A failure registers nothing.
    pub fn add_pipeline(&self, bytes: &[u8]) -> Result<Result<PipelineAdded, Problems>, AddError> {
        let spec = match Spec::parse(json::unmarked(bytes)) {
            Ok(spec) => spec,
            Err(problems) => return Ok(Err(problems)),
        };
        self.gate().check("pipeline", bytes).map_err(Error::from)?;
        let before = self.pipelines().known.get(&spec.id).and_then(Result::ok).map(Spec::digest);
        let path = self.pipelines_folder().join(format!("{}.json", spec.digest().hex()));
        store(&path, bytes).map_err(|source| AddError::Write(path.clone(), source))?;
        let added = before != Some(spec.digest());
        if added {
            let key = format!("handoff.pipeline.{}.path", spec.id);
            self.store.git().args(["config", "--local", &key]).arg(&path).run().map_err(AddError::Config)?;
        }
        Ok(Ok(PipelineAdded {
            schema: "git-handoff.pipeline-add/1",
            id: spec.id.clone(),
            hash: spec.digest(),
            pinned: spec.pinned(),
            added,
            replaced: before.filter(|_| added),
        }))
    }

    /// Lists what plans can name, with what of it cannot be used.
    pub fn list_pipelines(&self) -> PipelineList {
        let all = self.pipelines().known;
        let listed = |id: &String| {
            let file = all.place(id).map(|place| place.file.clone()).unwrap_or_default();
            let plain =
                PipelineListed { id: id.clone(), hash: None, pinned: None, blocks: Vec::new(), file, problem: None };
            match all.get(id)? {
                Ok(spec) => Some(PipelineListed {
                    hash: Some(spec.digest()),
                    pinned: Some(spec.pinned()),
                    blocks: in_words(spec),
                    ..plain
                }),
                Err(why) => Some(PipelineListed { problem: Some(why.to_string()), ..plain }),
            }
        };
        PipelineList { schema: "git-handoff.pipelines/1", pipelines: all.names().filter_map(listed).collect() }
    }

    /// Shows the pipeline of an id, of a digest, or of both.
    pub fn show_pipeline(&self, name: &str) -> Result<PipelineShown, Unusable> {
        let all = self.pipelines();
        let by_digest = name.parse::<Digest>().ok();
        let spec = match by_digest {
            None => all.find(name)?,
            Some(digest) => {
                let registered = all.known.names().filter_map(|id| all.known.get(id)?.ok());
                let stored = || all.stored.get(&digest).and_then(Result::ok);
                let mut found = registered.filter(|spec| spec.digest() == digest);
                found.next().or_else(stored).ok_or_else(|| Unusable::Unknown(name.to_owned()))?
            }
        };
        let registered = all.known.get(&spec.id).and_then(Result::ok).is_some_and(|now| now.digest() == spec.digest());
        Ok(PipelineShown {
            schema: "git-handoff.pipeline/1",
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

/// Reads the file of a pipeline; `file` is what people call it.
fn read(path: &Path, file: &str) -> Result<Spec, String> {
    let bytes = read_up_to(path, MAX_BYTES + 1).map_err(|e| format!("could not be read from {file}: {e}"))?;
    Spec::parse(json::unmarked(&bytes)).map_err(|problems| {
        let first = problems.first().map(ToString::to_string).unwrap_or_default();
        format!("in {file} is none: {first}")
    })
}

/// Puts a file in place whole; one that is there has the same bytes, unless somebody changed it.
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

/// Why a pipeline was not registered.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum AddError {
    #[error("the pipeline could not be written to {}", .0.display())]
    Write(PathBuf, #[source] io::Error),
    #[error("the pipeline could not be registered")]
    Config(#[source] program::Error),
    #[error(transparent)]
    Repository(#[from] Error),
}
