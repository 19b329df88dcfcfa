"""`credence predict`: predict rows of a file, with uncertainty."""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from enum import StrEnum
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from credence.commands.connection import connect
from credence.commands.files.input import Input, input_of, refused
from credence.commands.files.predictions import BINARY, ResultFormat, result_writer
from credence.commands.files.rows import STANDARD_INPUT, Columns, RowFormat, existing, rows_of
from credence.commands.options import (
    AsJson,
    Comment,
    Decimal,
    Delimiter,
    Encoding,
    Header,
    Index,
    ModelArgument,
    Quote,
    Sheet,
    Skip,
    Url,
    json_object,
    reading_options,
)
from credence.commands.parameters import in_options
from credence.progress import is_interactive, rows_bar
from credence.rendering import fail, note, print_json
from credence.types import Feature, Json, Version

if TYPE_CHECKING:
    from credence.client import Client, TrainedModel
    from credence.client.arrow import Table


AnyFormat = Literal["table", "csv", "jsonl", "parquet", "arrow", "delta"]

EVERY_COLUMN = "*"
EXIT_NOT_INSTALLED = 2
TABLES = (None, "parquet", "delta")  # formats with --to
TEXTS_PER_REQUEST = 100  # few: each token counts as a row for the service's limit


class KindOption(StrEnum):
    """The kinds of intervals, as an option of the command line takes them."""

    CREDIBLE = "credible"
    CONFORMAL = "conformal"
    ADAPTIVE = "adaptive"


class EngineOption(StrEnum):
    """Who predicts files into a folder."""

    LOCAL = "local"
    RAY = "ray"
    SPARK = "spark"


class SamplerOption(StrEnum):
    """How predictions are computed."""

    AUTO = "auto"
    SOBOL = "sobol"
    MONTE_CARLO = "monte_carlo"
    MOMENTS = "moments"


def predict(
    model: ModelArgument,
    source: Annotated[
        str,
        typer.Argument(
            metavar="[FILE]",
            help="CSV, JSON lines, Excel, Parquet, …; text for a language model. - is standard "
            "input. For a forecast: the history of one series or of several, in the order of time. "
            "With --to also a folder, a pattern in quotes (Parquet or CSV) or a Delta table, here "
            "or at s3://….",
        ),
    ] = str(STANDARD_INPUT),
    *,
    version: Annotated[str | None, typer.Option(help="Number or alias; default: newest.")] = None,
    samples: Annotated[
        int | None,
        typer.Option(help="Number of Monte-Carlo samples; default: as many as auto needs."),
    ] = None,
    sampler: Annotated[
        SamplerOption | None,
        typer.Option(
            help="auto, the default without --samples, is the cheapest that is as exact as 100 "
            "independent samples."
        ),
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of the samples.")] = None,
    prune: Annotated[float | None, typer.Option(help="Fraction of a pruned variant.")] = None,
    interval: Annotated[
        list[float] | None, typer.Option(help="Level of an interval, once per level; default: 0.9.")
    ] = None,
    interval_kind: Annotated[
        list[KindOption] | None,
        typer.Option(
            help="credible, conformal or adaptive (conformal at a level that follows feedback); "
            "once per kind; default: the first two."
        ),
    ] = None,
    abstain_above: Annotated[
        float | None,
        typer.Option(help="Mark rows with a larger standard deviation; classes: entropy in nats."),
    ] = None,
    exceeds: Annotated[
        list[float] | None,
        typer.Option(help="Threshold: the probability of being above it; once per threshold."),
    ] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Add what each feature contributes.")
    ] = False,
    set_level: Annotated[
        float | None,
        typer.Option(help="Classes: the smallest sets that contain the true one so often."),
    ] = None,
    quantile: Annotated[
        list[float] | None,
        typer.Option(help="Probability: the value that the target is below with it; repeatable."),
    ] = None,
    density: Annotated[
        int | None, typer.Option(help="Points of the density of each row, from 2 to 512.")
    ] = None,
    costs: Annotated[
        dict[str, Any] | None,
        typer.Option(
            parser=json_object,
            metavar="JSON|FILE",
            help="What errors cost: the cheapest action. A matrix of actions × classes, or the "
            "costs per unit over and under a number.",
        ),
    ] = None,
    total: Annotated[
        bool,
        typer.Option("--total", help="Forecasts: the sum from the first step to each step."),
    ] = False,
    total_exceeds: Annotated[
        list[float] | None,
        typer.Option(
            help="Forecasts: the probability that the sum up to each step is above this, such as "
            "the stock; once per threshold."
        ),
    ] = None,
    total_series: Annotated[
        bool,
        typer.Option("--total-series", help="Forecasts: also the sums over all series."),
    ] = False,
    total_by: Annotated[
        list[str] | None,
        typer.Option(
            help="Forecasts: also the sums over series with the same value of this column; once "
            "per column."
        ),
    ] = None,
    total_groups: Annotated[
        dict[str, Any] | None,
        typer.Option(
            parser=json_object,
            metavar="JSON|FILE",
            help="Forecasts: also the sums over these groups: lists of series by name.",
        ),
    ] = None,
    reconcile: Annotated[
        bool,
        typer.Option(
            "--reconcile",
            help="A group with the name of a series is what it sums up: make their totals agree.",
        ),
    ] = False,
    horizon: Annotated[int | None, typer.Option(help="Forecasts: number of steps ahead.")] = None,
    anomalies: Annotated[
        int | None, typer.Option(help="Forecasts: score so many of the newest values.")
    ] = None,
    future: Annotated[
        Path | None,
        typer.Option(callback=existing, help="Forecasts: a file with the covariates of the steps."),
    ] = None,
    top: Annotated[int | None, typer.Option(help="Language models: number of next tokens.")] = None,
    from_: Annotated[
        RowFormat | None,
        typer.Option("--from", help="Format of the rows; default: found out."),
    ] = None,
    delimiter: Delimiter = None,
    quote: Quote = None,
    encoding: Encoding = None,
    decimal: Decimal = None,
    header: Header = None,
    skip: Skip = None,
    comment: Comment = None,
    index: Index = None,
    sheet: Sheet = None,
    format_: Annotated[
        AnyFormat | None,
        typer.Option(
            "--format",
            help="Of the result; default: a table on a terminal, else CSV. With --to: parquet, the "
            "default, or delta.",
        ),
    ] = None,
    as_json: AsJson = False,
    to: Annotated[
        str | None,
        typer.Option(
            help="Predict on this machine, without the service, into this folder, here or at "
            "s3://…; MODEL may be an archive. The same command goes on after it was stopped.",
        ),
    ] = None,
    engine: Annotated[
        EngineOption | None,
        typer.Option(help="With --to: this process, or tasks of Ray or Spark; default: local."),
    ] = None,
    keep: Annotated[
        list[str] | None,
        typer.Option(
            "--keep",
            "--id",
            metavar="COLUMN",
            help="A column of the rows to copy before the predictions, such as a key to join on; "
            "once per column.",
        ),
    ] = None,
    with_inputs: Annotated[
        bool, typer.Option("--with-inputs", help="Copy all columns of the rows.")
    ] = False,
    url: Url = None,
) -> None:
    """Predict rows, texts, or what comes next: a table on a terminal, CSV into a pipe.

    The columns of a file are found by name, and read as those of the training data were.

    Examples:

    `credence predict concrete rows.csv --samples 1000`

    `credence predict concrete --prune 0.95 --interval 0.5 --interval 0.9 < rows.csv > out.csv`

    `credence predict concrete rows.xlsx --sheet May --format parquet > predictions.parquet`

    `credence predict concrete rows.csv --id number > predictions.csv`

    `credence predict concrete rows.csv --exceeds 40 --exceeds 60 --quantile 0.1`

    `credence predict sales rows.csv --costs '{"over": 1, "under": 4}'`

    `credence predict airline history.csv --horizon 12 --future holidays.csv`

    `credence predict rolls history.csv --horizon 14 --total-exceeds 500`

    `credence predict shops history.csv --total-by region`

    `echo "the cat sat on" | credence predict lines`

    `credence predict concrete.tar 'rows/*.parquet' --to predicted --keep id`
    """
    given = {
        "samples": samples,
        "sampler": sampler,
        "seed": seed,
        "prune": prune,
        "intervals": interval,
        "interval_kinds": interval_kind,
        "abstain_above": abstain_above,
        "exceeds": exceeds,
        "explain": explain or None,
        "set_level": set_level,
        "quantiles": quantile,
        "density": None if density is None else {"points": density},
        "costs": costs,
        "totals": _totals(
            {
                "exceeds": total_exceeds,
                "series": total_series,
                "groups": _either(total_by, total_groups),
                "reconcile": reconcile,
            },
            total=total,
        ),
        "horizon": horizon,
        "anomalies": anomalies,
        "top": top,
    }
    settings: Json = {key: value for key, value in given.items() if value is not None}
    reading = reading_options(
        delimiter=delimiter,
        quote=quote,
        encoding=encoding,
        decimal=decimal,
        header=header,
        skip=skip,
        comment=comment,
        index=index,
        sheet=sheet,
    )
    if to is not None:
        others = {"--json": as_json, "--future": future, "--with-inputs": with_inputs}
        _check_to(others, format_, is_read_otherwise=bool(reading or from_))
        place: Json = {"model": model, "version": version, "url": url, "source": source}
        place |= {"destination": to, "format_": format_ or "parquet"}
        place |= {"engine": engine or EngineOption.LOCAL, "keep": keep or []}
        _predict_to(place, settings)
        return
    if engine:
        raise typer.BadParameter("--engine needs --to FOLDER")
    if keep or with_inputs:
        settings["keep"] = [EVERY_COLUMN] if with_inputs else keep
    if format_ == "delta":
        raise typer.BadParameter("--format delta needs --to FOLDER")
    file = Path(source)
    existing(file)
    result = _checked(format_, as_json=as_json)
    with connect(url) as client, ExitStack() as files:
        from credence.client.rows import future_of, inputs_of  # noqa: PLC0415

        trained = client.model(model, version)
        about = trained.description
        if about["task"] != "language_model" and future is None:
            given_file = files.enter_context(input_of(file, from_))
            _predict_input(
                client, about, given_file, settings | reading, None if as_json else result
            )
            return
        if reading or "keep" in settings:
            which = ", ".join(reading) or "--keep and --with-inputs"
            raise typer.BadParameter(f"{which}: not with texts, nor with --future")
        rows = files.enter_context(rows_of(file, inputs_of(about), from_))
        wanted = future_of(about) if about["task"] == "forecasting" else []
        steps = _future(about, wanted, future)
        if as_json:
            print_json(client.submit_predict(_document(about, rows.all(), steps, settings)))
        elif about["task"] == "language_model":
            texts = (part for batch in rows.batches for part in _parts(batch))
            _write(texts, lambda batch: _predict_texts(client, about, batch, settings), result)
        else:
            batches = iter([rows.all()]) if about["task"] == "forecasting" else rows.batches
            _write(batches, lambda batch: _predict_rows(trained, batch, steps, settings), result)


def _check_to(others: Json, format_: AnyFormat | None, *, is_read_otherwise: bool) -> None:
    """Refuse options that do not go together with --to."""
    for name, value in others.items():
        if value:
            raise typer.BadParameter(f"{name}: not with --to")
    if format_ not in TABLES:
        raise typer.BadParameter(f"--format {format_}: with --to give parquet or delta")
    if is_read_otherwise:
        raise typer.BadParameter("with --to, CSV files have commas and a header, in UTF-8")


def _predict_to(place: Json, settings: Json) -> None:
    """Predict files without the service, where the models are installed."""
    if find_spec("credence.bulk") is None:
        advice = "in a clone, pip install ./credence ./credence/scoring"
        fail(f"`credence predict --to` predicts on this machine: {advice}", EXIT_NOT_INSTALLED)
    import_module("credence.bulk.command").predict_to(**place, options=settings)


def _totals(options: Json, *, total: bool) -> Json | None:
    """The option of the service; None if no sum is asked for."""
    given = {name: value for name, value in options.items() if value}
    return given if total or given else None


def _either(columns: list[str] | None, groups: Json | None) -> list[str] | Json | None:
    if columns and groups:
        raise typer.BadParameter("give either --total-by or --total-groups")
    return columns or groups


def _checked(format_: ResultFormat | None, *, as_json: bool) -> ResultFormat:
    """The requested format; binary formats are refused on a terminal."""
    if as_json and format_:
        raise typer.BadParameter("give either --json or --format")
    if format_ in BINARY and sys.stdout.isatty():
        raise typer.BadParameter(f"{format_} is binary: write it to a file, with > FILE")
    return format_ or ("table" if sys.stdout.isatty() else "csv")


def _predict_input(
    client: "Client",
    about: Version,
    given: Input,
    settings: Json,
    format_: ResultFormat | None,
) -> None:
    """Predict a file as the service reads it, and write the result; as JSON if there is no format.

    Raises:
        typer.BadParameter: the service cannot read the rows.
    """
    with refused(given.name):
        if format_ is None:
            print_json(client.run(given.answer(client, about, settings)))
            return
        visible = is_interactive() and not sys.stdout.isatty()
        first_row = 1
        with result_writer(format_) as write, rows_bar(None, visible=visible) as show:

            def on_table(table: "Table") -> None:
                nonlocal first_row
                _report(table.metadata, is_first=first_row == 1)
                write(table, first_row)
                first_row += table.num_rows
                show(table.num_rows)

            client.run(given.predict(client, about, settings, on_table))


def _report(metadata: dict[str, str], *, is_first: bool) -> None:
    """Say on standard error what the service says about the rows."""
    ignored = json.loads(metadata.get("ignored", "[]"))
    if ignored and is_first:
        note(f"not features, ignored: {', '.join(ignored)}")
    for text in json.loads(metadata.get("notes", "[]")):
        note(in_options(text))


def _future(about: Version, wanted: list[Feature], file: Path | None) -> Columns | None:
    """The covariates of the steps ahead; None if the model has none."""
    if file is None:
        return None
    if not wanted:
        raise typer.BadParameter(f"{about['model']} has no covariates: leave out --future")
    with rows_of(file, wanted) as rows:
        return rows.all()


def _write(
    batches: Iterator[Columns], predict: "Callable[[Columns], Table]", format_: ResultFormat
) -> None:
    """Predict and write batch after batch, with a bar unless the result goes to a terminal."""
    visible = is_interactive() and not sys.stdout.isatty()
    first_row = 1
    with result_writer(format_) as write, rows_bar(None, visible=visible) as show:
        for batch in batches:
            write(predict(batch), first_row)
            length = len(next(iter(batch.values())).values)
            first_row += length
            show(length)


def _predict_rows(
    model: "TrainedModel", rows: Columns, future: Columns | None, settings: Json
) -> "Table":
    from credence.client.frames import Frame  # noqa: PLC0415

    steps = None if future is None else Frame(future)
    return model.predict(Frame(rows), future=steps, **settings).table


def _parts(texts: Columns) -> Iterator[Columns]:
    column = texts["text"]
    for start in range(0, len(column.values), TEXTS_PER_REQUEST):
        values = column.values[start : start + TEXTS_PER_REQUEST]
        yield {"text": replace(column, values=values)}


def _predict_texts(client: "Client", about: Version, texts: Columns, settings: Json) -> "Table":
    """A row per text, with the most probable next token; `--json` has all of them."""
    from credence.client.arrow import Column, from_stream, to_stream  # noqa: PLC0415

    response: Any = client.submit_predict(_document(about, texts, None, settings))
    tokens, entropy = [best[0] for best in response["next_tokens"]], response["entropy"]
    numbers = {
        "log_likelihood": response["log_likelihood"],
        "perplexity": response["perplexity"],
        "predictive_entropy": entropy["total"],
        "expected_entropy": entropy["aleatoric"],
        "mutual_information": entropy["epistemic"],
    }
    columns = {name: Column("number", values) for name, values in numbers.items()}
    columns["next_token"] = Column("text", [token["token"] for token in tokens])
    columns["next_probability"] = Column("number", [token["probability"] for token in tokens])
    table = from_stream(to_stream(columns))
    table.metadata |= {
        name: str(response[name]) for name in ("model", "version", "prune", "samples")
    }
    return table


def _document(about: Version, rows: Columns, future: Columns | None, settings: Json) -> Json:
    """The body of `POST /predict`."""
    from credence.client.rows import to_json  # noqa: PLC0415

    inputs: Any = to_json(rows)
    if about["task"] == "language_model":
        inputs = inputs["text"]
    document = {"model": about["model"], "version": about["version"], "inputs": inputs} | settings
    return document if future is None else document | {"future": to_json(future)}
