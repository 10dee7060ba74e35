//! Reasons why an event is illegal in a state.

use super::driver::DriverId;
use super::name::{FilePath, ItemId};
use super::plan::ProductKey;

errors! {
    /// Reasons why an event is illegal in a state.
    #[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)] pub enum Illegal;
    AfterSeal: "an entry follows the seal";
    Misplaced(&'static str): "a {0} entry does not belong here";
    UnknownItem(ItemId): "item {0:?} is not in the plan";
    NotRunning(ItemId): "item {0:?} has no running attempt";
    NotWaiting(ItemId): "the event does not fit the status of item {0:?}";
    WrongAttempt(ItemId, u32): "item {0:?}: attempt {1} is out of order";
    WrongReason(ItemId): "item {0:?}: the reason does not fit the kind of entry";
    NoAttemptLeft(ItemId, u32): "item {0:?} was dispatched more often than the plan allows, which is {1} times";
    NotProduced(ItemId, ProductKey): "item {0:?} is done without the product {1} that it declares";
    WrongExit(ItemId): "item {0:?}: its exit is not one code or one signal, or not 0 although the item is done";
    BeforeDependency(ItemId, ItemId): "item {0:?} was dispatched before {1:?} was done";
    LockHeld(ItemId, String): "item {0:?} was dispatched while another item held the lock {1:?}";
    SkippedForNothing(ItemId): "item {0:?} was skipped although everything it depends on is done or open";
    ForPeople(ItemId): "item {0:?} was dispatched, and it waits for people to decide";
    NotForPeople(ItemId): "item {0:?} was decided, but it does not wait for a decision";
    OtherProducts(ItemId): "item {0:?} was decided for other products than those that it depends on";
    WrongStatus(ItemId): "item {0:?} was decided, and its status does not follow from that";
    NotApprover(ItemId, String): "item {0:?} is not for the key {1} to decide: it is not one of the item's `approvers`";
    SecondVote(ItemId, ItemId, String):
        "item {0:?} is not for the key {2} to decide: it decided {1:?} about the same products";
    SaidBefore: "a statement was recorded twice";
    AdmittedBefore(String): "the key {0} was admitted a second time for the same";
    AdmittedAfterEnd: "a key was admitted after the run was closed or cancelled";
    RanAndReused(ItemId): "item {0:?} was taken from another run, and yet it is not done, or a process of it ended";
    WrongGrade(ItemId): "item {0:?} is done, and its grade is not that of its executor";
    ProductsOfFailed(ItemId): "item {0:?} failed and yet has products";
    DocumentOfItem(ItemId, FilePath): "item {0:?} does not hand over the document {1:?} as the plan says";
    WrongRevision(FilePath, u64): "document {0:?}: revision {1} is out of order";
    WrongPrevious(FilePath, u64): "document {0:?}: revision {1} does not name the one before it";
    NoPlace(FilePath, FilePath): "the documents {0:?} and {1:?} cannot stand side by side";
    WrittenAfterEnd(FilePath): "document {0:?} was written after the run was closed or cancelled";
    ExtendedAfterEnd: "items were added after the run was closed or cancelled";
    OtherItems: "the items that were added are not those that the entry names";
    NotImported(ItemId, FilePath):
        "item {0:?} was added, and its need {1} is of something outside the run that was not sealed at submit";
    OtherPipelines: "the pipelines that were added are not those that the added items name and the run did not have";
    NotOpenEnded: "items were added by an actor to a run that is not open-ended";
    UnknownRule(ItemId): "an item was created by the rule {0:?}, which the run does not have";
    TooManyByRule(ItemId): "the rule {0:?} created more items than it may";
    DuplicateItem(ItemId): "item {0:?} was added, and there is one already";
    UnknownDependency(ItemId, ItemId): "item {0:?} was added and depends on {1:?}, which does not exist";
    Circle(ItemId): "item {0:?} was added and waits for itself";
    CannotStandFor(ItemId, ItemId): "item {0:?} was added and cannot stand for {1:?}";
    Superseded(ItemId): "item {0:?} was asked for again, and another has taken its place";
    WrongConclusion(ItemId): "the rule {0:?} had the run say what it does not say, or a second time";
    AfterEnd(ItemId): "item {0:?} was dispatched or retried after the run was closed or cancelled";
    EndedUnsettled: "the run was ended with items still open, or twice";
    WrongStop(ItemId):
        "the seal says that the rule {0:?} stopped, which the run does not have or has spoken of already";
    SealedUnsettled: "the run was sealed before every item had ended";
    WrongSharing: "the run was shared a second time, after its end, or with times out of bounds";
    NoDriver(ItemId): "item {0:?} was dispatched in a shared run without naming a driver";
    TooManyRunning(ItemId, u32): "item {0:?} was dispatched while as many items ran as the run allows, {1}";
    NotHolder(ItemId, DriverId): "item {0:?}: the entry does not name the driver that holds the attempt, which is {1}";
    NotHeld(ItemId): "item {0:?}: the entry names a driver, and no driver holds the attempt";
    OwnTaker(ItemId): "item {0:?}: the driver that is lost cannot take its own attempt";
    NotDismissable(String): "the key {0} was dismissed, which has no role, is named in entry 0, or has the role seal";
}
