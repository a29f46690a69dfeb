"""`manage.py playbook_history <playbook> [--bullet str-00001] [--json]`: who changed what."""

import json
from argparse import ArgumentParser
from dataclasses import asdict
from typing import Any
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError
from django.core.serializers.json import DjangoJSONEncoder

from core.errors import AceError
from playbooks.management.lookups import playbook_named
from playbooks.services.history import (
    BulletChange,
    BulletHistory,
    BulletVote,
    VersionChanges,
    bullet_history,
    playbook_history,
)

TIME = "%Y-%m-%d %H:%M:%S"
WIDTH = 100
"""Characters of a bullet's text on one line of the output."""


class Command(BaseCommand):
    help = (
        "List the versions of a playbook: number, time, reason, author or evolution, and changes. "
        "With --bullet: what introduced it, what changed it, and every vote with its outcome."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("playbook", help="its id or name")
        parser.add_argument("--bullet", default="", help="an id such as str-00001")
        parser.add_argument("--json", action="store_true", help="one JSON document")

    def handle(self, *args: Any, bullet: str, **options: Any) -> None:
        body: Any
        try:
            playbook = playbook_named(options["playbook"])
            if bullet:
                life = bullet_history(playbook=playbook, bullet_id=bullet)
                body, lines = _bullet_data(life), _bullet_lines(life)
            else:
                events = playbook_history(playbook)
                body = [_version_data(event) for event in events]
                lines = [line for event in events for line in _version_lines(event)]
        except AceError as error:
            raise CommandError(error.message) from None
        if options["json"]:
            lines = [json.dumps(body, cls=DjangoJSONEncoder, ensure_ascii=False, indent=1)]
        self.stdout.write("\n".join(lines))


def _bullet_data(life: BulletHistory) -> dict[str, Any]:
    bullet = life.bullet
    names = ("content", "status", "revision", "pinned", "helpful", "harmful", "neutral")
    fields = {
        "id": bullet.public_id,
        "section": bullet.section.key,
        "merged_into": bullet.merged_into.public_id if bullet.merged_into else None,
        **{name: getattr(bullet, name) for name in names},
    }
    return {
        "bullet": fields,
        "introduced_by": asdict(life.introduced_by) if life.introduced_by else None,
        "changes": [asdict(change) for change in life.changes],
        "votes": [asdict(vote) for vote in life.votes],
    }


def _version_data(event: VersionChanges) -> dict[str, Any]:
    version = event.version
    return {
        "version": version.number,
        "at": version.created_at,
        "reason": version.reason,
        "author": version.author_text,
        "job_id": version.job_id,
        "summary": version.diff_summary,
        "refused": event.refused,
        "changes": [asdict(change) for change in event.changes],
    }


def _version_lines(event: VersionChanges) -> list[str]:
    version = event.version
    by = _who(version.author_text, version.job_id)
    refused = f", {event.refused} refused or without effect" if event.refused else ""
    head = f"version {version.number}  {version.created_at:{TIME}}  {version.reason}"
    changed = f"{len(event.changes)} changes{refused}"
    return [f"{head}  {by}  {changed}", *(f"  {_change_line(c)}" for c in event.changes)]


def _bullet_lines(life: BulletHistory) -> list[str]:
    bullet = life.bullet
    into = f" into {bullet.merged_into.public_id}" if bullet.merged_into else ""
    counters = f"helpful={bullet.helpful} harmful={bullet.harmful} neutral={bullet.neutral}"
    return [
        f"[{bullet.public_id}] {bullet.status}{into} {counters} :: {bullet.content}",
        *([f"introduced: {_dated(life.introduced_by)}"] if life.introduced_by else []),
        *(f"changed:    {_dated(change)}" for change in life.changes),
        *(f"vote:       {_vote_line(vote)}" for vote in life.votes),
    ]


def _dated(change: BulletChange) -> str:
    by = _who(change.author, change.job_id)
    outcomes = f"  outcomes {', '.join(change.outcome_ids)}" if change.outcome_ids else ""
    head = f"version {change.version}  {change.at:{TIME}}  {by}"
    return f"{head}  {_change_line(change)}{outcomes}"


def _change_line(change: BulletChange) -> str:
    after = change.after or {}
    counters = f"helpful={after.get('helpful', 0)} harmful={after.get('harmful', 0)}"
    text = str(after.get("content", ""))[:WIDTH]
    return f"{change.type} {change.bullet_id} {counters} :: {text}"


def _vote_line(vote: BulletVote) -> str:
    known = f"outcome {vote.outcome_id} ({vote.outcome_status or 'gone'})"
    outcome = known if vote.outcome_id else "no outcome"
    return f"{vote.tag} on {vote.bullet_id} by {vote.source}  {outcome}  {vote.at:{TIME}}"


def _who(author: str, job_id: UUID | None) -> str:
    if job_id:
        return f"evolution {job_id}"
    return author or "the platform"
