//! The executors that need no setting.

/// A built-in executor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BuiltIn {
    /// Runs `inputs.command`.
    Command,
    /// Runs the subagent that `inputs.subagent` names.
    Dispatch,
    /// Runs nothing: a person decides.
    Approval,
    /// Runs nothing: takes the changes of commits that were made before. No plan that a person
    /// submits may name it.
    Claimed,
}

impl BuiltIn {
    /// The executors that any plan may name.
    pub const IN_PLANS: [Self; 3] = [Self::Command, Self::Dispatch, Self::Approval];

    /// Returns the built-in executor of this name, or `None` if there is none.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::IN_PLANS.into_iter().chain([Self::Claimed]).find(|executor| executor.name() == name)
    }

    /// Returns its name in plans and settings.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Command => "command",
            Self::Dispatch => "dispatch",
            Self::Approval => "approval",
            Self::Claimed => "claimed",
        }
    }
}
