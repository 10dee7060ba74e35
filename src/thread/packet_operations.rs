//! Operations on packets: checks one by its name, and writes one from recorded facts.
//!
//! The rules that decide are in [`packet`].

use crate::git::work_tree;
use crate::model::any_error::AnyError;
use crate::model::causes::in_words;
use crate::model::digest::Oid;
use crate::model::format;
use crate::model::name::ThreadId;
use crate::model::packet::{Draft, MAX_BYTES, Packet, Unusable};
use crate::model::thread::{Content, Trail};
use crate::repository::Repository;
use crate::run::query::target::Target;
use crate::run::query::{VerifiedRun, View, documents, revisions};
use crate::thread::packet::auto::thread::{Source, State};
use crate::thread::packet::facts::{self, Absent};
use crate::thread::packet::{self, Report, Terms, auto};
use crate::verify::Gate;

use super::target::ThreadTarget;
use super::{gate as attached, steps, vouch};

/// Checks a packet; without a gate, the facts that it names are unknown.
pub fn check(read: &Result<Packet, Unusable>, gate: Option<&Gate<'_>>, terms: &Terms) -> Report {
    let facts = match read {
        Ok(packet) => facts::look_up(&packet.claims, gate, Absent::Fails, terms.elsewhere),
        Err(_) => packet::no_facts(),
    };
    packet::check(read, facts, terms)
}

/// Checks the packet named `<run>:documents/<name>` or `<thread>[:<checkpoint>]`; returns `None` if
/// the name is neither.
///
/// A missing packet is a report, not an error.
pub fn check_named(gate: &Gate<'_>, text: &str, terms: &Terms) -> Result<Option<Report>, AnyError> {
    match of_document(gate, text)? {
        Some(read) => Ok(Some(check(&read, Some(gate), terms))),
        None => of_thread(gate, text, terms),
    }
}

/// Returns the report for a missing packet.
fn absent(why: &(dyn std::error::Error + 'static)) -> Unusable {
    Unusable::absent(format!("there is no packet: {}", in_words(why)))
}

/// Checks the packet of a thread, or returns `None` if the text names none.
fn of_thread(gate: &Gate<'_>, text: &str, terms: &Terms) -> Result<Option<Report>, AnyError> {
    let store = gate.store;
    let Some(target) = ThreadTarget::look_for(store, text)? else { return Ok(None) };
    let vouched = match target.vouched_by(store, &trust(gate)) {
        Ok(vouched) => vouched,
        Err(why) => return Ok(Some(check(&Err(absent(&*why)), Some(gate), terms))),
    };
    let sound = vouched.sound();
    let read = match steps::find(sound, target.checkpoint.as_ref()) {
        Ok(checkpoint) => attached::read(store, checkpoint).map_err(|why| absent(&*why)),
        Err(why) => Err(absent(&*why)),
    };
    let read = read.and_then(|read| {
        read.unwrap_or_else(|| Err(Unusable::absent("there is no packet: none is attached to the checkpoint".into())))
    });
    let thread = text.split(':').next().map(str::to_owned);
    Ok(Some(attached::report(&read, gate, &sound.trail, Terms { thread, ..terms.clone() })?))
}

/// Returns the trust in threads for a gate.
fn trust(gate: &Gate<'_>) -> vouch::Trust {
    vouch::Trust { options: gate.options.clone(), accept_untrusted: gate.accept_untrusted }
}

/// Reads a packet from a document of a run, or returns `None` if the text names no run.
fn of_document(gate: &Gate<'_>, text: &str) -> Result<Option<Result<Packet, Unusable>>, AnyError> {
    let Some((run, name)) = text.split_once(":documents/") else { return Ok(None) };
    let Some(target) = Target::look_up(gate.store, run)? else { return Ok(None) };
    Ok(Some(read_document(gate, &target, name).unwrap_or_else(|why| Err(absent(&*why)))))
}

fn read_document(gate: &Gate<'_>, target: &Target, name: &str) -> Result<Result<Packet, Unusable>, AnyError> {
    let run = VerifiedRun::read(gate.store, &gate.admit(&target.run, &target.reference)?)?;
    let change = revisions::find(&run, &documents::name(name)?, None)?;
    if change.revision.product.size > MAX_BYTES as u64 {
        return Ok(Err(Unusable::too_large()));
    }
    let mut bytes = Vec::new();
    revisions::give(gate.store, &run, &change, &mut bytes)?;
    Ok(packet::read(&bytes))
}

/// The source of a new packet.
#[derive(Clone, Copy, Debug)]
pub enum Whose<'a> {
    /// A run.
    Run(&'a str),
    /// A thread, with the run it is tied to.
    Thread(&'a str),
}

impl Repository {
    /// Writes a packet from the verified facts of a run or thread; calls `warn` with notes.
    pub fn write_packet(
        &self,
        gate: &Gate<'_>,
        whose: Whose<'_>,
        warn: &mut dyn FnMut(&str),
    ) -> Result<Draft, AnyError> {
        let now = self.environment.clock.now();
        match whose {
            Whose::Run(run) => {
                let run = believed(gate, &Target::find(&self.store, run)?, warn)?;
                let around = self.surroundings(Some(run.state.submitted.base), Some(&run))?;
                Ok(auto::packet(&run, &around, now))
            }
            Whose::Thread(thread) => {
                let target = ThreadTarget::find(&self.store, thread)?;
                let vouched = target.vouched_by(&self.store, &trust(gate))?;
                vouched.warnings().iter().for_each(|warning| warn(warning));
                let sound = vouched.sound();
                let latest = steps::find(sound, None)?;
                let run = self.tied_run(gate, None, &sound.trail, warn)?;
                let around = self.surroundings(latest.content().base, run.as_deref())?;
                let ours = target.reference == format::thread_ref(&target.thread)
                    && self.own_fingerprint() == Some(sound.key.clone());
                let (trail, state) = (&sound.trail, State::Saved(latest));
                let source = Source { name: thread, trail, state, ours, run: run.as_ref() };
                Ok(auto::thread::packet(&source, &around, now))
            }
        }
    }

    /// Writes the packet of a checkpoint with this content, which is to be appended to a thread of
    /// ours; `run` names the run that it will be tied to.
    pub(super) fn write_attached_packet(
        &self,
        gate: &Gate<'_>,
        thread: &ThreadId,
        trail: &Trail,
        content: &Content,
        run: Option<&str>,
        warn: &mut dyn FnMut(&str),
    ) -> Result<Draft, AnyError> {
        let run = self.tied_run(gate, run, trail, warn)?;
        let around = self.surroundings(content.base, run.as_deref())?;
        let state = State::New(content);
        let source = Source { name: thread.as_str(), trail, state, ours: true, run: run.as_ref() };
        Ok(auto::thread::packet(&source, &around, self.environment.clock.now()))
    }

    /// Verifies the named run, or else the run of the latest tied checkpoint, or returns `None`.
    fn tied_run(
        &self,
        gate: &Gate<'_>,
        run_name: Option<&str>,
        trail: &Trail,
        warn: &mut dyn FnMut(&str),
    ) -> Result<Option<VerifiedRun>, AnyError> {
        let target = match (run_name, auto::thread::tie(trail)) {
            (Some(name), _) => Some(Target::find(&self.store, name)?),
            // A missing run is not a fact; an ambiguous one must be named by a person.
            (None, Some(run)) => Target::look_up(&self.store, run.as_str())?,
            (None, None) => None,
        };
        target.map(|target| believed(gate, &target, warn)).transpose()
    }

    /// Returns the facts about the commit that the work began at.
    fn surroundings(&self, base: Option<Oid>, run: Option<&View>) -> Result<auto::Surroundings, AnyError> {
        let store = &self.store;
        let (head, branch) =
            work_tree::head(store).map_err(Error::Head)?.map_or((None, None), |(head, branch)| (Some(head), branch));
        let branch = branch.and_then(|branch| Some(branch.strip_prefix(work_tree::BRANCHES)?.to_owned()));
        let base = base.filter(|base| store.contains(*base));
        let mut past_base = None;
        if let (Some(base), Some(head)) = (base, head) {
            let (base, head) = (base.to_string(), head.to_string());
            if store.git().args(["merge-base", "--is-ancestor", &base, &head]).succeeds()? {
                let count = store.git().args(["rev-list", "--count", &format!("{base}..{head}")]).line()?;
                past_base = count.parse().ok();
            }
        }
        let documents =
            run.map(|run| run.state.documents.names().map(ToString::to_string).collect()).unwrap_or_default();
        Ok(auto::Surroundings { head, branch, base_is_here: base.is_some(), past_base, documents })
    }
}

/// Verifies a run, including the bytes of all products.
fn believed(gate: &Gate<'_>, target: &Target, warn: &mut dyn FnMut(&str)) -> Result<VerifiedRun, AnyError> {
    let admitted = gate.admit_whole(&target.run, &target.reference)?;
    admitted.cautions.iter().for_each(|caution| warn(caution));
    Ok(VerifiedRun::read(gate.store, &admitted)?)
}

errors! {
    /// An error while checking or writing a packet.
    #[derive(Debug, thiserror::Error)] pub enum Error = "head";
    #[from "head"] Head(work_tree::Error);
}
