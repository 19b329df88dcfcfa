"""`credence expected`: how well a model will do on rows whose truth is not known yet."""

from pathlib import Path
from typing import Annotated

import typer

from credence.commands.connection import connect
from credence.commands.options import AsJson, ModelArgument, Url
from credence.rendering import note, print_json, print_table
from credence.types import ExpectedScores

EXIT_ALERT = 1


def expected(
    model: ModelArgument,
    data: Annotated[
        str, typer.Argument(metavar="DATASET", help="A file, or the id of a data set (ds_…).")
    ],
    *,
    version: Annotated[str | None, typer.Option(help="Number or alias; default: newest.")] = None,
    level: Annotated[
        float, typer.Option(min=0.5, max=0.99, help="Probability of the intervals.")
    ] = 0.9,
    prune: Annotated[float, typer.Option(help="Fraction of a pruned variant.")] = 0.0,
    check: Annotated[
        bool, typer.Option("--check", help="End with exit code 1 if there is an alert.")
    ] = False,
    as_json: AsJson = False,
    url: Url = None,
) -> None:
    """Expect the scores of a model on rows without labels, beside those of its held-out rows.

    There is an alert where they leave what training promised. A target in the rows is not used.

    Example: `credence expected concrete next-month.csv --check`
    """
    rows = Path(data) if Path(data).exists() or not data.startswith("ds_") else data
    if isinstance(rows, Path) and not rows.is_file():
        raise typer.BadParameter(f"no file {data}; the id of a data set begins with ds_")
    with connect(url) as client:
        found = client.model(model, version).expected(rows, level=level, prune=prune)
    if as_json:
        print_json(found)
    else:
        _print(found)
    if check and found["alert"]:
        raise typer.Exit(EXIT_ALERT)


def _print(found: ExpectedScores) -> None:
    has_labels = found["labelled_rows"] > 0
    headers = ["score", "expected", "lower", "upper", "promised", *(["actual"] * has_labels), ""]
    rows = [
        [
            name,
            *(score[key] for key in ("expected", "lower", "upper", "promised")),
            *([score.get("actual")] * has_labels),
            "leaves it" if score["leaves"] else "",
        ]
        for name, score in found["scores"].items()
    ]
    title = f"{found['model']} version {found['version']} on {found['rows']} rows"
    print_table(headers, rows, f"{title}: {100 * found['level']:g} % intervals")
    unlike = found["unlike"]
    note(f"unlike training: {100 * unlike['share']:.3g} % of the rows")
    for reason in found["reasons"]:
        note(reason, "yellow")
    for remark in found["notes"]:
        note(remark)
