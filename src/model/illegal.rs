//! Reasons why an event is illegal in a state.

use super::driver::DriverId;
use super::name::{FilePath, ItemId};
use super::plan::ProductKey;

/// Reasons why an event is illegal in a state.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum Illegal {
    #[error("an entry follows the seal")]
    AfterSeal,
    #[error("a {0} entry does not belong here")]
    Misplaced(&'static str),
    #[error("item {0:?} is not in the plan")]
    UnknownItem(ItemId),
    #[error("item {0:?} has no running attempt")]
    NotRunning(ItemId),
    #[error("the event does not fit the status of item {0:?}")]
    NotWaiting(ItemId),
    #[error("item {0:?}: attempt {1} is out of order")]
    WrongAttempt(ItemId, u32),
    #[error("item {0:?}: the reason does not fit the kind of entry")]
    WrongReason(ItemId),
    #[error("item {0:?} was dispatched more often than the plan allows, which is {1} times")]
    NoAttemptLeft(ItemId, u32),
    #[error("item {0:?} is done without the product {1} that it declares")]
    NotProduced(ItemId, ProductKey),
    #[error("item {0:?}: its exit is not one code or one signal, or not 0 although the item is done")]
    WrongExit(ItemId),
    #[error("item {0:?} was dispatched before {1:?} was done")]
    BeforeDependency(ItemId, ItemId),
    #[error("item {0:?} was dispatched while another item held the lock {1:?}")]
    LockHeld(ItemId, String),
    #[error("item {0:?} was skipped although everything it depends on is done or open")]
    SkippedForNothing(ItemId),
    #[error("item {0:?} was dispatched, and it waits for people to decide")]
    ForPeople(ItemId),
    #[error("item {0:?} was decided, but it does not wait for a decision")]
    NotForPeople(ItemId),
    #[error("item {0:?} was decided for other products than those that it depends on")]
    OtherProducts(ItemId),
    #[error("item {0:?} was decided, and its status does not follow from that")]
    WrongStatus(ItemId),
    #[error("item {0:?} is not for the key {1} to decide: it is not one of the item's `approvers`")]
    NotApprover(ItemId, String),
    #[error("item {0:?} is not for the key {2} to decide: it decided {1:?} about the same products")]
    SecondVote(ItemId, ItemId, String),
    #[error("a statement was recorded twice")]
    SaidBefore,
    #[error("the key {0} was admitted a second time for the same")]
    AdmittedBefore(String),
    #[error("a key was admitted after the run was closed or cancelled")]
    AdmittedAfterEnd,
    #[error("item {0:?} was taken from another run, and yet it is not done, or a process of it ended")]
    RanAndReused(ItemId),
    #[error("item {0:?} is done, and its grade is not that of its executor")]
    WrongGrade(ItemId),
    #[error("item {0:?} failed and yet has products")]
    ProductsOfFailed(ItemId),
    #[error("item {0:?} does not hand over the document {1:?} as the plan says")]
    DocumentOfItem(ItemId, FilePath),
    #[error("document {0:?}: revision {1} is out of order")]
    WrongRevision(FilePath, u64),
    #[error("document {0:?}: revision {1} does not name the one before it")]
    WrongPrevious(FilePath, u64),
    #[error("the documents {0:?} and {1:?} cannot stand side by side")]
    NoPlace(FilePath, FilePath),
    #[error("document {0:?} was written after the run was closed or cancelled")]
    WrittenAfterEnd(FilePath),
    #[error("items were added after the run was closed or cancelled")]
    ExtendedAfterEnd,
    #[error("the items that were added are not those that the entry names")]
    OtherItems,
    #[error("item {0:?} was added, and its need {1} is of something outside the run that was not sealed at submit")]
    NotImported(ItemId, FilePath),
    #[error("the pipelines that were added are not those that the added items name and the run did not have")]
    OtherPipelines,
    #[error("items were added by an actor to a run that is not open-ended")]
    NotOpenEnded,
    #[error("an item was created by the rule {0:?}, which the run does not have")]
    UnknownRule(ItemId),
    #[error("the rule {0:?} created more items than it may")]
    TooManyByRule(ItemId),
    #[error("item {0:?} was added, and there is one already")]
    DuplicateItem(ItemId),
    #[error("item {0:?} was added and depends on {1:?}, which does not exist")]
    UnknownDependency(ItemId, ItemId),
    #[error("item {0:?} was added and waits for itself")]
    Circle(ItemId),
    #[error("item {0:?} was added and cannot stand for {1:?}")]
    CannotStandFor(ItemId, ItemId),
    #[error("item {0:?} was asked for again, and another has taken its place")]
    Superseded(ItemId),
    #[error("the rule {0:?} had the run say what it does not say, or a second time")]
    WrongConclusion(ItemId),
    #[error("item {0:?} was dispatched or retried after the run was closed or cancelled")]
    AfterEnd(ItemId),
    #[error("the run was ended with items still open, or twice")]
    EndedUnsettled,
    #[error("the seal says that the rule {0:?} stopped, which the run does not have or has spoken of already")]
    WrongStop(ItemId),
    #[error("the run was sealed before every item had ended")]
    SealedUnsettled,
    #[error("the run was shared a second time, after its end, or with times out of bounds")]
    WrongSharing,
    #[error("item {0:?} was dispatched in a shared run without naming a driver")]
    NoDriver(ItemId),
    #[error("item {0:?} was dispatched while as many items ran as the run allows, {1}")]
    TooManyRunning(ItemId, u32),
    #[error("item {0:?}: the entry does not name the driver that holds the attempt, which is {1}")]
    NotHolder(ItemId, DriverId),
    #[error("item {0:?}: the entry names a driver, and no driver holds the attempt")]
    NotHeld(ItemId),
    #[error("item {0:?}: the driver that is lost cannot take its own attempt")]
    OwnTaker(ItemId),
    #[error("the key {0} was dismissed, which has no role, is named in entry 0, or has the role seal")]
    NotDismissable(String),
}
