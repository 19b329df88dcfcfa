"""Each page as Markdown beside its HTML, and `llms.txt`, which lists them (llmstxt.org).

Programs and language models read Markdown better than HTML. A page's line in `llms.txt` has its
title and its first sentence.
"""

import re
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.util.typing import ExtensionMetadata

SUMMARY = """\
# Credence

> Predictions with aleatoric and epistemic uncertainty: a service that trains Bayesian neural
> networks on tables, images, text and series. Dashboard, command line, Python client, HTTP API.
"""
CAPTION = re.compile(r':caption: "?([^"\n]+)"?\n')
TOCTREE = re.compile(r"```\{toctree\}\n(.*?)```", re.DOTALL)
FENCED = re.compile(r"^```.*?^```\n", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
LONGEST = 200  # letters of a description


def setup(app: Sphinx) -> ExtensionMetadata:
    """Keep each page's text when it is read; write all when the HTML is there."""
    app.connect("source-read", keep, priority=900)  # after what fills in pages
    app.connect("build-finished", write)
    return {"parallel_read_safe": False, "parallel_write_safe": True}


def keep(app: Sphinx, page: str, source: list[str]) -> None:
    """Remember the Markdown of a page."""
    pages = getattr(app.env, "markdown_pages", {})
    app.env.markdown_pages = pages | {page: source[0]}


def write(app: Sphinx, failure: Exception | None) -> None:
    """Write the pages and their list."""
    if failure or app.builder.format != "html":
        return
    pages: dict[str, str] = app.env.markdown_pages
    for page, text in pages.items():
        path = Path(app.outdir) / f"{page}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (Path(app.outdir) / "llms.txt").write_text(list_pages(pages))


def list_pages(pages: dict[str, str]) -> str:
    """`llms.txt`: the pages in the order of the index, by the captions of its contents."""
    lines = [SUMMARY]
    for contents in TOCTREE.findall(pages["index"]):
        (caption,) = CAPTION.findall(contents)
        lines.append(f"\n## {caption}\n")
        names = [line for line in contents.splitlines() if line in pages]
        lines += [f"- [{title(pages[name])}]({name}.md): {describe(pages[name])}" for name in names]
    return "\n".join(lines) + "\n"


def title(text: str) -> str:
    """A page's heading."""
    return text.split("\n", 1)[0].lstrip("# ")


def describe(text: str) -> str:
    """The first sentences of the first paragraph without links, up to some 200 letters."""
    paragraphs = re.split(r"\n{2,}", FENCED.sub("", text))[1:]
    prose = next((each for each in paragraphs if re.match(r"[\w*`\[]", each)), "")
    plain = " ".join(LINK.sub(r"\1", prose).replace("*", "").split())
    first, *more = re.split(r"(?<=[.?!]) ", plain)
    for sentence in more:
        if len(first) + len(sentence) >= LONGEST:
            break
        first += f" {sentence}"
    return first if len(first) <= LONGEST else first[:LONGEST].rsplit(" ", 1)[0] + " …"
