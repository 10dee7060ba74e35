#compdef git-handoff
# Completion of git-handoff, and of `git handoff`, for which zsh's completion of git calls the same function.
_git-handoff() {
	local -a found
	found=("${(@f)$(git-handoff complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
	if [[ -n ${found[1]} ]]; then
		compadd -- "${found[@]}"
	else
		_files
	fi
}

if [[ $funcstack[1] == _git-handoff ]]; then
	_git-handoff "$@"
else
	compdef _git-handoff git-handoff
fi
