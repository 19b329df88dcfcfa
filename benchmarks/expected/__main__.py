"""How far expected scores are from actual ones, and how often their intervals contain them.

    python -m benchmarks.expected [--tables FOLDER] [--only NAME …] [--rows N] [--epochs N]
                                 [--file FILE]

FOLDER is as for `benchmarks.tables`; without it there are scikit-learn's sets and generated ones.
Test rows are scored in parts: random ones, and the quarters by the first column of numbers, which
are unlike training. Each result is a line of FILE; an interrupted run resumes after its last set.
"""

import argparse
import json
from pathlib import Path

from benchmarks import results
from benchmarks.decisions.data_sets import data_sets
from benchmarks.expected.compared import compare
from benchmarks.expected.report import report


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=Path, help="a folder of tables")
    parser.add_argument("--only", nargs="+", help="names of data sets; default: all")
    parser.add_argument("--rows", type=int, default=1500, help="of training, at most")
    parser.add_argument("--epochs", type=int, help="of a quick fit; default: the default recipe")
    parser.add_argument("--file", type=Path, default=results.RESULTS / "expected.jsonl")
    arguments = parser.parse_args()
    arguments.file.parent.mkdir(parents=True, exist_ok=True)
    lines = arguments.file.read_text().splitlines() if arguments.file.exists() else []
    known = [json.loads(line) for line in lines]
    done = {found["name"] for found in known}
    for one in data_sets(arguments.tables, arguments.rows):
        if one.name in done or (arguments.only and one.name not in arguments.only):
            continue
        known.append(compare(one, arguments.epochs))
        with arguments.file.open("a", encoding="utf-8") as file:
            file.write(json.dumps(known[-1]) + "\n")
    print(report(known))


if __name__ == "__main__":
    main()
