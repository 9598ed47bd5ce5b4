"""What an HTML page loads and contains, read without a browser."""

from __future__ import annotations

from collections.abc import Iterator
from html.parser import HTMLParser

FETCHING = {"src", "srcset", "data", "poster", "action", "background"}


class Page(HTMLParser):
    """The elements of a page: ids, links, resources it loads, text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.fetched: list[str] = []
        self.text: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self._silent = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        found = dict(attributes)
        self.tags.append((tag, found))
        self._silent = tag if tag in ("script", "style") else ""
        if found.get("id"):
            self.ids.append(str(found["id"]))
        if tag == "a" and found.get("href"):
            self.links.append(str(found["href"]))
        self.fetched += [str(found[name]) for name in FETCHING & found.keys()]
        if tag == "link" and found.get("href"):
            self.fetched.append(str(found["href"]))

    def handle_endtag(self, tag: str) -> None:
        if tag == self._silent:
            self._silent = ""

    def handle_data(self, data: str) -> None:
        if not self._silent and data.strip():
            self.text.append(data.strip())

    def all(self, tag: str, **attributes: str) -> Iterator[dict[str, str | None]]:
        """The elements with this tag and these attributes; `class_` for class."""
        wanted = {name.rstrip("_"): value for name, value in attributes.items()}
        for name, found in self.tags:
            if name == tag and wanted.items() <= found.items():
                yield found


def leaves_the_file(address: str) -> bool:
    return "//" in address or address.split(":")[0] in ("http", "https", "ws", "ftp")
