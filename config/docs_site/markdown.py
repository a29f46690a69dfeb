"""Markdown to HTML: raw HTML disabled, GitHub's heading anchors, links rewritten to pages."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from html import escape
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token

from config.docs_site.documents import Document, anchor_of, slug_of

IMAGE_SUFFIX = ".svg"
EXTERNAL_URL = re.compile(r"[a-z][a-z0-9+.-]*:|//", re.IGNORECASE)


@dataclass(frozen=True)
class Heading:
    level: int
    anchor: str
    text: str


@dataclass(frozen=True)
class RenderedDocument:
    """A document's HTML, and its second-level headings for the sidebar."""

    html: str
    headings: list[Heading] = field(default_factory=list)


def render_document(document: Document) -> RenderedDocument:
    """Render the document; an unchanged file is rendered once per process."""
    changed = document.path.stat().st_mtime_ns
    return _render(document, changed)


@lru_cache(maxsize=128)
def _render(document: Document, changed: int) -> RenderedDocument:
    markdown = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    for kind, rule in RULES.items():
        markdown.add_render_rule(kind, rule)
    tokens = markdown.parse(document.text)
    headings = list(_add_anchors(tokens))
    for token in tokens:
        for inner in token.children or ():
            _rewrite_link(inner, document)
    html = str(markdown.renderer.render(tokens, markdown.options, {}))
    return RenderedDocument(html, [heading for heading in headings if heading.level == 2])


def _add_anchors(tokens: Sequence[Token]) -> Iterator[Heading]:
    """Give every heading the id that GitHub gives it; duplicates get a number."""
    seen: dict[str, int] = {}
    for opening, inline in zip(tokens, tokens[1:], strict=False):
        if opening.type != "heading_open":
            continue
        text = "".join(_heading_text(inline.children or ()))
        name = anchor_of(text)
        count = seen.get(name, 0)
        seen[name] = count + 1
        anchor = f"{name}-{count}" if count else name
        opening.attrSet("id", anchor)
        yield Heading(int(opening.tag[1]), anchor, text)


def _heading_text(children: Sequence[Token]) -> Iterator[str]:
    for child in children:
        yield " " if child.type == "softbreak" else child.content


def _rewrite_link(token: Token, document: Document) -> None:
    """Point links between documents at pages; remove the target of files that no page serves."""
    name = {"link_open": "href", "image": "src"}.get(token.type)
    if name is None:
        return
    found = resolve_link(str(token.attrGet(name) or ""), document)
    if found:
        token.attrSet(name, found)
    else:
        token.attrs.pop(name, None)


def resolve_link(target: str, document: Document) -> str:
    """The URL of a link on the site; "" for a file that no page shows."""
    if EXTERNAL_URL.match(target) or target.startswith(("#", "/")):
        return target
    path, mark, anchor = target.partition("#")
    folder = document.path.parent.resolve()
    wanted = (folder / path).resolve()
    if wanted.parent != folder or not wanted.exists():
        return ""
    if wanted.suffix == IMAGE_SUFFIX:
        return f"/docs/{wanted.name}"
    return f"/docs/{slug_of(wanted.stem)}{mark}{anchor}" if wanted.suffix == ".md" else ""


def _code(renderer: Any, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
    """A code block like components/code.html, with a copy button."""
    number = env["blocks"] = env.get("blocks", 0) + 1
    text, label = escape(tokens[index].content.rstrip("\n")), f"Code block {number}"
    return (
        f'<div class="code-block lines"><pre id="code-{number}" tabindex="0" role="group" '
        f'aria-label="{label}">{text}</pre>\n<button type="button" class="small js-only" '
        f'data-copy="code-{number}">Copy<span class="visually-hidden"> {label}</span>'
        "</button></div>\n"
    )


def _table_open(renderer: Any, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
    number = env["tables"] = env.get("tables", 0) + 1
    return f'<div class="scroll" tabindex="0" role="group" aria-label="Table {number}"><table>\n'


def _th_open(renderer: Any, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
    return '<th scope="col">' if tokens[index + 1].content.strip() else "<td>"


def _th_close(renderer: Any, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
    """An empty header cell is rendered as a data cell."""
    return "</th>" if tokens[index - 1].content.strip() else "</td>"


def _heading_close(renderer: Any, tokens: Sequence[Token], index: int, *_: Any) -> str:
    anchor = escape(str(tokens[index - 2].attrGet("id")))
    tag = tokens[index].tag
    if tag == "h1":
        return "</h1>\n"
    return f' <a class="anchor" href="#{anchor}" aria-label="Link to this section">#</a></{tag}>\n'


RULES: dict[str, Callable[..., str]] = {
    "fence": _code,
    "code_block": _code,
    "table_open": _table_open,
    "table_close": lambda *_: "</table></div>\n",
    "th_open": _th_open,
    "th_close": _th_close,
    "td_open": lambda *_: "<td>",  # without Markdown's alignment `style`, which the CSP forbids
    "heading_close": _heading_close,
}
