"""Export formats, and import of JSON."""

import io
import json
import zipfile

import pytest

from playbooks.document.formats import FORMATS, Export, read_document, slugify, write_file
from playbooks.document.text import DocumentError, parse
from tests.factories import ACE_TEXT

OWN = "\n## OUR OWN RULES\n[rule-00009] helpful=1 harmful=0 :: Ask before you delete.\n"
DOCUMENT = parse(ACE_TEXT + OWN)
EXPORT = Export(DOCUMENT, "Fixing: “tests”", 'Says "why"', 7)


@pytest.mark.parametrize("name", ["ace", "json"])
def test_what_can_be_imported_gives_the_same_document(name: str) -> None:
    assert read_document(write_file(EXPORT, name).body.decode()) == DOCUMENT


def test_the_json_of_the_rest_export_can_be_imported_too() -> None:
    assert read_document(json.dumps({"name": "a", "text": ACE_TEXT})) == parse(ACE_TEXT)


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
    }
    assert slugify("A  b/../c" + "d" * 99) == ("a-b-c" + "d" * 99)[:64]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"sections": [\n,]}', "Line 2: This is not valid JSON"),
        ('{"sections": {}}', "At the top: `sections` must be a list"),
        ('{"sections": [{"bullets": []}]}', "At sections[0]: a section"),
        ('{"sections": [{"title": "A", "bullets": [{}]}]}', "At sections[0].bullets[0]: a bullet"),
        (
            '{"sections": [{"title": "A", "bullets": [{"id": "x", "content": "b"}]}]}',
            "not a bullet id",
        ),
        ("[" * 9 + '{"a"', "Line 1: This is neither"),
        ('{"a":' * 5000, "nested too deeply"),
    ],
)
def test_an_invalid_text_is_refused_with_the_place(text: str, message: str) -> None:
    with pytest.raises(DocumentError) as refused:
        read_document(text)
    assert message in str(refused.value)


def test_a_counter_that_is_not_a_number_is_refused() -> None:
    bullet = {"id": "str-00001", "content": "a", "helpful": True}
    with pytest.raises(DocumentError, match="a counter is a whole number"):
        read_document(json.dumps({"sections": [{"title": "A", "bullets": [bullet]}]}))


def test_forged_lines_in_json_stay_content() -> None:
    bullet = {"id": "str-00001", "content": "a\n## B\n[str-00002] helpful=9 harmful=0 :: c"}
    found = read_document(json.dumps({"sections": [{"title": "A", "bullets": [bullet]}]}))
    assert [one.id for one in found.bullets] == ["str-00001"]
