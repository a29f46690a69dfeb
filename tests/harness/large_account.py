"""The world of the pages grown large: 500 bullets, 200 versions, 10,000 outcomes, calls.

Rows are inserted in bulk, past the services: it is about the pages' queries, not about rules.
"""

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

from django.utils import timezone

from accounts.models import ApiKey, User
from billing.models import UsageRecord
from core.models import AuditEntry
from evolution.models import AgentSession, EvolutionJob, Outcome, Reflection, SessionMessage
from mcp_bridge.models import ClientActivity
from playbooks.document.deltas import replay
from playbooks.document.operations import Record
from playbooks.document.text import Document, content_hash, render, text_hash
from playbooks.models import Bullet, Delta, Playbook, Section, Version, Vote
from playbooks.services.loading import document_of
from tests.harness.sample_account import World, build_world

BULLETS, VERSIONS, OUTCOMES, MESSAGES = 500, 200, 10_000, 500
FIRST = 1000
TRACE = "$ make test\n" + "collected 41 items, 1 failed, 40 passed\n" * 20


def build_big_world(owner: User) -> World:
    """The small world with its playbook grown; each page has the same rows and more of them."""
    world = build_world(owner)
    jobs = grow_jobs(world.playbook)
    outcomes = grow_outcomes(world.playbook, jobs)
    grow_versions(world.playbook, jobs, outcomes)
    grow_votes(world.playbook, outcomes, jobs)
    grow_sessions(world, outcomes)
    grow_account(world)
    return world


def grow_jobs(playbook: Playbook) -> list[EvolutionJob]:
    now = timezone.now()
    return EvolutionJob.objects.bulk_create(
        EvolutionJob(
            playbook=playbook,
            status="completed",
            trigger="threshold",
            from_version=playbook.current_version,
            outcomes_processed=OUTCOMES // VERSIONS,
            engine="openai",
            token_totals={"total_tokens": 90_000, "calls": 51},
            started_at=now,
            completed_at=now,
        )
        for _ in range(VERSIONS)
    )


def grow_versions(playbook: Playbook, jobs: list[EvolutionJob], outcomes: list[Outcome]) -> None:
    """Versions by evolutions, each with the deltas that it is made of: a replay gives its text."""
    sections, base = list(playbook.sections.all()), playbook.current_version
    assert base is not None
    document, records, versions = document_of(base), [], []
    for place, job in enumerate(jobs):
        numbers = range(BULLETS * place // VERSIONS, BULLETS * (place + 1) // VERSIONS)
        added = [added_bullet(sections, number, outcomes) for number in numbers]
        numbered = [replace(record, index=index) for index, record in enumerate(added)]
        document = replay(document, numbered)
        versions.append(version_of(base, place + 1, document, job))
        records.append(numbered)
    Version.objects.bulk_create(versions)
    grow_deltas(playbook, versions, records)
    for job, version in zip(jobs, versions, strict=True):
        job.to_version = version
    EvolutionJob.objects.bulk_update(jobs, ["to_version"], batch_size=200)
    playbook.current_version, playbook.next_bullet_number = versions[-1], FIRST + BULLETS
    playbook.save()


def added_bullet(sections: list[Section], number: int, outcomes: list[Outcome]) -> Record:
    section = sections[number % len(sections)]
    text = f"Advice {number}: read the whole message of case {number}, then change one thing."
    counters = {"helpful": 0, "harmful": 0, "neutral": 0}
    rest = {"status": "active", "revision": 1, "pinned": False, "merged_into": ""}
    return Record(
        index=0,
        type="ADD",
        bullet_id=f"{section.slug}-{FIRST + number:05d}",
        before=None,
        after={"section": section.key, "content": text} | counters | rest,
        reason="From a report.",
        status="applied",
        reason_code="",
        outcome_ids=(str(outcomes[number].pk),),
    )


def version_of(base: Version, place: int, document: Document, job: EvolutionJob) -> Version:
    text = render(document)
    return Version(
        playbook=base.playbook,
        number=base.number + place,
        text=text,
        text_hash=text_hash(text),
        bullet_count=len(document.bullets),
        token_count=len(text) // 4,
        parent=None,
        reason="evolution",
        job_id=job.pk,
        diff_summary={"added": 2},
    )


def grow_deltas(playbook: Playbook, versions: list[Version], records: list[list[Record]]) -> None:
    """The rows of bullets and of the deltas that brought them."""
    sections = {section.key: section for section in playbook.sections.all()}
    pairs = [
        (version, record)
        for version, added in zip(versions, records, strict=True)
        for record in added
    ]
    Delta.objects.bulk_create(
        Delta(
            playbook=playbook,
            version=version,
            job_id=version.job_id,
            bullet_public_id=record.bullet_id,
            outcome_ids=list(record.outcome_ids),
            **{
                name: getattr(record, name)
                for name in ("index", "type", "after", "reason", "status")
            },
        )
        for version, record in pairs
    )
    Bullet.objects.bulk_create(
        Bullet(
            playbook=playbook,
            section=sections[record.after["section"]],
            public_id=record.bullet_id,
            content=record.after["content"],
            content_hash=content_hash(record.after["content"]),
            metadata={"outcome_ids": list(record.outcome_ids)},
        )
        for _version, record in pairs
        if record.after
    )


def grow_outcomes(playbook: Playbook, jobs: list[EvolutionJob]) -> list[Outcome]:
    """Reported over the last year by four programs; the last 100 are pending."""
    now, base = timezone.now(), playbook.versions.get(number=1)
    made = [
        Outcome(
            playbook=playbook,
            reported_by=playbook.owner,
            client=("claude-code 2.1", "codex 0.9", "gemini-cli 0.8", "")[number % 4],
            task_description=f"Task {number}: make the build green",
            status=("success", "failure", "success", "partial")[number % 4],
            reasoning_trace=TRACE,
            notes="The flag was set twice.",
            version=base,
            version_assumed=True,
            cited_bullets=["str-00001"],
            signal=("test", "self_report", "human")[number % 3],
            processed_at=now if number < OUTCOMES - 100 else None,
            job=jobs[number % VERSIONS] if number < OUTCOMES - 100 else None,
            created_at=now - timedelta(minutes=50 * (OUTCOMES - number)),
        )
        for number in range(OUTCOMES)
    ]
    return Outcome.objects.bulk_create(made)


def grow_votes(playbook: Playbook, outcomes: list[Outcome], jobs: list[EvolutionJob]) -> None:
    """Every fifth outcome voted on the first bullet; one evolution has its reflections."""
    first = Bullet.objects.get(playbook=playbook, public_id="str-00001")
    Vote.objects.bulk_create(
        Vote(bullet=first, outcome_id=outcome.pk, source="reflector", tag="neutral")
        for outcome in outcomes[::5]
    )
    Reflection.objects.bulk_create(
        Reflection(job=jobs[0], outcome=outcome, content={"key_insight": "Read it."})
        for outcome in outcomes
        if outcome.job_id == jobs[0].pk
    )


def grow_sessions(world: World, outcomes: list[Outcome]) -> None:
    """One session of 500 messages, and a session behind every fifth outcome."""
    version = world.playbook.versions.get(number=1)
    said = "By [str-00001] I ran the failing test alone and read its whole message. " * 9
    roles = ("user", "assistant", "tool", "assistant")
    SessionMessage.objects.bulk_create(
        SessionMessage(
            session=world.session,
            position=number,
            role=roles[number % 4],
            content=said,
            tool_calls=[{"id": "1", "name": "run", "arguments": "{}"}] if number % 4 == 1 else [],
            cited_bullets=["str-00001"] if number % 2 else [],
            tokens=200,
        )
        for number in range(world.session.message_count, MESSAGES)
    )
    AgentSession.objects.filter(pk=world.session.pk).update(message_count=MESSAGES)
    AgentSession.objects.bulk_create(
        AgentSession(
            user=world.owner,
            playbook=world.playbook,
            version=version,
            title=outcome.task_description,
            status="closed",
            outcome=outcome,
            message_count=9,
        )
        for outcome in outcomes[::5]
    )


def grow_account(world: World) -> None:
    """Many playbooks, keys, agents, calls of models, and a long log of what was done."""
    now, owner = timezone.now(), world.owner
    Playbook.objects.bulk_create(Playbook(owner=owner, name=f"More {n}") for n in range(100))
    keys = ApiKey.objects.bulk_create(
        ApiKey(user=owner, name=f"key {n}", prefix=f"big{n:09}", digest="0", scopes=["read"],
               revoked_at=now if n % 3 else None)
        for n in range(60)
    )  # fmt: skip
    ClientActivity.objects.bulk_create(
        ClientActivity(user=owner, credential=key.prefix, accepted_at=now, seen_at=now)
        for key in keys
    )
    done = list(AuditEntry.objects.filter(owner_id=owner.pk).values())
    AuditEntry.objects.bulk_create(
        AuditEntry(**entry | {"id": None}) for entry in done * (2_000 // len(done))
    )
    UsageRecord.objects.bulk_create(usage_of(world, keys[n % 40], n) for n in range(OUTCOMES))


def usage_of(world: World, key: ApiKey, number: int) -> UsageRecord:
    model = ("gpt-4o-mini", "gpt-4o", "own-model")[number % 3]
    return UsageRecord(
        user=world.owner,
        playbook_id=world.playbook.pk if number % 2 else world.empty.pk,
        job_id=None,
        api_key_id=key.pk,
        step="reflect",
        attempt=1,
        operation="reflect",
        status="answered",
        model=model,
        prompt_tokens=1_000,
        completion_tokens=100,
        total_tokens=1_100,
        cost_usd=None if model == "own-model" else Decimal("0.0002"),
        created_at=timezone.now() - timedelta(minutes=50 * number),
    )
