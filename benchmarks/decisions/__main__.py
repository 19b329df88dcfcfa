"""What decisions cost on held-out rows, beside acting on the most probable class or the mean.

    python -m benchmarks.decisions [--tables FOLDER] [--only NAME …] [--rows N] [--epochs N]
                                  [--file FILE]

FOLDER is as for `benchmarks.tables`; without it there are scikit-learn's sets and generated ones.
Each result is a line of FILE; an interrupted run resumes after its last data set.
"""

import argparse
import json
from pathlib import Path

from benchmarks import results
from benchmarks.decisions.data_sets import data_sets
from benchmarks.decisions.realised import realised
from benchmarks.decisions.report import report


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=Path, help="a folder of tables")
    parser.add_argument("--only", nargs="+", help="names of data sets; default: all")
    parser.add_argument("--rows", type=int, default=1500, help="of training, at most")
    parser.add_argument("--epochs", type=int, help="of a quick fit; default: the default recipe")
    parser.add_argument("--file", type=Path, default=results.RESULTS / "decisions.jsonl")
    arguments = parser.parse_args()
    arguments.file.parent.mkdir(parents=True, exist_ok=True)
    lines = arguments.file.read_text().splitlines() if arguments.file.exists() else []
    known = [json.loads(line) for line in lines]
    done = {found["name"] for found in known}
    for one in data_sets(arguments.tables, arguments.rows):
        if one.name in done or (arguments.only and one.name not in arguments.only):
            continue
        found = realised(one, arguments.epochs)
        known.append(found)
        with arguments.file.open("a", encoding="utf-8") as file:
            file.write(json.dumps(found) + "\n")
    print(report(known))


if __name__ == "__main__":
    main()
