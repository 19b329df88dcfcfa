"""The findings of a data set on its page: grouped by severity, each with a button for its fix."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from app.ui.reading import option_words, written
from core.database.schema import Json
from core.datasets.dataset import Dataset
from core.datasets.findings.advice import advised, improves
from core.datasets.findings.finding import MAX_EXAMPLES, Code, Finding, Severity
from models.features.columns import ColumnReading
from models.messages import counted

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
_MOST = 100  # of one severity on the page
OF_READING: frozenset[Code] = frozenset({"encoding", "header_missing", "index", "lines_left_out"})
MOST_NAMED = 3  # changes in a sentence
MOST_LEVELS = 10  # merged ones, in a sentence
_UNIQUE: Mapping[bool, tuple[str, str]] = {
    True: (
        "Leave out rows that equal an earlier one",
        "Rows that equal an earlier one are left out",
    ),
    False: ("Keep rows that equal an earlier one", "Rows that equal an earlier one are kept"),
}
OF_NUMBERS: frozenset[Code] = frozenset(
    {"mostly_numeric", "thousands", "currency", "percent", "unit", "negative"}
)
OF_DATES: frozenset[Code] = frozenset(
    {"mostly_dates", "dates_mixed", "dates_compact", "dates_short_years"}
)
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
    """A finding with its button, if it can be mended.

    Args:
        undoes: whether the button undoes how the table was read.
    """

    finding: Finding
    mending: Mending | None
    undoes: bool = False

    @property
    def is_of_reading(self) -> bool:
        """Whether the file may have to be read in another way."""
        return self.mending is None and self.finding.code in OF_READING


@dataclass(frozen=True)
class FindingGroup:
    """The findings of one severity. `more` are folded at first.

    Args:
        num_left: those that the page leaves out.
    """

    severity: Severity
    title: str
    first: Sequence[Shown]
    more: Sequence[Shown]
    num_left: int = 0


def shown(finding: Finding) -> Shown:
    """The finding as a page shows it."""
    if not finding.fix:
        return Shown(finding, None)
    button = _kept_words(finding) or _counted_rows(finding) or _untyped(finding)
    return Shown(finding, button, not improves(finding))


def _kept_words(finding: Finding) -> Mending | None:
    """The button that makes a category of a column, with words that were read as missing."""
    changes = (finding.fix or {}).get("columns", ())
    words = list(dict.fromkeys(example.value for example in finding.examples))
    if not words or [change.get("missing") for change in changes] != [[]]:
        return None
    more = " and more" if len(words) == MAX_EXAMPLES else ""
    told = ", ".join(f"“{word}”" for word in words) + more
    levels = "a level" if len(words) == 1 else "levels"
    name = f"“{changes[0]['name']}”"
    how = f"a category{_no_longer(finding)}, with {told} as {levels}"
    return Mending(dict(finding.fix or {}), f"Read {name} as {how}", f"{name} is {how}. {KEPT}")


def _untyped(finding: Finding) -> Mending:
    """The button of a fix, which says if the column is no number or date any more."""
    fix = finding.fix or {}
    button = mending(fix)
    types = [change.get("type") for change in fix.get("columns", ())]
    if types != ["category"]:
        return button
    return replace(button, label=button.label + _no_longer(finding))


def _no_longer(finding: Finding) -> str:
    if finding.code in OF_NUMBERS:
        return ", no longer numbers"
    return ", no longer dates" if finding.code in OF_DATES else ""


def _counted_rows(finding: Finding) -> Mending | None:
    """The button that merges levels or leaves copies out, with the rows that it concerns."""
    fix = finding.fix or {}
    if fix == {"options": {"unique_rows": True}}:
        which = "row that equals" if finding.rows == 1 else f"{finding.rows:,} rows that equal"
        return replace(mending(fix), label=f"Leave out the {which} an earlier one")
    if finding.code != "misspelt" or len(fix.get("columns", ())) != 1:
        return None
    levels = fix["columns"][0]["levels"]
    rows = f" ({counted(finding.rows, 'row')})"
    if len(levels) == 1:
        ((level, meant),) = levels.items()
        label = f"Read “{level}”{rows} as “{meant}”"
    else:
        label = f"Read {_as_others(levels)}{rows}"
    return replace(mending(fix), label=label)


def finding_groups(findings: Iterable[Finding]) -> list[FindingGroup]:
    """The findings by severity, the worst first. Of equal fixes only the first has a button."""
    by: dict[Severity, list[Shown]] = {severity: [] for severity in _TITLES}
    num_left: Counter[Severity] = Counter()
    fixes: list[Mapping[str, Any]] = []
    for finding in findings:
        if len(by[finding.severity]) == _MOST:
            num_left[finding.severity] += 1
            continue
        is_repeated = finding.fix in fixes
        by[finding.severity].append(Shown(finding, None) if is_repeated else shown(finding))
        if finding.fix:
            fixes.append(finding.fix)
    return [
        FindingGroup(
            severity,
            title,
            by[severity][: _FIRST[severity]],
            by[severity][_FIRST[severity] :],
            num_left[severity],
        )
        for severity, title in _TITLES.items()
        if by[severity]
    ]


def mend_all(findings: Sequence[Finding]) -> Mending | None:
    """One fix of all that is advised (`core.datasets.findings.advice`); None if fewer than two."""
    columns: dict[str, Json] = {}
    options: Json = {}
    fixes: list[Mapping[str, Any]] = []
    for finding, is_advised in zip(findings, advised(findings), strict=True):
        if finding.fix and is_advised and finding.fix not in fixes:
            fixes.append(finding.fix)
            options |= finding.fix.get("options", {})
            for change in finding.fix.get("columns", ()):
                columns[change["name"]] = _joined(columns.get(change["name"], {}), change)
    if len(fixes) < 2:
        return None
    hint = "; ".join(label for fix in fixes for label, _ in _words(fix))
    told = f"Apply {len(fixes)} fixes at once", f"Applied {len(fixes)} fixes. {KEPT}"
    body: Json = {"columns": list(columns.values())}
    return Mending(body | ({"options": options} if options else {}), *told, hint)


def mending(fix: Mapping[str, Any]) -> Mending:
    """The button of a fix."""
    words = list(_words(fix))
    label, done = ("; ".join(told[i] for told in words) for i in (0, 1))
    return Mending(dict(fix), label, f"{done}. {KEPT}")


def said(dataset: Dataset) -> list[str]:
    """What was said about file and columns in earlier changes."""
    given = dataset.given
    names = {column.name for column in dataset.columns}
    columns = [fix for fix in given.fixes if fix.name in names]
    changes = [{k: v for k, v in vars(fix).items() if v is not None} for fix in columns]
    return [*option_words(given.options), *(done for c in changes for _, done in _of_column(c))]


def reasons(dataset: Dataset) -> dict[str, str]:
    """Why columns are no features by default, by name."""
    found = {reading.name: "you left it out" for reading in _unused(dataset)}
    by_caller = _left_out_by_caller(dataset)
    for finding in dataset.findings:
        if finding.column in found and finding.column not in by_caller:
            found[finding.column] = finding.message
    return found


def _unused(dataset: Dataset) -> Iterator[ColumnReading]:
    return (reading for reading in dataset.readings if not reading.use)


def _left_out_by_caller(dataset: Dataset) -> set[str]:
    return {fix.name for fix in dataset.given.fixes if fix.use is False}


def _joined(before: Json, change: Mapping[str, Any]) -> Json:
    """Both changes of a column; texts that stand for missing values, and merged levels, add up."""
    missing = [*before.get("missing", ()), *change.get("missing", ())]
    levels = before.get("levels", {}) | change.get("levels", {})
    joined = before | dict(change) | ({"levels": levels} if levels else {})
    return joined | {"missing": list(dict.fromkeys(missing))} if missing else joined


def _words(fix: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What a fix does, and what was done."""
    options = fix.get("options") or {}
    if list(options) == ["header"]:
        role = "column names" if options["header"] else "data"
        yield f"Read the first line as {role}", f"The first line is read as {role}"
    elif list(options) == ["unique_rows"]:
        yield _UNIQUE[bool(options["unique_rows"])]
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
    if levels := change.get("levels"):
        yield f"Read {_as_others(levels)} in {name}", f"{_as_others(levels)} is read in {name}"
    elif levels is not None:
        yield f"Merge no levels of {name}", f"No levels of {name} are merged"
    if change.get("use") is not None:
        use = change["use"]
        yield (
            (f"Use {name}", f"{name} is used")
            if use
            else (f"Leave {name} out", f"{name} is left out")
        )


def _as_others(levels: Mapping[str, str]) -> str:
    """`“Berln” as “Berlin”, “Rmoe” as “Rome”`."""
    told = [f"“{level}” as “{meant}”" for level, meant in levels.items()]
    more = f" and {len(told) - MOST_LEVELS} more" if len(told) > MOST_LEVELS else ""
    return ", ".join(told[:MOST_LEVELS]) + more
