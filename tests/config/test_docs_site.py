"""docs/*.md at /docs: safe, linked, listed once, and readable by programs."""

import os
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from django.test import Client

from config.docs_site.documents import Document, documents_in
from config.docs_site.markdown import render_document
from config.docs_site.views import documents

LISTED = documents()


class Links(HTMLParser):
    """Every id and every target of a page."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.targets: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.ids.add(found.get("id") or "")
        self.targets.append(found.get("href") or "")


def written(folder: Path, text: str, name: str = "NOTE") -> Document:
    (folder / f"{name}.md").write_text(text)
    return next(d for d in documents_in(folder) if d.slug == name.lower())


def html_of(folder: Path, text: str) -> str:
    return render_document(written(folder, text)).html


@pytest.mark.django_db
@pytest.mark.parametrize("document", LISTED, ids=lambda document: document.slug)
def test_every_document_is_a_page_whose_links_lead_somewhere(
    document: Document, client: Client
) -> None:
    answer = client.get(f"/docs/{document.slug}")
    assert answer.status_code == 200
    pages = {f"/docs/{d.slug}": Links(render_document(d).html) for d in LISTED}
    here = pages[f"/docs/{document.slug}"]
    for target in here.targets:
        path, _, anchor = target.partition("#")
        if path.startswith("/docs") or target.startswith("#"):
            assert anchor in {"", *pages.get(path, here).ids}, target
            assert not path or path in pages, target


@pytest.mark.django_db
def test_docs_leads_to_the_first_page_and_not_to_the_reference(client: Client) -> None:
    assert client.get("/docs").headers["Location"] == "/docs/quickstart"
    assert client.get("/api/docs").status_code == 200


@pytest.mark.django_db
def test_a_page_shows_the_drawings_of_its_document(client: Client) -> None:
    page = client.get("/docs/concepts").content.decode()
    assert '<img src="/docs/loop.svg" alt="Three versions of a playbook' in page
    drawing = client.get("/docs/loop.svg")
    assert (drawing.status_code, drawing["Content-Type"]) == (200, "image/svg+xml")


@pytest.mark.parametrize(
    "path", ["/docs/nothing", "/docs/../settings", "/docs/nothing.md", "/docs/nothing.svg"]
)
@pytest.mark.django_db
def test_a_page_that_is_not_there_is_not_found(path: str, client: Client) -> None:
    assert client.get(path).status_code == 404


def test_html_and_scripts_of_an_author_stay_text(tmp_path: Path) -> None:
    html = html_of(tmp_path, "# T\n\n<script>x</script> [a](javascript:x) <b onclick=x>y</b>\n")
    assert not re.search(r"<script|<b |href=\"javascript", html)


def test_a_comment_is_not_shown_but_code_is_kept_whole(tmp_path: Path) -> None:
    html = html_of(tmp_path, "# T\n\n<!-- not run: x -->\n```sh\n<!-- kept -->\n```\n")
    assert "not run" not in html and "&lt;!-- kept --&gt;" in html


def test_headings_get_the_anchors_that_github_makes(tmp_path: Path) -> None:
    html = html_of(tmp_path, "# T\n\n## Logs, figures: `x_y`\n\n## A\n\n## A\n")
    assert re.findall(r'<h2 id="([^"]+)"', html) == ["logs-figures-x_y", "a", "a-1"]


def test_links_between_documents_lead_to_pages_and_others_lose_their_address(
    tmp_path: Path,
) -> None:
    (tmp_path / "TWO_WORDS.md").write_text("# Two\n")
    html = html_of(tmp_path, "# T\n\n[a](TWO_WORDS.md#b) [c](../.env) [d](NONE.md) [e](#t)\n")
    assert re.findall(r'href="([^"]+)"', html) == ["/docs/two-words#b", "#t"]


def test_tables_carry_no_style_of_their_own(tmp_path: Path) -> None:
    html = html_of(tmp_path, "# T\n\n| a | b |\n| --- | ---: |\n| 1 | 2 |\n")
    assert "style=" not in html and '<th scope="col">' in html


def test_a_column_without_a_name_has_no_heading(tmp_path: Path) -> None:
    html = html_of(tmp_path, "# T\n\n| | b |\n| --- | --- |\n| 1 | 2 |\n")
    assert "<td></td>" in html and html.count("<th ") == html.count("</th>") == 1


def test_a_changed_file_is_rendered_anew(tmp_path: Path) -> None:
    document = written(tmp_path, "# One\n")
    first = render_document(document)
    assert render_document(document) is first
    later = document.path.stat().st_mtime_ns + 1_000_000_000
    document.path.write_text("# Two\n")
    os.utime(document.path, ns=(later, later))
    assert "Two" in render_document(document).html


def test_a_document_that_is_not_listed_comes_last(tmp_path: Path) -> None:
    for name in ("ZEBRA", "OPERATIONS", "QUICKSTART"):
        (tmp_path / f"{name}.md").write_text(f"# {name}\n")
    found = documents_in(tmp_path)
    assert [d.slug for d in found] == ["quickstart", "operations", "zebra"]
    assert found[-1].group == "More"


@pytest.mark.django_db
def test_programs_find_every_document_in_llms_txt_and_read_it_as_markdown(client: Client) -> None:
    text = client.get("/llms.txt").content.decode()
    addresses = re.findall(r"\(http://testserver(/docs/[^)]+\.md)\)", text)
    assert len(addresses) == len(LISTED)
    answer = client.get(addresses[0])
    assert answer.headers["Content-Type"].startswith("text/markdown")
    assert answer.content.decode() in client.get("/llms-full.txt").content.decode()


def test_the_page_of_settings_shows_every_variable(client: Client) -> None:
    assert "#TRACE_RETENTION_DAYS=180" in client.get("/docs/configuration").content.decode()


def test_a_page_shows_the_address_in_use(client: Client) -> None:
    page = client.get("/docs/quickstart", headers={"host": "localhost:9123"}).content.decode()
    assert "http://localhost:9123/api/v1" in page
    assert "127.0.0.1:8000" not in page


@pytest.mark.django_db
@pytest.mark.parametrize("name", ["benchmarks", "reliability_report", "token_economics", "scaling"])
def test_reports_for_engineers_are_no_pages_for_users(client: Client, name: str) -> None:
    assert Path(f"docs/engineering/{name.upper()}.md").is_file()
    for path in (name, name.replace("_", "-"), f"engineering/{name}"):
        assert client.get(f"/docs/{path}").status_code == 404
