"""Sections about the posterior of a version: pruning, out-of-distribution scores, weights."""

from app.ui.charts import Content, Table, bar_chart, line_chart, variant_name
from core.database.schema import Json
from models.evaluation.scores import main_scores


def pruning(card: Json) -> Content:
    """Scores and sizes of the pruned variants; empty if there are none."""
    variants = card["variants"]
    if len(variants) < 2:
        return [], []
    shown = main_scores(variants[0]["metrics"])
    scores = [[score.read(v["metrics"]) for v in variants] for score in shown]
    on_rows = "On held-out rows, for each stored variant."
    stored = "A pruned variant is stored as its remaining weights and one bit per weight."
    drawn = [
        (score.name.replace("_", "-"), score.label, on_rows, score.title, values)
        for score, values in zip(shown, scores, strict=True)
    ]
    drawn.append(("size", "size", stored, "stored, kB", [v["bytes"] / 1000 for v in variants]))
    prunes = [v["prune"] for v in variants]
    charts = [
        line_chart(
            f"pruning-{name}",
            f"Pruning and {label}",
            reading,
            "weights removed",
            y_title,
            [("variants", prunes, values)],
            percent=True,
        )
        for name, label, reading, y_title, values in drawn
    ]
    scored = (score.title for score in shown)
    headers = ("variant", "pruned by", "weights left", "bytes stored", *scored)
    rows = [
        [
            variant_name(v["prune"]),
            v.get("by", ""),
            v["num_weights"],
            v["bytes"],
            *(column[i] for column in scores),
        ]
        for i, v in enumerate(variants)
    ]
    return [Table("Pruned variants", headers, rows)], charts


def out_of_distribution(card: Json) -> Content:
    """The score and the threshold of each variant; empty for texts."""
    what = "step" if card["task"] == "forecasting" else "row"
    headers = ("variant", f"score of a {what}", "threshold", f"held-out {what}s above it")
    rows = [
        [
            variant_name(one["prune"]),
            one["score"].replace("_", " "),
            one["threshold"],
            f"{100 * one['false_alarm_rate']:.2g} %",
        ]
        for one in card["out_of_distribution"]
    ]
    return [Table("Scores and thresholds", headers, rows)] if rows else [], []


def signal_to_noise(card: Json) -> Content:
    """A histogram of the weights; empty for methods without σ."""
    found = card["signal_to_noise"]
    if found is None:
        return [], []
    chart = bar_chart(
        "signal-to-noise",
        "Weights by their signal-to-noise ratio (full posterior)",
        "Pruning removes weights from the left. Each vertical line marks the share of a pruned "
        "variant. At 0 dB a mean is as large as its standard deviation.",
        "20 log₁₀ |μ|/σ, dB",
        "weights",
        [found["first"] + i for i in range(len(found["counts"]))],
        1.0,
        found["counts"],
        marks=[(f"{100 * cut['prune']:g} %", cut["at"]) for cut in found["cuts"]],
    )
    return [], [chart]
