"""Whether the links of the built book lead somewhere: files, pages and headings. Addresses on the network are left out.

    python3 python/checks/book_links.py docs/book

Standard library only. A link out of the book must be a file of the repository.
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.places: set[str] = set()
        self.feed(path.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("id", "name") and value:
                self.places.add(value)
            elif name in ("href", "src") and value:
                self.links.append(value)


def main() -> None:
    book = Path(sys.argv[1])
    # What stands for a page that is not there has addresses relative to nothing; all pages in one are links to themselves.
    pages = {path.resolve(): Page(path) for path in book.rglob("*.html") if path.name not in ("404.html", "print.html", "toc.html")}
    if not pages:
        sys.exit(f"book_links: {book} has no pages")
    wrong = []
    for path, page in pages.items():
        for link in page.links:
            address = urlsplit(link)
            if address.scheme or address.netloc or address.path.endswith("print.html"):
                continue
            target = (path.parent / unquote(address.path)).resolve() if address.path else path
            if not target.exists():
                wrong.append(f"{path.relative_to(book.resolve())}: {link} is not there")
            elif address.fragment and target in pages and unquote(address.fragment) not in pages[target].places:
                wrong.append(f"{path.relative_to(book.resolve())}: {link} has no such heading")
    print("\n".join(wrong) or f"{len(pages)} pages, {sum(len(page.links) for page in pages.values())} links: all lead somewhere")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
