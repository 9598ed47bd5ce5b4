"""Markdown as HTML: headings with anchors, links into the site, names linked to dbt's docs."""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import chain, count, pairwise
from pathlib import Path, PurePosixPath
from urllib.parse import quote, unquote

from markdown_it import MarkdownIt
from markdown_it.token import Token

from dbt_history.docs import flow

NAME = re.compile(r"^([a-z_][a-z0-9_]*)(\(.*\))?$", re.DOTALL)
IMAGES = {".png", ".jpg", ".jpeg", ".gif", ".svg", ".webp", ".avif", ".ico", ".bmp"}


@dataclass(frozen=True)
class Rendered:
    """A page: its title (text), its HTML, and its headings of the second level (anchor, text)."""

    title: str
    html: str
    sections: tuple[tuple[str, str], ...]


def output_paths(sources: Iterable[str], taken: Iterable[str]) -> dict[str, str]:
    """The path in the site of the page of each file; none is in `taken` or has two files.

    The README's is index.html.
    """
    made: dict[str, str] = {}
    for source in sorted(sources, key=lambda one: (one != "README.md", one)):
        path = "index.html"
        if source != "README.md":
            path = str(PurePosixPath(source).with_suffix(".html")).removeprefix("docs/").lower()
            path = re.sub(r"[^\w./-]", "_", path)  # an address without escapes
        made[source] = free_path(path, [*taken, *made.values()])
    return made


def free_path(path: str, taken: Iterable[str]) -> str:
    """The path, with a number if it is taken; of two names that differ in case, too."""
    used = {one.lower() for one in taken}
    stem, suffix = posixpath.splitext(path)
    names = (f"{stem}-{number}{suffix}" for number in count(2))
    return next(one for one in chain([path], names) if one.lower() not in used)


def slug(text: str) -> str:
    """The anchor of a heading, as code hosts generate it."""
    return re.sub(r"[^\w\- ]", "", text.strip().lower()).replace(" ", "-")


def relative(target: str, page: str) -> str:
    """The relative link from one page of the site to another, or to an anchor in it."""
    path, mark, anchor = target.partition("#")
    start = posixpath.dirname(page) or "."
    return os.path.relpath(path, start) + mark + anchor


class Renderer:
    """Renders Markdown of the folder `root`.

    pages      the path in the site of each file that becomes a page
    named      addresses in the site by the name of a model or macro
    cache      folder of the flow charts drawn before
    folders    pages of the site by a folder that a link may name
    proofs     whether `test_…` in code is the name of a test, shown as a sentence
    taken      paths in the site that no chart or image may have

    `drawings` collects the flow charts and images met so far, by path in the site.
    """

    def __init__(
        self,
        root: Path,
        pages: Mapping[str, str],
        named: Mapping[str, str],
        cache: Path,
        folders: Mapping[str, str] | None = None,
        proofs: bool = False,
        taken: Iterable[str] = (),
    ) -> None:
        self.root = root
        self.pages = pages
        self.named = named
        self.cache = cache
        self.folders = folders or {}
        self.proofs = proofs
        self.taken = tuple(taken)
        self.drawings: dict[str, str | bytes] = {}
        self.images: dict[Path, str] = {}
        self.parser = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])

    def __call__(self, source: str, text: str) -> Rendered:
        tokens = self.parser.parse(text)
        label_cells(tokens)
        page = self.pages[source]
        sections: list[tuple[str, str]] = []
        title, seen = source, dict[str, int]()
        for token, inline in pairwise(tokens):
            if token.type == "heading_open":
                words = "".join(part.content for part in inline.children or [])
                anchor = slug(words)
                seen[anchor] = seen.get(anchor, -1) + 1
                anchor += f"-{seen[anchor]}" if seen[anchor] else ""
                token.attrSet("id", anchor)
                if token.tag == "h1":
                    title = words
                elif token.tag == "h2":
                    sections.append((anchor, words))
        charts = 0
        for token in tokens:
            if token.type == "fence" and token.info == "mermaid":
                token.type, token.tag = "html_block", ""
                charts += 1
                image = self.free_path(f"{page.removesuffix('.html')}-{charts}.svg")
                self.drawings[image] = flow.drawing(token.content, self.cache)
                # A page may be made of several texts, so their charts are not counted apart.
                prefix = f"flow-{len(self.drawings)}"
                token.content = flow.html(token.content, prefix, quote(relative(image, page)))
            elif token.type == "inline":
                token.children = self.linked(token.children or [], source, page)
        html = self.parser.renderer.render(tokens, self.parser.options, {})
        html = html.replace("<table>", '<div class="wide"><table>')
        html = html.replace("</table>", "</table></div>")
        return Rendered(title, html, tuple(sections))

    def free_path(self, path: str) -> str:
        return free_path(path, [*self.taken, *self.drawings])

    def linked(self, tokens: list[Token], source: str, page: str) -> list[Token]:
        """The tokens of a line, with rewritten links, and links for known names in code."""
        found: list[Token] = []
        inside = 0
        dropped = False
        for token in tokens:
            if token.type == "link_open":
                target = self.target(str(token.attrGet("href")), source)
                dropped = target is None
                inside += 1
                if target is not None:
                    token.attrSet("href", target if is_outside(target) else relative(target, page))
                    found.append(token)
            elif token.type == "link_close":
                inside -= 1
                if not dropped:
                    found.append(token)
            elif token.type == "image":
                found.append(self.image(token, source, page))
            elif token.type == "code_inline" and not inside:
                found.append(self.code(token, page))
            else:
                found.append(token)
        return found

    def image(self, token: Token, source: str, page: str) -> Token:
        """An image of the project, copied into the site; a link to one that is elsewhere."""
        address = str(token.attrs["src"])
        file = posixpath.normpath(posixpath.join(posixpath.dirname(source), unquote(address)))
        place = (self.root / file).resolve()
        is_image = place.suffix.lower() in IMAGES and place.is_file()
        # Resolved, so that `..`, an absolute path and a symbolic link do not leave the project.
        is_inside = not posixpath.isabs(file) and place.is_relative_to(self.root.resolve())
        if is_outside(address) or not is_inside or not is_image:
            words = escape(token.content or address)
            found = Token("html_inline", "", 0)
            href = escape(address, quote=True)
            found.content = f'<a href="{href}">{words}</a>' if is_outside(address) else words
            return found
        if place not in self.images:
            target = self.free_path(file.removeprefix("docs/").lower())
            self.drawings[target] = place.read_bytes()
            self.images[place] = target
        token.attrSet("src", quote(relative(self.images[place], page)))
        return token

    def code(self, token: Token, page: str) -> Token:
        """`as_of(…)` as a link to its description in dbt's docs."""
        if self.proofs and token.content.startswith("test_"):
            # A test's name is a sentence.
            proof = Token("html_inline", "", 0)
            words = escape(token.content.removeprefix("test_").replace("_", " "))
            proof.content = f'<span class="proof" title="{escape(token.content)}">{words}</span>'
            return proof
        named = NAME.match(token.content)
        address = self.named.get(named[1]) if named else None
        if address is None:
            return token
        link = Token("html_inline", "", 0)
        href = escape(relative(address, page), quote=True)
        link.content = f'<a class="name" href="{href}"><code>{escape(token.content)}</code></a>'
        return link

    def target(self, href: str, source: str) -> str | None:
        """The target in the site of a link in the repository; None if it is outside the site."""
        path, mark, anchor = href.partition("#")
        if is_outside(href):
            return href
        if not path:
            return self.pages[source] + mark + anchor
        file = posixpath.normpath(posixpath.join(posixpath.dirname(source), unquote(path)))
        if file in self.pages:
            return self.pages[file] + mark + anchor
        if file in self.folders:
            return self.folders[file]
        name = PurePosixPath(file)
        return self.named.get(name.stem) if name.suffix in (".sql", ".py", ".csv") else None


def label_cells(tokens: Sequence[Token]) -> None:
    """Give each cell of a table the text of its head: on a phone a row is a list of them."""
    heads: list[str] = []
    column = 0
    for token, inline in pairwise(tokens):
        if token.type == "thead_open":
            heads = []
        elif token.type == "th_open":
            heads.append(text_of(inline))
        elif token.type == "tr_open":
            column = 0
        elif token.type == "td_open":
            token.attrSet("data-label", heads[column] if column < len(heads) else "")
            column += 1


def text_of(inline: Token) -> str:
    return "".join(
        part.content for part in inline.children or [] if part.type in ("text", "code_inline")
    )


def is_outside(href: str) -> bool:
    return "://" in href or href.startswith("mailto:")
