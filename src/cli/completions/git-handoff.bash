# Completion of git-handoff, and of `git handoff` where git's own completion is loaded, which calls _git_handoff.
_git_handoff_ask() {
	local IFS=$'\n'
	COMPREPLY=($(git-handoff complete -- "$@" 2>/dev/null))
}

_git_handoff() {
	_git_handoff_ask "${words[@]:__git_cmd_idx + 1:cword - __git_cmd_idx}"
}

_git_handoff_alone() {
	_git_handoff_ask "${COMP_WORDS[@]:1:COMP_CWORD}"
}

complete -o default -o bashdefault -F _git_handoff_alone git-handoff
