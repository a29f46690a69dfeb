"""Playbooks as files. Nothing here writes to the database."""

from accounts.errors import Invalid
from playbooks.formats import FORMATS, Export, File, write_file
from playbooks.models import Playbook
from playbooks.rows import document_of, sections_of, version_of


def export_file(*, playbook: Playbook, format_name: str, version: int | None = None) -> File:
    """The current or an old version in one of FORMATS. Raises NotFound, and Invalid."""
    if format_name not in FORMATS:
        raise Invalid.field("format", f"Choose one of: {', '.join(FORMATS)}.")
    row = version_of(playbook, version)
    document = document_of(row, sections=sections_of(playbook))
    export = Export(document, playbook.name, playbook.description, row.number)
    return write_file(export, format_name)
