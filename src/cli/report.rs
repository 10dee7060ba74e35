//! `git handoff report`

use std::io;
use std::path::{Path, PathBuf};

use git_handoff::git::temporary::NewFile;
use git_handoff::git::writable::find_unwritable;
use git_handoff::report::{self, Content, Request, Written};
use git_handoff::repository::Repository;

use super::{Ending, Failure, Output};

/// Write a page that shows runs, carries their evidence and recomputes it
///
/// The page is one HTML file. It makes no request, and reads the same without scripts. A script in
/// it recomputes the evidence in the reader's browser; `node src/report/verify.mjs FILE` does so
/// without one.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The runs and threads
    #[arg(required_unless_present = "script_hash")]
    names: Vec<String>,
    /// Write to this file, or - for standard output [default: NAME.html]
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Include the patches, outputs and artifacts: none, small ones, or all
    #[arg(long, value_name = "WHICH", value_enum, default_value_t = Which::Small)]
    content: Which,
    /// Print Markdown for a comment or a job summary instead
    #[arg(long, conflicts_with_all = ["content", "open"])]
    markdown: bool,
    /// Open the page with the program that git is configured to use
    #[arg(long)]
    open: bool,
    /// Print the SHA-256 of the script of every page that this program writes
    #[arg(long, conflicts_with_all = ["names", "output", "content", "markdown", "open"])]
    script_hash: bool,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Which {
    None,
    Small,
    All,
}

impl Arguments {
    /// Returns true if the command works outside a repository.
    pub(crate) fn works_anywhere(&self) -> bool {
        self.script_hash
    }
}

/// Writes the page.
pub(crate) fn run(arguments: &Arguments, repository: &Repository, output: &mut Output) -> Result<Ending, Failure> {
    if arguments.script_hash {
        output.line(&report::script_hash().to_string());
        return Ok(Ending::Done);
    }
    let content = match arguments.content {
        Which::None => Content::None,
        Which::Small => Content::Small,
        Which::All => Content::All,
    };
    if let Some((folder, error)) = find_unwritable(&repository.store) {
        output.warn(&format!("{} cannot be written ({error}): the logs go along as they are", folder.display()));
    }
    let written = repository.environment.clock.now();
    let request = Request { names: &arguments.names, content, written };
    if arguments.markdown {
        let text = repository.markdown_report(&request)?;
        if let Some(path) = arguments.output.as_deref().filter(|path| *path != Path::new("-")) {
            return save(path, &text, output);
        }
        output.text(&text);
        return Ok(Ending::Done);
    }
    let page = repository.report(&request)?;
    let path = arguments.output.clone().unwrap_or_else(|| default_path(&arguments.names));
    if path == Path::new("-") {
        if output.is_terminal() {
            return Err(Failure::refused("terminal", "a page is nothing for a terminal".into()));
        }
        output.bytes(page.as_bytes());
        return Ok(Ending::Done);
    }
    save(&path, &page, output)?;
    if arguments.open {
        open(&path, repository)?;
    }
    Ok(Ending::Done)
}

/// Writes a file. An existing one is replaced at once, so that it is never half-written.
fn save(path: &Path, text: &str, output: &mut Output) -> Result<Ending, Failure> {
    write_new(path, text).map_err(|error| Failure::io(&format!("cannot write {}", path.display()), &error))?;
    if output.json {
        output.value(&Written::new(path, text));
    }
    output.note(&format!("wrote {}", path.display()));
    Ok(Ending::Done)
}

/// Writes a new file whole.
fn write_new(path: &Path, text: &str) -> io::Result<()> {
    let mut file = NewFile::next_to(path)?;
    file.as_write().write_all(text.as_bytes())?;
    file.place()
}

/// Returns the name of the first run as a file name.
fn default_path(names: &[String]) -> PathBuf {
    let name = names.first().map_or("report", String::as_str);
    PathBuf::from(format!(
        "{}.html",
        name.chars()
            .map(|c| if c.is_alphanumeric() || "-_.".contains(c) { c } else { '-' })
            .collect::<String>()
            .trim_start_matches(['.', '-'])
    ))
}

fn open(path: &Path, repository: &Repository) -> Result<(), Failure> {
    let call = repository.store.git().args(["web--browse", "--config=web.browser"]).arg(path);
    call.run().map(drop).map_err(|error| Failure::from_error("no-browser", &error))
}
