# Completion of git-handoff, and of `git handoff`.
function __git_handoff_ask
    set -l before (commandline -opc)
    set -l current (commandline -ct)
    git-handoff complete -- $before[(math $argv[1] + 1)..-1] "$current" 2>/dev/null
end

complete -c git-handoff -a '(__git_handoff_ask 1)'
complete -c git -n 'test (count (commandline -opc)) -ge 2; and test (commandline -opc)[2] = handoff' -a '(__git_handoff_ask 2)'
