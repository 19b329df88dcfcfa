"""Run each case that failed once more, alone in a process of its own.

    python .ci/again.py build/gate.xml

A case that fails again is red, and so are more than ten failures: exit code 1. A case that passes
alone is printed as FLAKY, with the machine's load and both outputs, and added to `.ci/flaky.txt`.
`make check` fails until that file is empty again: fix the case at its root, or take it out of the
gate, and say why.
"""

# ruff: noqa: T201, S314, S603

import os
import subprocess
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).parents[1]
FLAKY = ROOT / ".ci/flaky.txt"
MOST = 10
SECONDS = 1800


@dataclass(frozen=True)
class Failure:
    """A case that failed, and what pytest printed of it."""

    case: str
    output: str


def main() -> None:
    report = Path(sys.argv[1])
    if not report.exists():
        sys.exit("again: pytest wrote no report, so the run itself broke")
    found = failures(report)
    if not found:
        sys.exit("again: pytest failed although no case did")
    if len(found) > MOST:
        names = "\n  ".join(failure.case for failure in found)
        sys.exit(
            f"again: {len(found)} cases failed, more than {MOST} are not run again:\n  {names}"
        )
    red = [failure.case for failure in found if not passes_alone(failure)]
    if red:
        sys.exit("again: failed twice, together and alone:\n  " + "\n  ".join(red))


def failures(report: Path) -> list[Failure]:
    """The cases of a JUnit report that failed or broke, by their node ids."""
    found = []
    for case in ElementTree.parse(report).getroot().iter("testcase"):
        for problem in (*case.findall("failure"), *case.findall("error")):
            found.append(Failure(node_id(case.attrib), problem.text or ""))
            break
    return found


def node_id(case: dict[str, str]) -> str:
    """The id that pytest takes: a report has the path of the file with dots, then the class."""
    parts = case["classname"].split(".")
    for count in range(len(parts), 0, -1):
        path = Path(*parts[:count]).with_suffix(".py")
        if (ROOT / path).is_file():
            return "::".join([path.as_posix(), *parts[count:], case["name"]])
    return "::".join([case["classname"], case["name"]])


def passes_alone(failure: Failure) -> bool:
    """Run the case by itself; tell what happened, and note a case that is flaky."""
    load = os.getloadavg()[0]
    command = [sys.executable, "-m", "pytest", "--quiet", "--timeout", str(SECONDS), failure.case]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        print(f"RED {failure.case} (load {load:.1f})\n{done.stdout}{done.stderr}")
        return False
    print(f"FLAKY {failure.case} (load {load:.1f})\n--- together\n{failure.output}")
    print(f"--- alone\n{done.stdout}", flush=True)
    with FLAKY.open("a") as file:
        file.write(f"{failure.case}  {datetime.now(UTC):%Y-%m-%d %H:%M}Z  load {load:.1f}\n")
    return True


if __name__ == "__main__":
    main()
