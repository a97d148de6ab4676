"""opsctl completion bash|zsh|fish."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from opsctl import errors
from opsctl.cli.options import common_options

_INSTALL = {
    "bash": "opsctl completion bash > ~/.local/share/bash-completion/completions/opsctl",
    "zsh": 'opsctl completion zsh > "${fpath[1]}/_opsctl"',
    "fish": "opsctl completion fish > ~/.config/fish/completions/opsctl.fish",
}


@click.command(
    "completion",
    epilog="\b\nKeep it:\n" + "\n".join(f"  {line}" for line in _INSTALL.values()) + "\nOr for this shell alone:\n"
    '  eval "$(opsctl completion bash)"',
)
@click.argument("shell", type=click.Choice(tuple(_INSTALL)))
@common_options
def completion(shell: str) -> int:
    """Print the script that completes commands, options, targets, queries and their parameters with Tab."""
    from opsctl.cli.main import cli

    kind = get_completion_class(shell)
    assert kind is not None
    completer = kind(cli, {}, "opsctl", "_OPSCTL_COMPLETE")
    # source() of click's would run bash to see how old it is, which need not be here.
    click.echo(completer.source_template % completer.source_vars())
    return errors.EXIT_YES
