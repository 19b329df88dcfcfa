"""The findings of a data set on its page: grouped by severity, each with a button for its fix."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from app.ui.reading import option_words, written
from core.database.schema import Json
from core.datasets.dataset import Dataset
from core.datasets.findings.finding import Code, Finding, Severity
from models.features.columns import ColumnReading

TYPES: Mapping[str, str] = {
    "number": "a number",
    "category": "a category",
    "boolean": "true or false",
    "datetime": "a date or time",
    "text": "text",
}
_TITLES: Mapping[Severity, str] = {
    "error": "Fix before a training",
    "warning": "Worth a look",
    "info": "Understood",
}
_FIRST: Mapping[Severity, int] = {"error": 20, "warning": 10, "info": 3}
"""How many are shown at once; the others are folded."""
OF_READING: frozenset[Code] = frozenset({"encoding", "header_missing", "index", "lines_left_out"})
MOST_NAMED = 3  # changes in a sentence
EXACT = "exact"  # the format of a category whose blanks and case count
KEPT = "This is a new data set; the old one is kept."


@dataclass(frozen=True)
class Mending:
    """A button that applies a fix.

    Args:
        body: of `POST /datasets/{id}/columns`.
        label: what it does.
        done: what was done, for the notice afterwards.
        hint: what stands beside it.
    """

    body: Json
    label: str
    done: str
    hint: str = ""


@dataclass(frozen=True)
class Shown:
    """A finding with its button, if it can be mended."""

    finding: Finding
    mending: Mending | None

    @property
    def is_of_reading(self) -> bool:
        """Whether the file may have to be read in another way."""
        return self.mending is None and self.finding.code in OF_READING


@dataclass(frozen=True)
class FindingGroup:
    """The findings of one severity. `more` are folded at first."""

    severity: Severity
    title: str
    first: Sequence[Shown]
    more: Sequence[Shown]


def shown(finding: Finding) -> Shown:
    """The finding as a page shows it."""
    return Shown(finding, mending(finding.fix) if finding.fix else None)


def finding_groups(findings: Iterable[Finding]) -> list[FindingGroup]:
    """The findings by severity, the worst first. Of equal fixes only the first has a button."""
    by: dict[Severity, list[Shown]] = {severity: [] for severity in _TITLES}
    fixes: list[Mapping[str, Any]] = []
    for finding in findings:
        is_repeated = finding.fix in fixes
        by[finding.severity].append(Shown(finding, None) if is_repeated else shown(finding))
        if finding.fix:
            fixes.append(finding.fix)
    return [
        FindingGroup(
            severity, title, by[severity][: _FIRST[severity]], by[severity][_FIRST[severity] :]
        )
        for severity, title in _TITLES.items()
        if by[severity]
    ]


def mend_all(findings: Iterable[Finding]) -> Mending | None:
    """One fix of all errors and warnings; None if fewer than two can be mended at once.

    Of fixes that contradict each other, the first one counts. Left out are fixes that undo what
    was done (another reading of a column, an identifier as a feature), and those that change how
    the file is read, because they change the columns.
    """
    columns: dict[str, Json] = {}
    count = 0
    for finding in findings:
        if finding.severity == "info" or not _mends(finding):
            continue
        changes = (finding.fix or {}).get("columns", ())
        if any(_contradicts(change, columns.get(change["name"], {})) for change in changes):
            continue
        count += 1
        for change in changes:
            columns[change["name"]] = _joined(columns.get(change["name"], {}), change)
    if count < 2:
        return None
    changes = list(columns.values())
    labels = [label for change in changes for label, _ in _of_column(change)]
    hint = "; ".join(labels[:MOST_NAMED]) + ("; …" if len(labels) > MOST_NAMED else "")
    told = f"Apply {count} fixes at once", f"Applied {count} fixes. {KEPT}"
    return Mending({"columns": changes}, *told, hint)


def mending(fix: Mapping[str, Any]) -> Mending:
    """The button of a fix."""
    words = list(_words(fix))
    label, done = ("; ".join(told[i] for told in words) for i in (0, 1))
    return Mending(dict(fix), label, f"{done}. {KEPT}")


def said(dataset: Dataset) -> list[str]:
    """What was said about file and columns in earlier changes."""
    given = dataset.given
    columns = [fix for fix in given.fixes if fix.name in {c.name for c in dataset.columns}]
    changes = [{k: v for k, v in vars(fix).items() if v is not None} for fix in columns]
    return [*option_words(given.options), *(done for c in changes for _, done in _of_column(c))]


def reasons(dataset: Dataset) -> dict[str, str]:
    """Why columns are no features by default, by name."""
    found = {reading.name: "you left it out" for reading in _unused(dataset)}
    for finding in dataset.findings:
        if finding.column in found and finding.column not in _left_out_by_caller(dataset):
            found[finding.column] = finding.message
    return found


def _unused(dataset: Dataset) -> Iterator[ColumnReading]:
    return (reading for reading in dataset.readings if not reading.use)


def _left_out_by_caller(dataset: Dataset) -> set[str]:
    return {fix.name for fix in dataset.given.fixes if fix.use is False}


def _mends(finding: Finding) -> bool:
    """Whether the fix mends something. That of a warning may undo a guess instead."""
    if not finding.fix or "options" in finding.fix:
        return False
    return finding.severity == "error" or not any(
        _undoes(finding.code, change) for change in finding.fix.get("columns", ())
    )


def _undoes(code: Code, change: Mapping[str, Any]) -> bool:
    is_guess = code in ("mostly_boolean", "mostly_dates", "mostly_numeric")
    is_text = change.get("type") in ("category", "text")
    return bool(change.get("use")) or "format" in change or (is_guess and is_text)


def _contradicts(change: Mapping[str, Any], before: Mapping[str, Any]) -> bool:
    both = change.keys() & before.keys() - {"name", "missing"}
    return any(change[key] != before[key] for key in both)


def _joined(before: Json, change: Mapping[str, Any]) -> Json:
    """Both changes of a column; texts that stand for missing values add up."""
    missing = [*before.get("missing", ()), *change.get("missing", ())]
    joined = before | dict(change)
    return joined | {"missing": list(dict.fromkeys(missing))} if missing else joined


def _words(fix: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What a fix does, and what was done."""
    options = fix.get("options") or {}
    if list(options) == ["header"]:
        role = "column names" if options["header"] else "data"
        yield f"Read the first line as {role}", f"The first line is read as {role}"
    elif options:
        words = ", ".join(option_words(options))
        yield f"Read the file with {words}", f"The file is read with {words}"
    columns = fix.get("columns", ())
    if len(columns) > MOST_NAMED:
        yield f"Change {len(columns)} columns", f"{len(columns)} columns are changed"
    else:
        for column in columns:
            yield from _of_column(column)


def _of_column(change: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    name = f"“{change['name']}”"
    type_, format_ = TYPES.get(change.get("type", "")), change.get("format")
    how = f" written as {written(format_)}" if format_ else ""
    if format_ == EXACT:
        how = " in which blanks and case count"
    if type_:
        yield f"Read {name} as {type_}{how}", f"{name} is read as {type_}{how}"
    elif format_ == EXACT:
        yield f"Keep blanks and case in {name}", f"Blanks and case count in {name}"
    elif format_:
        yield f"Read {name} as{how}", f"{name} is read as{how}"
    if missing := change.get("missing"):
        texts = ", ".join(f"“{text}”" for text in missing)
        be = "is" if len(missing) == 1 else "are"
        yield f"Read {texts} in {name} as missing", f"{texts} in {name} {be} missing"
    elif missing is not None:
        yield f"Read no text in {name} as missing", f"No text in {name} is missing"
    if change.get("use") is not None:
        use = change["use"]
        yield (
            (f"Use {name}", f"{name} is used")
            if use
            else (f"Leave {name} out", f"{name} is left out")
        )
