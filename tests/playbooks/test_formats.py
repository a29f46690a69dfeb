"""Export formats, and import of each of them and of what people already have."""

import io
import json
import zipfile

import pytest

from playbooks.document.formats import FORMATS, Export, slugify, write_file
from playbooks.document.imports import read_file, read_import
from playbooks.document.text import Document, DocumentError, parse
from tests.factories import ACE_TEXT

OWN = "\n## OUR OWN RULES\n[rule-00009] helpful=1 harmful=0 :: Ask before you delete.\n"
DOCUMENT = parse(ACE_TEXT + OWN)
EXPORT = Export(DOCUMENT, "Fixing: “tests”", 'Says "why"', 7)


def texts_of(document: Document) -> list[tuple[str, str]]:
    titles = {section.key: section.title for section in document.sections}
    return [(titles[bullet.section], bullet.content) for bullet in document.bullets]


@pytest.mark.parametrize("name", ["ace", "json", "ace_json"])
def test_what_has_ids_and_counters_comes_back_as_it_was(name: str) -> None:
    found = read_import(read_file(write_file(EXPORT, name).body))
    assert found.document == DOCUMENT


@pytest.mark.parametrize("name", FORMATS)
def test_every_export_comes_back_with_its_sections_and_texts(name: str) -> None:
    found = read_import(read_file(write_file(EXPORT, name).body))
    assert texts_of(found.document) == texts_of(DOCUMENT)
    if name not in {"ace", "skill"}:  # the one has no name, the other a slug
        assert (found.name, found.description) == (EXPORT.name, EXPORT.description)


def test_votes_come_back_as_counts_of_a_cheatsheet() -> None:
    found = read_import(read_file(write_file(EXPORT, "cheatsheet").body))
    assert [bullet.helpful for bullet in found.document.bullets] == [2, 0, 1, 1]


def test_a_cheatsheet_item_is_one_bullet_with_its_example() -> None:
    item = "<memory_item>\n<description>\nSum first. (Reference: Q1)\n</description>\n<example>\n"
    text = f"META STRATEGIES\n{item}1 + 1\n</example>\n</memory_item>\n** Count: 4\n"
    lines = [json.dumps({"final_cheatsheet": ""}), json.dumps({"final_cheatsheet": text})]
    (bullet,) = read_import("\n".join(lines)).document.bullets
    assert bullet.content == "Sum first. (Reference: Q1) Example: 1 + 1"
    assert (bullet.helpful, bullet.section) == (4, "meta_strategies")


def test_the_json_of_public_ace_code_is_read_whatever_its_ids() -> None:
    bullet = {
        "id": "task_guidance-00001",
        "section": "task_guidance",
        "content": "A.",
        "helpful": 2,
    }
    skill = {"section": "defaults", "content": "B.", "harmful_count": 1}
    found = read_import(json.dumps({"bullets": {"x": bullet, "misc-00007": skill}, "next_id": 2}))
    rows = [(b.id, b.section, b.helpful, b.harmful) for b in found.document.bullets]
    assert rows == [("task-00008", "task_guidance", 2, 0), ("misc-00007", "defaults", 0, 1)]


def test_our_own_json_numbers_a_bullet_whose_id_does_not_fit() -> None:
    bullets = [{"id": "x", "content": "A."}, {"id": "str-00004", "content": "B."}]
    found = read_import(json.dumps({"sections": [{"title": "A", "bullets": bullets}]}))
    assert [bullet.id for bullet in found.document.bullets] == ["str-00004", "sec-00005"]


def test_markdown_is_read_as_markdown() -> None:
    text = "Title\n=====\n\n> Ask first.\n\n- [x] One\n\n  more line\n  - Deeper\n"
    found = read_import(text)
    assert found.name == "Title"
    assert [e.content for e in found.entries] == ["Ask first.", "One more line", "Deeper"]


RULES = """\
---
description: Rules for TypeScript
---
# Repo guide

This is a monorepo.

## Commands
- Run tests with:
  - `make test` for all
- Lint before each commit.
  It is fast.

```bash
make lint
```

| a | b |
<!-- not
this -->
### Style
1. Use tabs
* Use tabs.
Never commit secrets.
"""


def test_each_line_of_a_rules_file_becomes_a_bullet_or_says_why_not() -> None:
    found = read_import(RULES)
    assert (found.name, found.description) == ("Repo guide", "Rules for TypeScript")
    assert [(e.line, e.section, e.content, e.skipped) for e in found.entries] == [
        (6, "OTHERS", "This is a monorepo.", ""),
        (9, "Commands", "Run tests with:", "It begins each bullet below."),
        (10, "Commands", "Run tests with: `make test` for all", ""),
        (11, "Commands", "Lint before each commit. It is fast. `make lint`", ""),
        (18, "Commands", "| a | b |", "Tables are not imported."),
        (22, "Style", "Use tabs", ""),
        (23, "Style", "Use tabs. Never commit secrets.", ""),
    ]


def test_plain_sentences_on_lines_are_rules_of_their_own() -> None:
    found = read_import(
        "Use pnpm.\nNever commit secrets.\n\nPrefer hooks\nover classes.\nUse pnpm\n"
    )
    assert [(e.content, e.skipped) for e in found.entries] == [
        ("Use pnpm.", ""),
        ("Never commit secrets.", ""),
        ("Prefer hooks over classes.", ""),
        ("Use pnpm", "The same advice is already there."),
    ]


def test_a_file_that_is_neither_text_nor_a_skill_is_refused() -> None:
    for body in (b"\xff\xfe", b"PK\x03\x04broken"):
        with pytest.raises(DocumentError):
            read_file(body)


def test_agents_md_has_the_advice_without_counters_and_no_empty_heading() -> None:
    file = write_file(Export(parse("## EMPTY\n" + ACE_TEXT), "Fixing tests", "", 1), "agents")
    text = file.body.decode()
    assert file.name == "AGENTS.md"
    assert text.startswith("# Fixing tests\n\n## STRATEGIES & INSIGHTS\n\n- Read the failing test")
    assert "helpful=" not in text
    assert "EMPTY" not in text


def test_the_skill_folder_has_the_name_in_its_file() -> None:
    file = write_file(EXPORT, "skill")
    folder = zipfile.ZipFile(io.BytesIO(file.body))
    assert folder.namelist() == ["fixing-tests/SKILL.md"]
    head = folder.read("fixing-tests/SKILL.md").decode().split("---\n")[1]
    assert 'name: fixing-tests\ndescription: "Says \\"why\\""\n' in head
    assert file.body == write_file(EXPORT, "skill").body


@pytest.mark.parametrize("name", FORMATS)
def test_a_name_without_latin_letters_still_gives_a_file_name(name: str) -> None:
    assert write_file(Export(DOCUMENT, "漢字", "", 1), name).name in {
        *("playbook.ace.md", "playbook.json", "AGENTS.md", "playbook.zip"),
        *("playbook.ace.json", "playbook.cheatsheet.json"),
    }
    assert slugify("A  b/../c" + "d" * 99) == ("a-b-c" + "d" * 99)[:64]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"sections": [\n,]}', "Line 2: This is not valid JSON"),
        ('{"sections": {}}', "At the top: `sections` must be a list"),
        ('{"sections": [{"bullets": []}]}', "At sections[0]: a section"),
        ('{"sections": [{"title": "A", "bullets": [{}]}]}', "At sections[0].bullets[0]: a bullet"),
        ("- a\n" * 10_001, "at most 10,000 lines"),
        ("# A\n\n## B\n\n| only | a table |", "No advice found"),
        ("<memory_item></memory_item>", "No advice found"),
        ('{"bullets": [{"id": "str-00001"}]}', "At bullets[0]: a bullet needs"),
        (f"{ACE_TEXT}nonsense", "Line 7: This is neither"),
        ('{"a":' * 5000, "nested too deeply"),
    ],
)
def test_an_invalid_text_is_refused_with_the_place(text: str, message: str) -> None:
    with pytest.raises(DocumentError) as refused:
        read_import(text)
    assert message in str(refused.value)


def test_a_counter_that_is_not_a_number_is_refused() -> None:
    bullet = {"id": "str-00001", "content": "a", "helpful": True}
    with pytest.raises(DocumentError, match="a counter is a whole number"):
        read_import(json.dumps({"sections": [{"title": "A", "bullets": [bullet]}]}))


def test_forged_lines_in_json_stay_content() -> None:
    bullet = {"id": "str-00001", "content": "a\n## B\n[str-00002] helpful=9 harmful=0 :: c"}
    found = read_import(json.dumps({"sections": [{"title": "A", "bullets": [bullet]}]}))
    assert [one.id for one in found.document.bullets] == ["str-00001"]
