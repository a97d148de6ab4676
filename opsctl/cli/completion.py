"""opsctl completion bash|zsh|fish."""

from __future__ import annotations

import click

from opsctl import errors
from opsctl.cli.options import common_options

# What answers is click, in the process that each of these scripts starts with _OPSCTL_COMPLETE set. click's own scripts
# lose what stands behind = and :, put a space behind NAME=, cut help at a comma, and take out --output= for its value.
_BASH = r"""_opsctl_completion() {
    local line=${COMP_LINE:0:COMP_POINT} current=${COMP_WORDS[COMP_CWORD]} word before= place=9999 kind value

    # bash takes a word apart at = and :, which the command does not: the line up to the cursor says what it is.
    word=${line##*[[:space:]]}
    [[ -n $word ]] && place=-1   # the last of the words in the line; else one behind them
    [[ $current == [=:] ]] && current=
    [[ $word == *"$current" ]] && before=${word%"$current"}
    COMPREPLY=()
    while IFS=, read -r kind value; do
        case $kind in
            dir) compopt -o dirnames ;;
            file) compopt -o default ;;
            plain)
                value=${value#"$before"}
                [[ $current == --*=* ]] && value=${current%%=*}=$value
                if [[ $value == *= ]]; then compopt -o nospace; else printf -v value %q "$value"; fi
                COMPREPLY+=("$value")
                ;;
        esac
    done < <(env COMP_WORDS="$line" COMP_CWORD=$place _OPSCTL_COMPLETE=bash_complete "$1" 2>/dev/null)
}

complete -o nosort -F _opsctl_completion opsctl
"""

_ZSH = r"""#compdef opsctl

_opsctl_completion() {
    local -a answer described open
    local kind value purpose

    answer=("${(@f)$(env COMP_WORDS="${(j: :)words}" COMP_CWORD=$((CURRENT-1)) _OPSCTL_COMPLETE=zsh_complete \
        ${words[1]} 2>/dev/null)}")
    compset -P '--*='
    for kind value purpose in "${answer[@]}"; do
        value=${value//\\:/:}
        [[ $purpose == _ ]] && purpose=
        case $kind in
            dir) _files -/ ;;
            file) _files ;;
            plain)
                if [[ $value == *= ]]; then
                    open+=("${value//:/\\:}:$purpose")
                else
                    described+=("${value//:/\\:}:$purpose")
                fi
                ;;
        esac
    done
    (( $#open )) && _describe -V parameter open -S ''
    (( $#described )) && _describe -V value described
}

if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
    _opsctl_completion "$@"
else
    compdef _opsctl_completion opsctl
fi
"""

_FISH = r"""function _opsctl_completion
    set -l token (commandline -ct)
    set -l before (string match -r -- '^--[^=]+=' $token)
    set -l words (commandline -cp)
    for line in (env COMP_WORDS="$words" COMP_CWORD="$token" _OPSCTL_COMPLETE=fish_complete opsctl 2>/dev/null)
        set -l parts (string split -m 1 , -- $line)
        switch $parts[1]
            case dir
                __fish_complete_directories $token
            case file
                __fish_complete_path $token
            case plain
                echo "$before$parts[2]"
        end
    end
end

complete --no-files --keep-order --command opsctl --arguments "(_opsctl_completion)"
"""

_SCRIPTS = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH}


@click.command(
    "completion",
    epilog="""\b
Keep it:
  opsctl completion bash > ~/.local/share/bash-completion/completions/opsctl
  opsctl completion zsh > "${fpath[1]}/_opsctl"
  opsctl completion fish > ~/.config/fish/completions/opsctl.fish
Or for this shell alone:
  eval "$(opsctl completion bash)"
""",
)
@click.argument("shell", type=click.Choice(tuple(_SCRIPTS)))
@common_options
def completion(shell: str) -> int:
    """Print the script that completes commands, options, targets, queries and their parameters with Tab."""
    click.echo(_SCRIPTS[shell], nl=False)
    return errors.EXIT_YES
