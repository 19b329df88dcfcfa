"""Sections about the training of a version: its learning curve, its rows and its settings."""

from app.ui.charts import Cell, Content, Line, Table, line_chart
from app.ui.format import format_time, format_year, is_year
from core.database.schema import Json

_MOST_LEVELS = 50  # in a cell of the table of columns


def learning_curve(card: Json) -> Content:
    """The losses and the divergence by epoch."""
    curve = card["learning_curve"]
    unit = "nats per token" if card["task"] == "language_model" else "nats per row"

    def line(name: str, key: str, sign: int = 1) -> Line:
        values = [None if e[key] is None else sign * e[key] for e in curve]
        return name, [e["epoch"] for e in curve], values

    lines = [
        line("negative ELBO", "nelbo"),
        line("NLL, training rows", "nll"),
        line("NLL, held-out rows", "held_out_log_likelihood", -1),
    ]
    losses = line_chart(
        "losses",
        "Losses",
        "The negative ELBO, which is minimised, the negative log likelihood in it, and that of "
        "held-out rows (of several draws). Targets are in units of their standard deviation. While "
        "the weight of the KL warms up, the negative ELBO may rise.",
        "epoch",
        unit,
        [found for found in lines if any(value is not None for value in found[2])],
    )
    divergence = line_chart(
        "divergence",
        "Divergence of the posterior from the prior, before its weight",
        "KL(q‖p): how far the posterior is from the prior. 0 for methods without it.",
        "epoch",
        unit,
        [line("KL", "kl")],
    )
    return [], [losses, divergence]


def columns(card: Json) -> Content:
    """A row per column, with the statistics of its values."""
    found = card["rows"]["columns"]
    known = [key for key in ("min", "max", "median", "mean", "std") if any(key in c for c in found)]
    levels = ["levels (rows)"] * any("levels" in c for c in found)
    rows = [
        [c["name"], c["role"], _type(c), c["missing"]]
        + [_statistic(c, key) for key in known]
        + [_levels(c) for _ in levels]
        for c in found
    ]
    headers = ("column", "role", "type", "missing", *known, *levels)
    return [Table("Columns", headers, rows)], []


def _statistic(column: Json, key: str) -> Cell:
    """A statistic as people write it: years without separators, days without midnight."""
    value: Cell = column.get(key)
    if isinstance(value, str):
        return format_time(value)
    if key != "std" and is_year(column["name"], column.get("min"), column.get("max")):
        return format_year(value)
    return value


def _type(column: Json) -> str:
    shape = "×".join(map(str, column.get("shape") or ()))
    return f"{column['type']} {shape}".strip()


def _levels(column: Json) -> str | None:
    levels = column.get("levels")
    if levels is None:
        return None
    shown = ", ".join(f"{name} ({rows})" for name, rows in levels[:_MOST_LEVELS])
    more = column["num_levels"] - len(levels[:_MOST_LEVELS])
    return shown + (f" and {more} more" if more else "")


def recipe(card: Json) -> Content:
    """A row per setting."""
    sources = {True: "request", False: "recipe", None: "imported"}
    rows = [[s["setting"], _value(s["value"]), sources[s["given"]]] for s in card["recipe"]]
    return [Table("Settings", ("setting", "value", "from"), rows)], []


def _value(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(map(_value, value))
    return str(value).lower() if isinstance(value, bool) else str(value)
