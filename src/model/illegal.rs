//! Why an event may not follow what came before it.

use super::name::{FilePath, ItemId};
use super::plan::ProductKey;

/// Why an event may not follow what came before it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Illegal {
    /// The run is sealed.
    #[error("an entry follows the seal")]
    AfterSeal,
    /// The event does not belong at this place of a run's chain.
    #[error("a {0} entry does not belong here")]
    Misplaced(&'static str),
    /// The plan has no such item.
    #[error("item {0:?} is not in the plan")]
    UnknownItem(ItemId),
    /// The item has no running attempt.
    #[error("item {0:?} has no running attempt")]
    NotRunning(ItemId),
    /// The item's status does not allow the event.
    #[error("the event does not fit the status of item {0:?}")]
    NotWaiting(ItemId),
    /// The attempt is not the one that is due.
    #[error("item {0:?}: attempt {1} is out of order")]
    WrongAttempt(ItemId, u32),
    /// The reason does not fit the kind.
    #[error("item {0:?}: the reason does not fit the kind of entry")]
    WrongReason(ItemId),
    /// The plan allows no further attempt.
    #[error("item {0:?} was dispatched more often than the plan allows, which is {1} times")]
    NoAttemptLeft(ItemId, u32),
    /// A declared product was not made.
    #[error("item {0:?} is done without the product {1} that it declares")]
    NotProduced(ItemId, ProductKey),
    /// A process does not end like this, or not one whose item is done.
    #[error("item {0:?}: its exit is not one code or one signal, or not 0 although the item is done")]
    WrongExit(ItemId),
    /// A dependency is not done.
    #[error("item {0:?} was dispatched before {1:?} was done")]
    BeforeDependency(ItemId, ItemId),
    /// Another item holds the lock.
    #[error("item {0:?} was dispatched while another item held the lock {1:?}")]
    LockHeld(ItemId, String),
    /// The item was skipped although no dependency was lost.
    #[error("item {0:?} was skipped although everything it depends on is done or open")]
    SkippedForNothing(ItemId),
    /// An attempt was dispatched of what only people decide.
    #[error("item {0:?} was dispatched, and it waits for people to decide")]
    ForPeople(ItemId),
    /// Somebody decided about an item that is none of those.
    #[error("item {0:?} was decided, and it waits for nobody's decision")]
    NotForPeople(ItemId),
    /// What was decided about is not what there is.
    #[error("item {0:?} was decided for other products than those that it depends on")]
    OtherProducts(ItemId),
    /// What becomes of an item does not follow from what was decided.
    #[error("item {0:?} was decided, and its status does not follow from that")]
    WrongStatus(ItemId),
    /// The key is not one of those that the item waits for.
    #[error("item {0:?} is not for the key {1} to decide: it is not one of the item's `approvers`")]
    NotApprover(ItemId, String),
    /// One key has one vote.
    #[error("item {0:?} is not for the key {2} to decide: it decided {1:?} about the same products")]
    SecondVote(ItemId, ItemId, String),
    /// A statement was taken in twice.
    #[error("what somebody said was taken in a second time")]
    SaidBefore,
    /// The key has the role.
    #[error("the key {0} was admitted a second time for the same")]
    AdmittedBefore(String),
    /// The run was closed or cancelled.
    #[error("a key was admitted after the run was closed or cancelled")]
    AdmittedAfterEnd,
    /// What was taken from another run was not run, and is done.
    #[error("item {0:?} was taken from another run, and yet it is not done, or a process of it ended")]
    RanAndReused(ItemId),
    /// A failed item has products.
    #[error("item {0:?} failed and yet has products")]
    ProductsOfFailed(ItemId),
    /// The documents that an item hands over are not those of the plan.
    #[error("item {0:?} does not hand over the document {1:?} as the plan says")]
    DocumentOfItem(ItemId, FilePath),
    /// The revision is not the one that is due.
    #[error("document {0:?}: revision {1} is out of order")]
    WrongRevision(FilePath, u64),
    /// The revision does not follow the one that is there.
    #[error("document {0:?}: revision {1} does not name the one before it")]
    WrongPrevious(FilePath, u64),
    /// The name of a document clashes with another's.
    #[error("the documents {0:?} and {1:?} cannot stand side by side")]
    NoPlace(FilePath, FilePath),
    /// The run was closed or cancelled before a document was written.
    #[error("document {0:?} was written after the run was closed or cancelled")]
    WrittenAfterEnd(FilePath),
    /// Items were added after the run was closed or cancelled.
    #[error("items were added after the run was closed or cancelled")]
    ExtendedAfterEnd,
    /// The items of the entry were not read, or are not those that it names.
    #[error("the items that were added are not those that the entry names")]
    OtherItems,
    /// What an added item needs from outside the run was not sealed at submit.
    #[error("item {0:?} was added, and its need {1} is of something outside the run that was not sealed at submit")]
    NotImported(ItemId, FilePath),
    /// The pipelines of the entry are not those that its items name and the run lacks.
    #[error("the pipelines that were added are not those that the added items name and the run did not have")]
    OtherPipelines,
    /// Only a run whose plan is open-ended takes items from anybody.
    #[error("items were added by an actor to a run that is not open-ended")]
    NotOpenEnded,
    /// No such rule was sealed at submit.
    #[error("an item was created by the rule {0:?}, which the run does not have")]
    UnknownRule(ItemId),
    /// A rule does not create so many at once, or not as often.
    #[error("the rule {0:?} created more items than it may")]
    TooManyByRule(ItemId),
    /// The id is taken.
    #[error("item {0:?} was added, and there is one already")]
    DuplicateItem(ItemId),
    /// There is nothing of that name to wait for.
    #[error("item {0:?} was added and depends on {1:?}, which does not exist")]
    UnknownDependency(ItemId, ItemId),
    /// The items that were added wait for one another.
    #[error("item {0:?} was added and waits for itself")]
    Circle(ItemId),
    /// Only an item that a rule created stands for another, only for one of the run that none stands for yet, and in its place only once that is over.
    #[error("item {0:?} was added and cannot stand for {1:?}")]
    CannotStandFor(ItemId, ItemId),
    /// Another item has taken its place.
    #[error("item {0:?} was asked for again, and another has taken its place")]
    Superseded(ItemId),
    /// A rule has the run say something else, or nothing, or has done so.
    #[error("the rule {0:?} had the run say what it does not say, or a second time")]
    WrongConclusion(ItemId),
    /// The run was closed or cancelled.
    #[error("item {0:?} was dispatched or retried after the run was closed or cancelled")]
    AfterEnd(ItemId),
    /// The run was closed or cancelled while items were open, or twice.
    #[error("the run was ended with items still open, or twice")]
    EndedUnsettled,
    /// The seal names a rule that cannot have stopped.
    #[error("the seal says that the rule {0:?} stopped, which the run does not have or has spoken of already")]
    WrongStop(ItemId),
    /// The seal came too early.
    #[error("the run was sealed before every item had ended")]
    SealedUnsettled,
}
