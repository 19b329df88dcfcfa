"""All simulations of what a model states, as a table of expected and measured figures.

    python -m benchmarks.verification [--only NAME …] [--short] [--page FILE]

Each module of this package is a topic. `--page` replaces the tables in a page between the lines
`<!-- begin TOPIC -->` and `<!-- end TOPIC -->`. The exit status is 1 if a figure fails.
"""

import argparse
import re
import sys
import time
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType

from benchmarks import verification
from benchmarks.verification.check import Check, Scale


def topics() -> list[str]:
    """The modules of this package that have simulations, in alphabetical order."""
    names = [module.name for module in iter_modules(verification.__path__)]
    return [name for name in names if hasattr(_module(name), "checks")]


def run(topic: str, scale: Scale) -> list[Check]:
    """The figures of a topic."""
    found: Sequence[Check] = _module(topic).checks(scale)
    return list(found)


def table(checks: Sequence[Check]) -> str:
    """The figures as a table in Markdown."""
    lines = ["| simulation | expected | measured | verdict |", "| --- | --- | --- | --- |"]
    lines += [f"| {c.what} | {c.expected} | {c.measured:.3g} | {c.verdict} |" for c in checks]
    return "\n".join(lines)


def replace_table(page: str, topic: str, text: str) -> str:
    """The page with a topic's table replaced.

    Raises:
        ValueError: if the page has no place for it.
    """
    begin, end = f"<!-- begin {topic} -->", f"<!-- end {topic} -->"
    place = re.compile(f"{begin}.*?{end}", re.DOTALL)
    if not place.search(page):
        raise ValueError(f"the page has no place for {topic!r}: add {begin} and {end}")
    return place.sub(lambda _: f"{begin}\n{text}\n{end}", page)


def main() -> int:
    """Run the chosen topics; the number of figures that fail decides the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--only", nargs="+", choices=topics(), default=topics())
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--page", type=Path)
    given, failed = parser.parse_args(), 0
    for topic in given.only:
        start = time.perf_counter()
        checks = run(topic, "short" if given.short else "full")
        failed += sum(check.verdict == "fails" for check in checks)
        text = table(checks)
        print(f"\n{topic}, {time.perf_counter() - start:.0f} s\n\n{text}", flush=True)
        if given.page:
            given.page.write_text(replace_table(given.page.read_text(), topic, text))
    return int(failed > 0)


def _module(name: str) -> ModuleType:
    if name == "__main__":  # must not be imported again
        return verification
    return import_module(f"{verification.__name__}.{name}")


if __name__ == "__main__":
    sys.exit(main())
