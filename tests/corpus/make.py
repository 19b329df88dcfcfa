"""Writes the files of the corpus: `python -m tests.corpus.make`."""

from pathlib import Path

from tests.corpus.cases import CASES

FILES = Path(__file__).parent / "files"


def main() -> None:
    """Write every file, and remove those that no case names."""
    FILES.mkdir(exist_ok=True)
    for path in FILES.iterdir():
        if path.name not in {case.file for case in CASES}:
            path.unlink()
    for case in CASES:
        (FILES / case.file).write_bytes(case.content())


if __name__ == "__main__":
    main()
