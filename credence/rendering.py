"""Output of the commands: tables drawn with rich, JSON, and messages."""

import json
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NoReturn

import typer
from rich.console import Console
from rich.table import Table

from credence.digits import digits
from credence.types import Card, Column, ComparedMethod, Dataset, Job, Json, Model, Version

SCORES = {  # and their headers, so short that the scores of one task fit into 80 characters
    "log_likelihood": "log lik.",
    "perplexity": "perplexity",
    "rmse": "rmse",
    "mae": "mae",
    "crps": "crps",
    "mase": "mase",
    "coverage 0.9": "cover\n90%",
    "conformal_coverage 0.9": "conformal\n90%",
    "accuracy": "accuracy",
    "brier": "brier",
    "ece_debiased": "ece, no\nchance",
    "ece": "ece",
}
CLASSICS = {"auto_ets": "AutoETS", "auto_theta": "AutoTheta", "auto_arima": "AutoARIMA"}
VERDICTS = {"worse": "worse", "no difference": "no difference to be seen", "": ""}
PAIRED = ("compared_rows", "verdict", "difference", "difference_error", "optimism")
NUMBER = r"-?\d[\d.,]*(e[+-]\d+)?%?"
# Cells that must not be broken into two lines: numbers, spans, and strips (`credence.strips`).
SPAN = re.compile(rf"{NUMBER} to {NUMBER}|{NUMBER}|unbounded|[ ─●‹›]*")
MAX_LEVELS = 6  # of a category that are shown, each with so many characters:
MAX_LEVEL_LENGTH = 40
MOST_CONFUSED = 10  # classes of a confusion table
MIN_TEXT_WIDTH = 8  # characters of a column whose cells may be broken into lines
TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")  # always in UTC
GAP = 2  # characters between the columns of a table
PIPED_WIDTH = 160  # characters of a table that is not printed on a terminal

errors = Console(stderr=True, width=None if sys.stderr.isatty() else PIPED_WIDTH)
output = Console(width=None if sys.stdout.isatty() else PIPED_WIDTH)


def note(message: str, style: str | None = None) -> None:
    """Print a line on standard error, without markup: names may contain brackets."""
    errors.print(message, style=style, markup=False, highlight=False, soft_wrap=True)


def fail(message: str, exit_code: int) -> NoReturn:
    """Print an error on standard error and end the command."""
    note(f"error: {message}", style="red")
    raise typer.Exit(exit_code)


def print_json(value: Any) -> None:
    """Print a JSON document on standard output."""
    typer.echo(json.dumps(value, indent=2, ensure_ascii=False))


def print_line(message: str, to: Console, style: str | None = None) -> None:
    """Print a line without markup; a pipe gets it whole."""
    to.print(message, style=style, markup=False, highlight=False, soft_wrap=not to.is_terminal)


def print_table(
    headers: Sequence[str],
    rows: Iterable[Sequence[Any]],
    title: str = "",
    styles: Sequence[str] | None = None,
    to: Console | None = None,
) -> None:
    """Print a table, by default on standard output; numbers are aligned to the right."""
    to = to or output
    cells = [[_cell(value) for value in row] for row in rows]
    table = Table(title=title or None, title_justify="left", box=None, pad_edge=False)
    min_width = 2 * len(headers)
    for index, header in enumerate(headers):
        column = [row[index] for row in cells]
        numeric = all(re.fullmatch(NUMBER, cell) for cell in column if cell)
        whole = all(SPAN.fullmatch(cell) for cell in column)
        justify: Literal["right", "left"] = "right" if numeric else "left"
        table.add_column(header, justify=justify, overflow="fold", no_wrap=whole)
        widest = max(map(len, [*header.split("\n"), *column]))
        min_width += widest if whole else min(widest, MIN_TEXT_WIDTH)
    if min_width > to.width:  # the terminal wraps lines; rich would cut numbers off
        table.width = min_width
    for row, style in zip(cells, styles or [""] * len(cells), strict=True):
        table.add_row(*row, style=style)
    to.print(table, markup=False, highlight=False, crop=False)


def table_width(columns: Mapping[str, Sequence[Any]]) -> int:
    """The width of a table whose lines are not broken, by its headers and cells."""
    widths = (
        max(map(len, [*header.split("\n"), *(_cell(value) for value in values)]))
        for header, values in columns.items()
    )
    return sum(widths) + GAP * (len(columns) - 1)


def print_fields(fields: Mapping[str, Any]) -> None:
    """Print a line per name and value; values that are None are left out."""
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    for name, value in fields.items():
        if value is not None:
            table.add_row(name, _cell(value))
    output.print(table, markup=False, highlight=False)


def print_jobs(jobs: Iterable[Job]) -> None:
    """Print a line per job."""
    headers = ["job", "model", "status", "progress", "created"]
    rows = ([j["id"], j["model"], j["status"], _done(j), j["created_at"]] for j in jobs)
    print_table(headers, rows)


def print_job(job: Job) -> None:
    """Print a job's state, its latest metrics and its error."""
    version = job["version"]
    fields: Json = {
        "job": job["id"],
        "status": job["status"],
        "model": job["model"] if version is None else f"{job['model']} version {version}",
        "progress": _done(job) or None,
        "attempt": job["attempt"],
        "queue position": job["queue_position"],
        "created": job["created_at"],
        "started": job["started_at"],
        "finished": job["finished_at"],
    }
    if job["error"]:
        fields["error"] = f"{job['error']['message']} ({job['error']['code']})"
    print_fields(fields | flatten(job["metrics"]))
    print_notes(job.get("notes"))


def print_comparison(rows: Sequence[ComparedMethod]) -> None:
    """Print a line per method, and a column per score that any method has.

    Then how the methods differ from the best one, row by row.
    """
    others = {"name", "method", "job", "status", "version", "error", "standard_errors", *PAIRED}
    known = dict.fromkeys(key for row in rows for key, value in row.items() if value is not None)
    scores = [key for key in known if key not in others]
    lines = (
        [row["name"], row["version"] or row["status"], *(row.get(key) for key in scores)]
        for row in rows
    )
    print_table(["method", "version", *scores], lines)
    compared = [row for row in rows if row.get("verdict")]
    if compared:
        _print_pairs(compared)


def _print_pairs(rows: Sequence[ComparedMethod]) -> None:
    """Print the comparison in pairs: differences of log likelihoods on the same rows."""
    headers = ["method", "behind the best", "standard error", "verdict"]
    cells = (
        [r["name"], r["difference"], r["difference_error"], VERDICTS[r["verdict"] or ""]]
        if r["verdict"] != "best"
        else [r["name"], None, None, "best"]
        for r in rows
    )
    print_table(headers, cells)
    best = next(row for row in rows if row["verdict"] == "best")
    output.print(
        f"Log likelihood on the same {best['compared_rows']} rows. As the best of {len(rows)}, "
        f"that of {best['name']} is too good by about {best['optimism']:.2g} nats.",
        markup=False,
        highlight=False,
    )


def print_datasets(datasets: Iterable[Dataset]) -> None:
    """Print a line per data set."""
    headers = ["dataset", "name", "format", "rows", "columns", "bytes", "created"]
    rows = (
        [d["id"], d["name"], d["format"], d["rows"], len(d["columns"]), d["bytes"], d["created_at"]]
        for d in datasets
    )
    print_table(headers, rows)


def print_models(models: Iterable[Model]) -> None:
    """Print a line per model, with its newest version."""
    headers = ["model", "version", "task", "target", "weights", "created"]
    rows = (
        [m["name"], m["version"], m["task"], m["target"], m["num_weights"], m["created_at"]]
        for m in models
    )
    print_table(headers, rows)


def print_version(version: Version) -> None:
    """Print a version: scores, simple methods, what training compared, and notes."""
    print_scores(version)
    print_members(version.get("forecast_members"))
    print_notes(version.get("notes"))


def print_members(members: Sequence[Json] | None) -> None:
    """Print what forecasts are mixtures of, if it is more than the network."""
    if members and len(members) > 1:
        parts = [f"{100 * one['weight']:.0f} % {one['name']}" for one in members]
        text = f"Forecasts are mixtures: {'; '.join(parts)}"
        output.print(text, markup=False, highlight=False)


def print_notes(notes: Sequence[str] | None) -> None:
    """Print what was decided; a service of an older release sends no notes."""
    if notes:
        output.print("Notes", style="bold")
        for text in notes:
            output.print(f"- {text}", markup=False, highlight=False)


def print_scores(version: Version | Card) -> None:
    """Print scores on held-out rows: of each variant, of simple methods and of candidates."""
    aliases = "".join(f" ({alias})" for alias in version["aliases"])
    output.print(
        f"{version['model']} version {version['version']}{aliases}: {version['task']} of "
        f"{version['target']!r} from {len(version['features'])} features",
        style="bold",
        highlight=False,
        markup=False,
    )
    metrics = [flatten(variant["metrics"]) for variant in version["variants"]]
    names = [name for name in SCORES if name in metrics[0]]
    rows = []
    for variant, values in zip(version["variants"], metrics, strict=True):
        first = [f"{variant['prune']:.0%}", variant["num_weights"], variant["bytes"]]
        rows.append(first + [values.get(name) for name in names])
        errors = [values.get(f"standard_errors {name}") for name in names]
        if any(error is not None for error in errors):  # versions of older releases have none
            rows.append(["±", None, None, *errors])
    print_table(["pruned", "weights", "bytes", *(SCORES[name] for name in names)], rows)
    _print_targets(version.get("joint"), metrics[0])
    _print_classes(version["variants"][0]["metrics"])
    _print_baselines(version)
    _print_classics(version["variants"][0]["metrics"])
    _print_selection(version)


def _print_targets(joint: Any, metrics: Mapping[str, Any]) -> None:
    """Print the scores of several targets, and how they depend on each other."""
    if joint is None:
        return
    output.print("Targets, and their correlation beside what the features say", style="bold")
    names = [one["target"] for one in joint["targets"]]
    rows = []
    for one, correlations in zip(joint["targets"], joint["correlation"], strict=True):
        found = flatten(one["metrics"])
        rows.append([one["target"], found["rmse"], found["crps"], *correlations])
    print_table(["target", "rmse", "crps", *names], rows)
    share = metrics.get("joint_coverage 0.9")
    if share is not None:
        output.print(f"all inside their joint 90% intervals: {share:.1%} of the held-out rows")


def _print_classes(metrics: Mapping[str, Any]) -> None:
    """Print the scores by class of the full model, the thresholds, and the confusion table."""
    if not metrics.get("by_class"):  # no classes, more than 50, or a service of an older release
        return
    names = [_class_name(one["class"]) for one in metrics["by_class"]]
    keys = ("rows", "recall", "precision", "average_precision", "auroc")
    each = zip(names, metrics["by_class"], strict=True)
    rows = [[name, *(one[key] for key in keys)] for name, one in each]
    rows.append(["all", "", metrics["balanced_accuracy"], "", *(metrics[k] for k in keys[3:])])
    headers = ["class", "rows", "recall", "precision", "average\nprecision", "auroc"]
    print_table(headers, rows, "\nBy class, without pruning")
    if points := metrics.get("thresholds"):
        shown = [[one[key] for key in ("threshold", *keys[1:3], "share")] for one in points]
        headers = ["threshold", "recall", "precision", "share of rows"]
        print_table(
            headers, shown, f"\nFlagged as {_class_name(metrics['positive'])} from a threshold on"
        )
    if len(names) <= MOST_CONFUSED:
        cells = zip(names, metrics["confusion"]["counts"], strict=True)
        confused = [[name, *counts] for name, counts in cells]
        print_table(["truth \\ predicted", *names], confused, "\nConfusion")


def _class_name(name: str | float) -> str:
    return str(name).lower() if isinstance(name, bool) else _cell(name)


def _print_baselines(version: Version | Card) -> None:
    """Print the scores of simple methods below those of the full model."""
    found = version.get("baselines")  # a service of an older release sends none
    if not found:
        return
    own = flatten(version["variants"][0]["metrics"])
    measured = [flatten(one["metrics"]) for one in found]
    names = [name for name in SCORES if any(name in metrics for metrics in measured)]
    rows = [["this model", "", "", *map(own.get, names)]]
    for one, metrics in zip(found, measured, strict=True):
        kind = one["kind"].replace("_", " ")
        rows.append([kind, one["rows"], one["seconds"], *map(metrics.get, names)])
    headers = ["method", "rows\nlearned", "seconds", *(SCORES[name] for name in names)]
    print_table(headers, rows, "\nBeside it, on the same rows")


def _print_classics(metrics: Mapping[str, Any]) -> None:
    """Print a forecast's classical methods beside it, at the origins where each was fitted."""
    found = metrics.get("baselines")
    if not found or not any("verdict" in one for one in found.values()):
        return  # no forecast, or a service of an older release
    rows = [_classic_row(name, one, one.get("this_model", metrics)) for name, one in found.items()]
    headers = ["method", "origins", "crps", "this\nmodel", "cover\n90%", "this\nmodel", "better"]
    print_table(headers, rows, "\nBeside it, at the same held-out origins")


def _classic_row(name: str, theirs: Mapping[str, Any], own: Mapping[str, Any]) -> list[Any]:
    scores = [theirs["crps"], own["crps"]]
    scores += [(one.get("coverage") or {}).get("0.9") for one in (theirs, own)]
    label = CLASSICS.get(name, name.replace("_", " "))
    return [label, theirs.get("origins"), *scores, _classic_verdict(label, theirs)]


def _classic_verdict(label: str, theirs: Mapping[str, Any]) -> str:
    found = theirs.get("verdict")
    if found is None:
        return ""
    by = digits(abs(theirs["advantage"]), 3)
    if theirs["advantage_error"] is not None:
        by += f" ± {digits(theirs['advantage_error'], 2)}"
    better = {"better": f"this model by {by}", "worse": f"{label} by {by}"}
    return better.get(found, f"neither, {by}")


def _print_selection(version: Version | Card) -> None:
    """Print the candidates that training compared, the best first."""
    found = version.get("selection")
    if not found or not found["candidates"]:
        return
    rows = [
        [
            one["name"],
            one["score"],
            one["standard_error"],
            one["difference"],
            one["difference_error"],
            "yes" if one["kept"] else "no",
        ]
        for one in sorted(found["candidates"], key=lambda one: one["score"], reverse=True)
    ]
    score = SCORES.get(found["metric"], found["metric"])
    headers = ["candidate", score, "standard\nerror", "to the\nbest", "its\nerror", "kept"]
    print_table(headers, rows, f"\nWhat was tried, on {found['rows']} rows left out")
    if found["note"]:
        output.print(found["note"], markup=False, highlight=False)


def print_card(card: Card) -> None:
    """Print scores, rows, requested settings and known limits."""
    print_scores(card)
    rows, requested = card["rows"], [s for s in card["recipe"] if s["given"]]
    counts = f"{rows['learned']} for training, {rows['held_out']} held out"
    print_fields({"rows": counts, "split": json.dumps(rows["split"])})
    if requested:
        output.print("Requested settings", style="bold")
        print_fields({setting["setting"]: setting["value"] for setting in requested})
    for title, texts in (("Known limits", card["limits"]), ("Notes", card["notes"])):
        if texts:
            output.print(title, style="bold")
        for text in texts:
            output.print(f"- {text}", markup=False, highlight=False)


def flatten(values: Mapping[str, Any], prefix: str = "") -> Json:
    """Nested objects as one level: {"coverage": {"0.9": 0.88}} becomes {"coverage 0.9": 0.88}.

    Lists, which hold curves and histograms, are left out.
    """
    flat: Json = {}
    for name, value in values.items():
        if isinstance(value, list):
            continue
        nested = flatten(value, f"{prefix}{name} ") if isinstance(value, Mapping) else None
        flat |= {f"{prefix}{name}": value} if nested is None else nested
    return flat


def _done(job: Job) -> str:
    progress = job["progress"]
    return f"{progress['fraction']:.0%}" if progress else ""


def describe_values(column: Column) -> str:
    """The first levels, the range and moments, or the shape of a column."""
    if "levels" in column:
        return _levels(column["levels"], column.get("num_levels") or len(column["levels"]))
    if "min" in column:
        low, high, mean, std = (_cell(column.get(key)) for key in ("min", "max", "mean", "std"))
        return f"{low} to {high}, mean {mean} ± {std}"
    return "×".join(map(str, column.get("shape", [])))


def _levels(levels: Sequence[str], count: int) -> str:
    shown = ", ".join(level[:MAX_LEVEL_LENGTH] for level in levels[:MAX_LEVELS])
    return f"{shown}, … ({count} levels)" if count > MAX_LEVELS else shown


def _cell(value: Any) -> str:
    match value:
        case None:
            return ""
        case float():
            return digits(value)
        case str() if TIMESTAMP.fullmatch(value):
            return value[:19].replace("T", " ")
        case _:
            return str(value)
