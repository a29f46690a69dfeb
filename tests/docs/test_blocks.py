"""Every command in the documents is run here, tested elsewhere, or marked as not run."""

import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from django.core.management import call_command, get_commands
from django.db import connection

from accounts.keys.jwt_tokens import issue_tokens
from accounts.models import User
from evolution.models import EvolutionJob
from evolution.worker.tasks import run_evolution
from tests.docs.blocks import (
    APPS,
    ROOT,
    RUNNABLE,
    SHOWN,
    Block,
    all_blocks,
    commands,
    documents,
)
from tests.factories import make_key
from tests.harness.live_server import live_url  # noqa: F401 - a fixture

EVERY = all_blocks()
BLOCKS = [block for block in EVERY if block.language in RUNNABLE]
# A command at the beginning of a line that is no shell block.
COMMAND = re.compile(
    r"^\s*(\$ |(make|python3?|pip|manage\.py|docker|kubectl|curl|npx?|claude) )", re.M
)
LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")
PATH = re.compile(r"`((?:[a-z_]+/)+(?:[a-z_]+\.(?:py|toml|yml|json|md)))`")
RUN = sorted({block.file for block in BLOCKS if block.mark == "run"})


@pytest.mark.parametrize("block", BLOCKS, ids=str)
def test_every_block_that_runs_says_how_it_was_tried(block: Block) -> None:
    teach = "write <!-- run -->, <!-- tested: file::test --> or <!-- not run: why --> above it"
    assert block.mark, f"{block}: {teach} (see tests/docs/blocks.py)"


def test_no_command_hides_in_a_block_of_another_language() -> None:
    for block in EVERY:
        assert block.language in RUNNABLE | SHOWN, f"{block}: {block.language}"
        assert block.language in RUNNABLE or not COMMAND.search(block.text), block


def test_no_command_hides_in_an_indented_block() -> None:
    for path in documents():
        for before, line in pairwise(path.read_text().splitlines()):
            assert before.strip() or not re.match(r"    \S", line), f"{path.name}: {line}"


def test_every_command_of_ours_that_a_document_names_is_there() -> None:
    output = "\n".join(commands())
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M)
    assert set(re.findall(r"\bmanage\.py ([a-z_]+)", output)) - set(get_commands()) == set()
    assert set(re.findall(r"(?:^|&& |=\S+ )make ([a-z-]+)", output, re.M)) - {*targets} == set()
    for module in set(re.findall(r"python -m ((?:tests|benchmarks)[.\w]*)", output)):
        path = ROOT / module.replace(".", "/")
        assert path.with_suffix(".py").is_file() or (path / "__main__.py").is_file(), module


def test_make_help_lists_every_target_for_people() -> None:
    help_text = subprocess.run(
        ["make", "--silent", "help"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    listed = {line.split()[0] for line in help_text.splitlines() if len(line.split()) > 2}
    phony = re.search(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.M)
    assert phony
    assert listed == {*phony[1].split()} - {"base", "dev"}


@pytest.mark.parametrize("document", documents(), ids=lambda path: path.name)
def test_every_file_that_a_document_names_is_there(document: Path) -> None:
    text = document.read_text()
    linked = {target for target in LINK.findall(text) if not (document.parent / target).exists()}
    folders = [ROOT, *(ROOT / app for app in APPS)]
    named = {
        path for path in PATH.findall(text) if not any((one / path).exists() for one in folders)
    }
    assert linked | named == set()


@pytest.mark.parametrize("block", [b for b in BLOCKS if b.mark.startswith("tested")], ids=str)
def test_the_test_that_a_block_names_is_there(block: Block) -> None:
    path, _, name = block.mark.removeprefix("tested:").strip().partition("::")
    assert (ROOT / path).is_file(), block
    assert not name or f"def {name}(" in (ROOT / path).read_text(), block


@pytest.fixture
def working(transactional_db: None) -> Iterator[None]:
    """A worker: evolutions that the commands start are run, one after the other."""
    ended = threading.Event()

    def work() -> None:
        while not ended.wait(0.1):
            for pk in EvolutionJob.objects.filter(status="queued").values_list("pk", flat=True):
                run_evolution(str(pk))
        connection.close()

    thread = threading.Thread(target=work)
    thread.start()
    yield
    ended.set()
    thread.join(30)


@pytest.mark.parametrize("document", RUN)
def test_the_commands_of_a_document_work_one_after_the_other(
    document: str,
    working: None,
    live_url: str,  # noqa: F811 - the fixture imported above
    alice: User,
    tmp_path: Path,
) -> None:
    call_command("load_starters", verbosity=0)
    script = "\n".join(b.text for b in BLOCKS if b.file == document and b.mark == "run")
    script = re.sub(r"http://(127\.0\.0\.1|localhost):8000", live_url, script)
    ended = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=ROOT,
        env={
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "ACE_API_KEY": make_key(alice)[1],
            "ACE_TOKEN": issue_tokens(user=alice).access,
            "ACE_DATA_DIR": str(tmp_path),
            "ACE_LOCAL": "true",
        },
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert ended.returncode == 0, f"{ended.stdout}\n{ended.stderr}"
    assert '"error"' not in ended.stdout, ended.stdout
