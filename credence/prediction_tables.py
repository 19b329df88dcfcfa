"""Predictions as tables: standard deviations for people, the answer's own numbers for programs."""

import csv
import sys
from collections.abc import Sequence
from math import sqrt
from typing import Any

from credence.rendering import print_table
from credence.types import Kind, PredictionAnswer

KINDS: tuple[Kind, ...] = ("aleatoric", "epistemic", "total")
Table = tuple[list[str], list[Sequence[Any]]]


def print_prediction(prediction: PredictionAnswer, first_row: int) -> None:
    """A readable table on the terminal; rows are counted from `first_row`.

    A mark says which rows are unlike those of training, or too uncertain to answer.
    """
    headers, columns = _for_people(prediction)
    headers, columns = [*headers, "!"], [*columns, _marks(prediction)]
    numbers = range(first_row, first_row + len(prediction["mean"]))
    title = (
        f"{prediction['model']} version {prediction['version']}, "
        f"{prediction['prune']:.0%} pruned, {prediction['samples']} samples"
    )
    print_table(["row", *headers], zip(numbers, *columns, strict=True), title)


def write_csv(prediction: PredictionAnswer, first_row: int) -> None:
    """CSV on standard output; the header comes before the first row only."""
    headers, columns = _for_programs(prediction)
    writer = csv.writer(sys.stdout, lineterminator="\n")
    if first_row == 1:
        writer.writerow(headers)
    writer.writerows(zip(*columns, strict=True))


def _for_people(prediction: PredictionAnswer) -> Table:
    """Regression: mean ± the standard deviations of both kinds. Classes: probability, nats."""
    if "labels" in prediction:
        headers = ["label", "probability", "aleatoric (nats)", "epistemic (nats)"]
        best = [max(row) for row in prediction["probabilities"]]
        entropy = prediction["entropy"]
        return headers, [prediction["labels"], best, entropy["aleatoric"], entropy["epistemic"]]
    variance = prediction["variance"]
    headers = ["mean", "± aleatoric", "± epistemic"]
    columns: list[Sequence[Any]] = [prediction["mean"]]
    columns += [list(map(sqrt, variance["aleatoric"])), list(map(sqrt, variance["epistemic"]))]
    for interval in prediction["intervals"]:
        bounds = zip(interval["lower"], interval["upper"], strict=True)
        kind = "" if interval["kind"] == "credible" else f"{interval['kind']} "
        headers.append(f"{interval['level']:.0%} {kind}interval")
        columns.append([_span(lower, upper) for lower, upper in bounds])
    return headers, columns


def _span(lower: float | None, upper: float | None) -> str:
    """Unbounded where too few rows were left for calibration."""
    return "unbounded" if lower is None or upper is None else f"{lower:.4g} to {upper:.4g}"


def _marks(prediction: PredictionAnswer) -> list[str]:
    strange = prediction["out_of_distribution"]
    abstained = prediction.get("abstained", [False] * len(strange))
    names = ("unlike training", "abstained")
    return [
        ", ".join(name for name, marked in zip(names, both, strict=True) if marked)
        for both in zip(strange, abstained, strict=True)
    ]


def _for_programs(prediction: PredictionAnswer) -> Table:
    """Columns named as in the JSON answer, one per class or bound."""
    known = _class_columns if "labels" in prediction else _number_columns
    headers, columns = known(prediction)
    headers += ["out_of_distribution", "ood_score"]
    columns += [_lower(prediction["out_of_distribution"]), prediction["ood_score"]]
    if "abstained" in prediction:
        headers.append("abstained")
        columns.append(_lower(prediction["abstained"]))
    return headers, columns


def _lower(flags: Sequence[bool]) -> list[str]:
    """As JSON and most readers of CSV write them."""
    return ["true" if flag else "false" for flag in flags]


def _number_columns(prediction: PredictionAnswer) -> Table:
    headers = ["mean", *(f"{kind}_variance" for kind in KINDS)]
    columns: list[Sequence[Any]] = [prediction["mean"]]
    columns += [prediction["variance"][kind] for kind in KINDS]
    if prediction["mc_error"] is not None:
        headers.append("mc_error")
        columns.append(prediction["mc_error"])
    for interval in prediction["intervals"]:
        level = f"{100 * interval['level']:g}"
        kind = "" if interval["kind"] == "credible" else f"{interval['kind']}_"
        headers += [f"{kind}lower_{level}", f"{kind}upper_{level}"]
        columns += [interval["lower"], interval["upper"]]
    return headers, columns


def _class_columns(prediction: PredictionAnswer) -> Table:
    headers = ["label", *(f"{kind}_entropy" for kind in KINDS)]
    columns: list[Sequence[Any]] = [prediction["labels"]]
    columns += [prediction["entropy"][kind] for kind in KINDS]
    for index, name in enumerate(prediction["classes"]):
        headers.append(f"probability_{name}")
        columns.append([row[index] for row in prediction["probabilities"]])
    return headers, columns
