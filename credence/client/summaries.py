"""Models and jobs as HTML, which notebooks show at the end of a cell."""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any
from urllib.parse import quote

from credence.progress import bar_html, fraction_of, note_on
from credence.types import Job, Json, Version

SCORES = ("log_likelihood", "rmse", "mae", "crps", "mase", "accuracy", "brier", "ece", "perplexity")
METHODS = {"constant": "constant", "linear": "linear", "boosted_trees": "boosted trees"}


class ShownJob(dict[str, Any]):
    """A job as the service sends it; a notebook shows it as a table with a bar."""

    def __init__(self, job: Mapping[str, Any], url: str) -> None:
        super().__init__(job)
        self._url = url

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        job: Any = self
        return job_html(job, self._url)


def job_html(job: Job, url: str) -> str:
    """State, progress and error of a job, with a link to its page."""
    link = _link(f"{url}/ui/jobs/{quote(job['id'])}", job["id"])
    what = f"{job['kind']} {job['model']}" + (f" version {v}" if (v := job["version"]) else "")
    error = job["error"]
    about = f"{error['message']} ({error['code']})" if error else note_on(job)
    state = f"{job['status']} · {about}".rstrip(" ·")
    return f"<p>{link}: {escape(what)}</p>{bar_html(fraction_of(job), state)}"


def model_html(version: Version, url: str) -> str:
    """Scores on held-out rows beside those of simple methods, notes, and a link to the page."""
    name, number = version["model"], version["version"]
    link = _link(f"{url}/ui/models/{quote(name)}/versions/{number}", f"{name} version {number}")
    aliases = f" ({', '.join(version['aliases'])})" if version["aliases"] else ""
    count = len(version["features"])
    about = f"{version['task']} of {version['target']!r} from {count} features"
    notes = "".join(f"<li>{escape(note)}</li>" for note in version.get("notes", []))
    return f"<p>{link}{escape(aliases)}: {escape(about)}</p>{_scores(version)}" + (
        f"<ul>{notes}</ul>" if notes else ""
    )


def _scores(version: Version) -> str:
    """A table: a column per score, a row per method."""
    own = version["metrics"]
    names = [name for name in SCORES if isinstance(own.get(name), int | float)]
    errors: Json = own.get("standard_errors") or {}
    rows = [("this model", [_cell(own[name], errors.get(name)) for name in names])]
    for one in version.get("baselines", []):
        cells = [_cell(one["metrics"].get(name), None) for name in names]
        rows.append((METHODS.get(one["kind"], one["kind"]), cells))
    return _table(["on held-out rows", *names], [[method, *cells] for method, cells in rows])


def _cell(value: Any, error: Any) -> str:
    if not isinstance(value, int | float):
        return ""
    spread = f" ± {error:.2g}" if isinstance(error, int | float) else ""
    return f"{value:.4g}{spread}"


def _table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    head = "".join(f"<th>{escape(header)}</th>" for header in headers)
    body = "".join(
        f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows
    )
    return f"<table><tr>{head}</tr>{body}</table>"


def _link(address: str, text: str) -> str:
    return f'<a href="{escape(address)}">{escape(text)}</a>'
