"""Starter playbooks: their rows follow the files in `files/`, until staff edits them."""

from dataclasses import dataclass, replace
from pathlib import Path

from django.db import IntegrityError, transaction

from core.audit import record
from core.errors import Conflict, Invalid
from core.security.scopes import Principal
from playbooks.document.state import ACTIVE
from playbooks.document.state_diff import build_initial_state, bullets_of_document, change_state
from playbooks.document.text import Document, DocumentError, parse
from playbooks.models import Playbook, Version
from playbooks.services.creation import create_with_initial_version
from playbooks.services.loading import load_state, lock_playbook, require_editable, sections_of
from playbooks.services.publishing import publish
from playbooks.services.settings import update_playbook
from playbooks.services.validation import clean_description, clean_name

FOLDER = Path(__file__).resolve().parent / "files"


@dataclass(frozen=True)
class Starter:
    file: str
    name: str
    description: str
    text: str


def load_starters(folder: Path = FOLDER) -> int:
    """Create or update a starter for every file. Returns how many changed.

    A starter that staff has edited stays as it is. Raises DocumentError with the line for a file
    that is no playbook.
    """
    return sum(_load(read_starter(path)) for path in sorted(folder.glob("*.md")))


def read_starter(path: Path) -> Starter:
    """A file: `name:` and `description:` between two lines of `---`, then ACE text."""
    _, front, text = path.read_text(encoding="utf-8").split("---\n", 2)
    fields = dict(line.split(": ", 1) for line in front.strip().splitlines())
    name, description = clean_name(fields["name"]), clean_description(fields["description"])
    return Starter(path.stem, name, description, text)


def _load(starter: Starter) -> bool:
    """True when a row was made or changed."""
    with transaction.atomic():
        playbook = Playbook.objects.starters().filter(starter_file=starter.file).first()
        if playbook is None:
            return _create(starter, parse(starter.text))
        lock_playbook(playbook)
        if playbook.starter_edited:
            return False
        sections = sections_of(playbook)
        document = parse(starter.text, sections=sections)
        if document.sections != sections:
            raise DocumentError(f"The starter {starter.name} keeps its headings; name a new one.")
        renamed = playbook.description != starter.description
        if renamed:
            playbook.description = starter.description
            playbook.save(update_fields=["description", "updated_at"])
        return _follow(playbook, document) or renamed


def _create(starter: Starter, document: Document) -> bool:
    """False when another process created it meanwhile, which the unique name tells."""
    try:
        create_with_initial_version(
            owner=None,
            name=starter.name,
            description=starter.description,
            source=Playbook.Source.STARTER,
            starter_file=starter.file,
            result=build_initial_state(document, reason="Starter."),
            reason=Version.Reason.IMPORT,
        )
    except IntegrityError:
        return False
    return True


def _follow(playbook: Playbook, document: Document, author: Principal | None = None) -> bool:
    """Publish the starter's next version when the bullets of the text differ from its rows."""
    loaded = load_state(playbook)
    wanted, _ = bullets_of_document(document)
    old = loaded.state.bullets
    for name in wanted.keys() & old.keys():
        wanted[name] = replace(
            old[name],
            section=wanted[name].section,
            content=wanted[name].content,
            status=ACTIVE,
            merged_into="",
        )
    result = change_state(loaded.state, wanted, reason="The starter's text changed.")
    if not result.applied:
        return False
    reason = Version.Reason.EDIT if author else Version.Reason.IMPORT
    publish(playbook, loaded, result, reason=reason, author=author)
    return True


def edit_starter(
    *, playbook: Playbook, by: Principal, name: str, description: str, content: str, version: int
) -> None:
    """The starter has this name, description and ACE text, which is its next version.

    Raises Invalid (the text, other headings), Conflict (not staff; `version` is not current).
    """
    with transaction.atomic():
        lock_playbook(playbook)
        require_editable(playbook, by)
        number = playbook.current_version.number if playbook.current_version else 0
        if version != number:
            raise Conflict(f"The playbook is at version {number} now. Read it again.")
        sections = sections_of(playbook)
        try:
            document = parse(content, sections=sections)
        except DocumentError as error:
            raise Invalid.field("content", str(error)) from None
        if document.sections != sections:
            raise Invalid.field("content", "A starter keeps its headings.")
        update_playbook(playbook=playbook, by=by, name=name, description=description)
        if _follow(playbook, document, by):
            record(action="edit_playbook", by=by, subject=playbook)
