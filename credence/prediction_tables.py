"""Predictions as columns: standard deviations for people, the answer's own numbers for programs."""

from collections.abc import Sequence
from math import sqrt
from typing import Any

from credence.rendering import print_table
from credence.types import Kind, PredictionAnswer, TextAnswer

KINDS: tuple[Kind, ...] = ("aleatoric", "epistemic", "total")
UNUSUAL = "bold yellow"  # rows of which the model says that it does not know them
SHOWN_TOKENS = 3
Answer = PredictionAnswer | TextAnswer
Table = tuple[list[str], list[Sequence[Any]]]


def print_prediction(answer: Answer, first_row: int) -> None:
    """A readable table on the terminal; rows are counted from `first_row`.

    A mark and a colour say which rows are unlike those of training, or too uncertain to answer.
    """
    headers, columns = _for_people(answer)
    numbers = range(first_row, first_row + len(columns[0]))
    title = (
        f"{answer['model']} version {answer['version']}, "
        f"{answer['prune']:.0%} pruned, {answer['samples']} samples"
    )
    if "mean" in answer:
        marks = _marks(answer)
        headers, columns = [*headers, "!"], [*columns, marks]
        styles = [UNUSUAL if mark else "" for mark in marks]
    else:
        styles = [""] * len(numbers)
    rows = zip(numbers, *columns, strict=True)
    print_table(["row", *headers], rows, title, styles)


def for_programs(answer: Answer) -> Table:
    """Columns named as in the JSON answer, one per class or bound."""
    if "mean" not in answer:
        return _text_columns(answer)
    known = _class_columns if "labels" in answer else _number_columns
    headers, columns = known(answer)
    if "times" in answer:
        headers, columns = ["time", *headers], [answer["times"], *columns]
    headers += ["out_of_distribution", "ood_score"]
    columns += [answer["out_of_distribution"], answer["ood_score"]]
    if "abstained" in answer:
        headers.append("abstained")
        columns.append(answer["abstained"])
    return headers, columns


def _for_people(answer: Answer) -> Table:
    """Numbers: mean ± the standard deviations of both kinds. Classes: probability, nats."""
    if "mean" not in answer:
        return _texts_for_people(answer)
    if "labels" in answer:
        headers = ["label", "probability", "aleatoric (nats)", "epistemic (nats)"]
        best = [max(row) for row in answer["probabilities"]]
        entropy = answer["entropy"]
        return headers, [answer["labels"], best, entropy["aleatoric"], entropy["epistemic"]]
    variance = answer["variance"]
    headers = ["mean", "±\naleatoric", "±\nepistemic"]
    columns: list[Sequence[Any]] = [answer["mean"]]
    columns += [list(map(sqrt, variance["aleatoric"])), list(map(sqrt, variance["epistemic"]))]
    for interval in answer["intervals"]:
        bounds = zip(interval["lower"], interval["upper"], strict=True)
        kind = "interval" if interval["kind"] == "credible" else interval["kind"]
        headers.append(f"{interval['level']:.0%}\n{kind}")
        columns.append([_span(lower, upper) for lower, upper in bounds])
    if "times" in answer:
        return ["time", *headers], [answer["times"], *columns]
    return headers, columns


def _texts_for_people(answer: TextAnswer) -> Table:
    nexts = [
        ", ".join(f"{n['token']} {n['probability']:.0%}" for n in tokens[:SHOWN_TOKENS])
        for tokens in answer["next_tokens"]
    ]
    headers = ["perplexity", "log likelihood (nats)", "may follow"]
    return headers, [answer["perplexity"], answer["log_likelihood"], nexts]


def _span(lower: float | None, upper: float | None) -> str:
    """Unbounded where too few rows were left for calibration."""
    return "unbounded" if lower is None or upper is None else f"{lower:.4g} to {upper:.4g}"


def _marks(answer: PredictionAnswer) -> list[str]:
    strange = answer["out_of_distribution"]
    abstained = answer.get("abstained", [False] * len(strange))
    names = ("unlike training", "abstained")
    return [
        ", ".join(name for name, marked in zip(names, both, strict=True) if marked)
        for both in zip(strange, abstained, strict=True)
    ]


def _number_columns(answer: PredictionAnswer) -> Table:
    headers = ["mean", *(f"{kind}_variance" for kind in KINDS)]
    columns: list[Sequence[Any]] = [answer["mean"]]
    columns += [answer["variance"][kind] for kind in KINDS]
    if answer["mc_error"] is not None:
        headers.append("mc_error")
        columns.append(answer["mc_error"])
    for interval in answer["intervals"]:
        level = f"{100 * interval['level']:g}"
        kind = "" if interval["kind"] == "credible" else f"{interval['kind']}_"
        headers += [f"{kind}lower_{level}", f"{kind}upper_{level}"]
        columns += [interval["lower"], interval["upper"]]
    return headers, columns


def _class_columns(answer: PredictionAnswer) -> Table:
    headers = ["label", *(f"{kind}_entropy" for kind in KINDS)]
    columns: list[Sequence[Any]] = [answer["labels"]]
    columns += [answer["entropy"][kind] for kind in KINDS]
    for index, name in enumerate(answer["classes"]):
        headers.append(f"probability_{name}")
        columns.append([row[index] for row in answer["probabilities"]])
    return headers, columns


def _text_columns(answer: TextAnswer) -> Table:
    """The likeliest next token alone: `--json` has them all."""
    best = [tokens[0] for tokens in answer["next_tokens"]]
    headers = ["log_likelihood", "perplexity", *(f"{kind}_entropy" for kind in KINDS)]
    columns: list[Sequence[Any]] = [answer["log_likelihood"], answer["perplexity"]]
    columns += [answer["entropy"][kind] for kind in KINDS]
    headers += ["next_token", "next_probability"]
    columns += [[token["token"] for token in best], [token["probability"] for token in best]]
    return headers, columns
