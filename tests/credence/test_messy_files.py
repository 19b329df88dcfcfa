"""A model of a messy file: the same raw rows get the same answer in every form."""

import csv
import io
from pathlib import Path
from typing import Any

import numpy as np
import openpyxl
import pytest

from credence import Client, TrainedModel
from credence.exceptions import CredenceAPIError
from tests.credence.invoking import printed
from tests.credence.running import Service

HEADER = ["Kunde", "Preis", "Anteil", "Tag", "Raucher", "Farbe", "Ziel"]
COLOURS = ("Rot", " rot", "BLAU", "Blau", "Grün")

pytestmark = pytest.mark.stack


def german(value: float, digits: int = 2) -> str:
    """As a spreadsheet in German writes a number: 1.234,56."""
    return f"{value:,.{digits}f}".translate(str.maketrans(",.", ".,"))


def messy_row(i: int, random: np.random.Generator) -> tuple[list[str], list[Any]]:
    """A row as the file has it, and its features as values of JSON."""
    price, share = round(random.uniform(100, 9000), 2), round(random.uniform(0, 100), 1)
    smokes, day, month = bool(random.random() < 0.5), i % 28 + 1, i % 12 + 1
    target = price / 1000 + smokes + share / 50 + random.normal(0, 0.1)
    missing, colour = i % 23 == 5, COLOURS[i % len(COLOURS)] if i % 4 else "Rot"
    texts = [
        f"K-{i * 7919 % 100_000:05d}", "-" if missing else f"{german(price)} €",
        f"{german(share, 1)} %", f"{day:02d}.{month:02d}.2024", "ja" if smokes else "nein",
        colour, german(target, 3),
    ]  # fmt: skip
    iso = f"2024-{month:02d}-{day:02d}"
    return texts, [None if missing else price, share, iso, smokes, colour]


RANDOM = np.random.default_rng(3)
ROWS, VALUES = zip(*(messy_row(i, RANDOM) for i in range(240)), strict=True)
SENT = list(ROWS[3:15])


def text_of(rows: Any, header: list[str] = HEADER, delimiter: str = ";") -> str:
    text = io.StringIO()
    writer = csv.writer(text, delimiter=delimiter, lineterminator="\r\n")
    writer.writerows([header, *rows])
    return text.getvalue()


def workbook(path: Path, rows: Any) -> None:
    book = openpyxl.Workbook(write_only=True)
    sheet = book.create_sheet()
    for row in [HEADER, *rows]:
        sheet.append(row)
    book.save(path)


@pytest.fixture(scope="module")
def model(client: Client, tmp_path_factory: pytest.TempPathFactory) -> TrainedModel:
    path = tmp_path_factory.mktemp("messy") / "messy.csv"
    path.write_bytes(text_of(ROWS).encode("cp1252"))
    training: Any = {"epochs": 3}
    return client.train(path, target="Ziel", network={"hidden": [8]}, training=training, pruning=[])


@pytest.fixture(scope="module")
def expected(model: TrainedModel, tmp_path_factory: pytest.TempPathFactory) -> list[float]:
    path = tmp_path_factory.mktemp("rows") / "rows.csv"
    path.write_bytes(text_of(SENT).encode("cp1252"))
    return list(model.predict(path)["mean"])


def test_the_columns_are_read_as_meant(model: TrainedModel) -> None:
    types = {feature["name"]: feature["type"] for feature in model.description["features"]}
    assert types == {
        "Preis": "number", "Anteil": "number", "Tag": "datetime", "Raucher": "boolean",
        "Farbe": "category",
    }  # fmt: skip


def test_texts_and_values_in_json_get_the_answer_of_the_file(
    client: Client, model: TrainedModel, expected: list[float]
) -> None:
    records = [dict(zip(HEADER[:-1], row, strict=False)) for row in SENT]
    values = [dict(zip(HEADER[1:6], row, strict=True)) for row in VALUES[3:15]]
    for inputs in (records, values):
        answer = client.submit_predict({"model": model.name, "inputs": inputs})
        assert answer["mean"] == pytest.approx(expected, rel=1e-4)
    assert list(model.predict(records)["mean"]) == pytest.approx(expected, rel=1e-4)


def test_workbooks_dialects_and_pipes_get_the_answer_of_the_file(
    service: Service, model: TrainedModel, expected: list[float], tmp_path: Path
) -> None:
    workbook(tmp_path / "rows.xlsx", SENT)
    turned = [list(reversed(row)) for row in SENT]
    (tmp_path / "rows.tsv").write_text(text_of(turned, HEADER[::-1], "\t"), encoding="utf-16")
    for path in tmp_path.iterdir():
        assert list(model.predict(path)["mean"]) == pytest.approx(expected, rel=1e-4)
    piped = text_of(SENT).encode("cp1252")
    shown = printed("predict", model.name, url=service.url, stdin=piped)
    means = [float(row["mean"]) for row in csv.DictReader(io.StringIO(shown))]
    assert means == pytest.approx(expected, rel=1e-4)


def test_large_files_go_in_pieces_or_to_a_job(
    model: TrainedModel, expected: list[float], tmp_path: Path
) -> None:
    """100 samples of 1200 rows exceed the service's MAX_WORK; a workbook has no pieces."""
    (tmp_path / "many.csv").write_bytes(text_of(ROWS * 5).encode("cp1252"))
    workbook(tmp_path / "many.xlsx", ROWS * 5)
    for path in tmp_path.iterdir():
        means = list(model.predict(path)["mean"])
        assert len(means) == 1200
        assert means[:240] == pytest.approx(means[-240:], rel=1e-4)  # batches round otherwise
        assert means[3:15] == pytest.approx(expected, rel=1e-4)


def test_next_weeks_file_is_read_as_the_training_data_were(
    client: Client, model: TrainedModel, tmp_path: Path
) -> None:
    week = [["K-1", "1.234 €", "5 %", "01.02.2025", "ja", "BLAU", "1"]] * 3
    path = tmp_path / "week.csv"
    path.write_bytes(text_of(week).encode())
    dataset = client.upload(path, like=model.name)
    columns = {column["name"]: column for column in dataset["columns"]}
    assert columns["Preis"]["mean"] == 1234
    assert columns["Raucher"]["type"] == "boolean"
    (first, *_) = client.dataset_rows(dataset["id"])
    assert str(first["Tag"]).startswith("2025-02-01")
    again = client.upload(path, name="again", like=dataset["id"])
    assert again["columns"] == dataset["columns"]
    with pytest.raises(CredenceAPIError, match="'nobody'"):
        client.upload(path, like="nobody")
