"""What stands in each section of a model card's page."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from app.ui.charts import Cell, Chart, Line, Table, bar_chart, line_chart, per_variant, variant_name
from core.database.schema import Json
from models.evaluation.scores import SCORES, main_scores

_MOST_LEVELS = 50  # in a cell of the table of columns
LEVELS = tuple(i / 10 for i in range(1, 10))
DIAGONAL: Line = ("as it should be", [0, 1], [0, 1])


@dataclass(frozen=True)
class Section:
    """A heading, a few words, and numbers; `absent` says why there are none."""

    name: str
    title: str
    text: str
    absent: str
    tables: Sequence[Table] = ()
    charts: Sequence[Chart] = ()

    @property
    def is_empty(self) -> bool:
        return not self.tables and not self.charts


def sections(card: Json) -> list[Section]:
    """All of them, in the order of the page."""
    return [
        _scores(card),
        _calibration(card),
        _coverage(card),
        _risk(card),
        _pruning(card),
        _strangeness(card),
        _weights(card),
        _learning(card),
        _rows(card),
        _recipe(card),
    ]


def _scores(card: Json) -> Section:
    variants = card["variants"]
    known = [s for s in SCORES if any(s.name in v["metrics"] for v in variants)]
    headers = ("variant", *(score.title for score in known))
    rows = [[variant_name(v["prune"]), *(s.read(v["metrics"]) for s in known)] for v in variants]
    tables = [Table("Scores on held-out rows", headers, rows)]
    beside = variants[0]["metrics"].get("baselines", {})
    if beside:
        own = [["this model", *(score.read(variants[0]["metrics"]) for score in known)]]
        others = [
            [name.replace("_", " "), *(score.read(b) for score in known)]
            for name, b in beside.items()
        ]
        caption = "Beside methods that need no network"
        tables.append(Table(caption, ("method", *headers[1:]), own + others))
    text = "No weight of the model that was scored was fitted to these rows."
    return Section("scores", "Scores on held-out rows", text, "", tables)


def _calibration(card: Json) -> Section:
    variants = card["variants"]
    text = "Whether probabilities mean what they say."
    absent = "Not measured for texts."
    if any(v["metrics"].get("reliability") for v in variants):
        charts = [_reliability(variants)]
    elif any(v["metrics"].get("pit") for v in variants):
        charts = [_calibration_curve(variants), _pit(variants[0]["metrics"]["pit"])]
    else:
        charts = []
    return Section("calibration", "Calibration", text, absent, _corrections(variants), charts)


def _corrections(variants: Sequence[Json]) -> list[Table]:
    """What calibration changed, and what the scores would be without."""
    headers = ("variant", "correction", "rows it is of", "log likelihood without", "with it")
    rows: list[list[Cell]] = []
    for variant in variants:
        metrics, found = variant["metrics"], variant.get("calibration")
        if found:
            told = ", ".join(
                f"{k.replace('_', ' ')} {v:.3g}" for k, v in found.items() if k != "rows"
            )
            before = metrics.get("uncalibrated", {}).get("log_likelihood")
            name = variant_name(variant["prune"])
            rows.append([name, told, found["rows"], before, metrics["log_likelihood"]])
    return [Table("Corrections by held-out rows of their own", headers, rows)] if rows else []


def _reliability(variants: Sequence[Json]) -> Chart:
    return line_chart(
        "reliability",
        "Confidence and accuracy",
        "Each dot stands for a fifteenth of the held-out rows, from the least sure to the most. "
        "Below the diagonal the model is too sure of itself, above it too modest.",
        "confidence (mean probability of the label)",
        "accuracy (share of right labels)",
        per_variant(variants, reliability_line),
        reference=DIAGONAL,
        percent=True,
    )


def reliability_line(metrics: Json) -> Line | None:
    """Confidence and accuracy of a classifier's rows, the least sure first."""
    bins = metrics.get("reliability")
    return bins and ("", [b["confidence"] for b in bins], [b["accuracy"] for b in bins])


def _calibration_curve(variants: Sequence[Json]) -> Chart:
    return line_chart(
        "calibration-curve",
        "Level and coverage of central intervals",
        "How many targets lie inside the central credible interval of each level. Below the "
        "diagonal intervals are too narrow, above it too wide.",
        "level of the interval",
        "coverage (share of rows inside)",
        per_variant(variants, coverage_line),
        reference=DIAGONAL,
        percent=True,
    )


def coverage_line(metrics: Json) -> Line | None:
    """F(y) within ½ ± ½ level is being inside the interval: a sum of the histogram's bins."""
    counts = metrics.get("pit")
    if not counts or not sum(counts):
        return None
    middle, rows = len(counts) // 2, sum(counts)
    half = {level: round(level * middle) for level in LEVELS}
    inside = [sum(counts[middle - n : middle + n]) / rows for n in half.values()]
    return "", list(half), inside


def _pit(counts: Sequence[int]) -> Chart:
    width = 1 / len(counts)
    return bar_chart(
        "pit",
        "Where targets lie in their predictive distributions (full posterior)",
        "F(y) of each held-out row; flat if the distributions are right. A valley says that they "
        "are too narrow, a hill too wide, a slope that they are shifted. The line is what a flat "
        f"histogram of as many rows would have; a bin is off by √{sum(counts) * width:.3g} = "
        f"{math.sqrt(sum(counts) * width):.2g} rows by chance.",
        "F(y), probability below the target",
        "held-out rows",
        [i * width for i in range(len(counts))],
        width,
        counts,
        level=sum(counts) * width,
    )


def _coverage(card: Json) -> Section:
    variants = card["variants"]
    text = (
        "The share of held-out targets inside the intervals of each level. Widths are in the "
        "target's unit. Credible intervals are what the posterior says; conformal ones hold their "
        "level for rows that come as these did, whatever the posterior."
    )
    levels = [float(level) for level in variants[0]["metrics"].get("coverage") or ()]
    if not levels:
        absent = "Classes and texts have no intervals."
        return Section("coverage", "Coverage", text, absent)
    headers = ("variant", "interval", *(f"{100 * level:g} %" for level in levels))
    errors = [_standard_error(level, variants[0]["metrics"]["rows"]) for level in levels]
    by_chance: list[Cell] = ["chance alone", "two standard errors", *errors]
    shares = _by_level(variants, {"credible": "coverage", "conformal": "conformal_coverage"})
    widths = _by_level(variants, {"credible": "interval_width", "conformal": "conformal_width"})
    tables = [
        Table("Coverage on held-out rows, by level", headers, [*shares, by_chance]),
        Table("Mean width on held-out rows, by level", headers, widths),
    ]
    return Section("coverage", "Coverage", text, "", tables)


def _by_level(variants: Sequence[Json], names: Mapping[str, str]) -> list[list[Cell]]:
    """A row per variant and kind of interval; what was not measured is empty."""
    levels = variants[0]["metrics"]["coverage"]
    return [
        [variant_name(v["prune"]), kind, *(_told(v["metrics"][name], level) for level in levels)]
        for v in variants
        for kind, name in names.items()
        if v["metrics"].get(name)
    ]


def _told(values: Json, level: str) -> Cell:
    """A width that is null is one without end."""
    if level not in values:
        return None
    return "unbounded" if values[level] is None else float(values[level])


def _standard_error(share: float, rows: int) -> float:
    """Two of them, of a binomial share."""
    return 2 * math.sqrt(share * (1 - share) / max(1, rows))


def _risk(card: Json) -> Section:
    lines = per_variant(card["variants"], _risk_line)
    text = "What is gained by leaving the least certain rows to people."
    absent = "Not measured for this version."
    chart = line_chart(
        "risk-coverage",
        "Risk among the rows that are answered",
        "From right to left more and more of the uncertain rows are left out. The line should fall "
        "on its way to the left: then uncertainty tells where errors are.",
        "coverage (share of rows answered)",
        "risk (RMSE or share of wrong labels)",
        lines,
        percent=True,
    )
    return Section("risk", "Risk and coverage", text, absent, charts=[chart] if lines else [])


def _risk_line(metrics: Json) -> Line | None:
    curve = metrics.get("risk_coverage")
    return curve and (
        "",
        [point["coverage"] for point in curve],
        [point["risk"] for point in curve],
    )


def _pruning(card: Json) -> Section:
    variants = card["variants"]
    text = (
        "Weights with the lowest ratio of |μ| to σ are removed: smaller and faster, and how good?"
    )
    absent = "This version has no pruned variants."
    if len(variants) < 2:
        return Section("pruning", "Pruning", text, absent)
    prunes = [v["prune"] for v in variants]
    shown = main_scores(variants[0]["metrics"])
    charts = [
        line_chart(
            f"pruning-{score.name.replace('_', '-')}",
            f"Pruning and {score.label}",
            "On held-out rows, for each stored variant.",
            "weights removed",
            score.title,
            [("variants", prunes, [score.read(v["metrics"]) for v in variants])],
            percent=True,
        )
        for score in shown
    ]
    headers = ("variant", "weights left", "bytes stored", *(score.title for score in shown))
    rows: list[list[Cell]] = [
        [
            variant_name(v["prune"]),
            v["num_weights"],
            v["bytes"],
            *(score.read(v["metrics"]) for score in shown),
        ]
        for v in variants
    ]
    size = line_chart(
        "pruning-size",
        "Pruning and size",
        "A pruned variant is stored as the weights that are left and a bit per weight for where.",
        "weights removed",
        "stored, kB",
        [("variants", prunes, [v["bytes"] / 1000 for v in variants])],
        percent=True,
    )
    tables = [Table("Pruned variants", headers, rows)]
    return Section("pruning", "Pruning", text, absent, tables, [*charts, size])


def _strangeness(card: Json) -> Section:
    rows = [
        [
            variant_name(o["prune"]),
            o["score"].replace("_", " "),
            o["threshold"],
            f"{100 * o['false_alarm_rate']:g} %",
        ]
        for o in card["out_of_distribution"]
    ]
    headers = ("variant", "score of a row", "threshold", "held-out rows above it")
    text = (
        "Rows whose score is above the threshold are called out of distribution. That they are "
        "below it does not prove that they are like the ones seen in training."
    )
    tables = [Table("Scores and thresholds", headers, rows)] if rows else []
    absent = "No text is called out of distribution."
    return Section("out-of-distribution", "Out of distribution", text, absent, tables)


def _weights(card: Json) -> Section:
    found = card["signal_to_noise"]
    text = "How far each weight is from 0, in units of its own uncertainty."
    absent = "Not there: the method has no σ per weight."
    if found is None:
        return Section("weights", "Signal-to-noise ratio of the weights", text, absent)
    chart = bar_chart(
        "signal-to-noise",
        "Weights by their signal-to-noise ratio (full posterior)",
        "A vertical line is where a pruned variant's fraction of the weights lies below; what is "
        "left of it is what pruning removes first. At 0 dB a mean is as large as its deviation.",
        "20 log₁₀ |μ|/σ, dB",
        "weights",
        [found["first"] + i for i in range(len(found["counts"]))],
        1.0,
        found["counts"],
        marks=[(f"{100 * cut['prune']:g} %", cut["at"]) for cut in found["cuts"]],
    )
    return Section("weights", "Signal-to-noise ratio of the weights", text, absent, charts=[chart])


def _learning(card: Json) -> Section:
    curve = card["learning_curve"]
    text = "Of the first fit, before anything was pruned."
    epochs = [e["epoch"] for e in curve]
    held_out = [_minus(e["held_out_log_likelihood"]) for e in curve]
    lines: list[Line] = [
        ("negative ELBO", epochs, [e["nelbo"] for e in curve]),
        ("NLL, training rows", epochs, [e["nll"] for e in curve]),
    ]
    if any(value is not None for value in held_out):
        lines.append(("NLL, held-out rows", epochs, held_out))
    unit = "nats per token" if card["task"] == "language_model" else "nats per row"
    losses = line_chart(
        "losses",
        "Losses",
        "What is minimised and its likelihood part, and the same likelihood of held-out rows (with "
        "several draws). A number is in units of its standard deviation. While the KL's weight "
        "warms up, the negative ELBO may rise.",
        "epoch",
        unit,
        lines,
    )
    divergence = line_chart(
        "divergence",
        "Divergence of the posterior from the prior, before its weight",
        "KL(q‖p), the price of what was learned; 0 for methods without one.",
        "epoch",
        unit,
        [("KL", epochs, [e["kl"] for e in curve])],
    )
    return Section("learning", "Learning curve", text, "", charts=[losses, divergence])


def _minus(value: float | None) -> float | None:
    return None if value is None else -value


def _rows(card: Json) -> Section:
    found = card["rows"]
    columns = found["columns"]
    known = [key for key in ("min", "max", "mean", "std") if any(key in c for c in columns)]
    has_levels = any("levels" in c for c in columns)
    headers = ("column", "role", "type", "missing", *known, *["levels (rows)"] * has_levels)
    rows = [
        [c["name"], c["role"], _type(c), c["missing"]]
        + [c.get(key) for key in known]
        + [_levels(c)] * has_levels
        for c in columns
    ]
    text = (
        f"{found['learned']:,} learned from{_others(found)}, {found['held_out']:,} held out "
        f"({_split(found['split'])}). The table is of those that were learned from."
    )
    return Section("rows", "Rows", text, "", [Table("Columns", headers, rows)])


def _others(found: Json) -> str:
    """Rows that were neither learned from nor scored."""
    uses = {"stopping": "that chose the epoch", "calibration": "for calibration"}
    return "".join(f", {found[key]:,} {use}" for key, use in uses.items() if found.get(key))


def _type(column: Json) -> str:
    shape = "×".join(map(str, column.get("shape") or ()))
    return f"{column['type']} {shape}".strip()


def _levels(column: Json) -> str | None:
    levels = column.get("levels")
    if levels is None:
        return None
    told = ", ".join(f"{name} ({rows})" for name, rows in levels[:_MOST_LEVELS])
    more = column["num_levels"] - len(levels[:_MOST_LEVELS])
    return told + (f" and {more} more" if more else "")


def _split(split: str | Json) -> str:
    names = {"random": "at random", "last": "the last ones"}
    if isinstance(split, str):
        return names[split]
    ((kind, column),) = split.items()
    return f"whole groups of {column}" if kind == "by" else f"the latest by {column}"


def _recipe(card: Json) -> Section:
    told = {True: "asked for", False: "recipe", None: "not noted"}
    rows = [[s["setting"], _value(s["value"]), told[s["given"]]] for s in card["recipe"]]
    headers = ("setting", "value", "from")
    text = "Every setting, and whether the request named it or the recommended recipe filled it in."
    return Section("recipe", "Recipe", text, "", [Table("Settings", headers, rows)])


def _value(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(map(_value, value))
    return str(value).lower() if isinstance(value, bool) else str(value)
