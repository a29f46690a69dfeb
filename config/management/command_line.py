"""`manage.py --help`: the commands of this repository first, with one line each."""

import re
from pathlib import Path

from django.apps import apps
from django.conf import settings
from django.core.management import ManagementUtility, get_commands, load_command_class

FIRST_CLAUSE = re.compile(r"(.+?)[.;:](?:\s|$)", re.DOTALL)


class CommandLine(ManagementUtility):
    """Django's command line, with a help text that lists our commands apart from the rest."""

    def main_help_text(self, commands_only: bool = False) -> str:
        if commands_only or self.settings_exception is not None:
            return super().main_help_text(commands_only)
        ours = our_commands()
        width = max(map(len, ours))
        return "\n".join(
            [
                "",
                f"Type '{self.prog_name} help <subcommand>' for help on a specific subcommand.",
                "",
                "[ace]",
                *(f"    {name:{width}}  {line}" for name, line in sorted(ours.items())),
                "",
                "[Django and packages]",
                *(f"    {name}" for name in sorted(set(get_commands()) - set(ours))),
            ]
        )


def our_commands() -> dict[str, str]:
    """The commands of the apps in this repository, each with the first clause of its help."""
    ours = {
        config.name
        for config in apps.get_app_configs()
        if Path(config.path).parent == settings.BASE_DIR
    }
    return {
        name: _first_clause(load_command_class(app, name).help)
        for name, app in get_commands().items()
        if app in ours
    }


def _first_clause(text: str) -> str:
    found = FIRST_CLAUSE.match(" ".join(text.split()))
    return found[1] if found else text
