"""A model of a messy file: the same raw rows get the same answer in every form."""

import csv
import io
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import openpyxl
import pytest
from typer.testing import CliRunner

from credence import Client, TrainedModel
from credence.cli import app
from credence.exceptions import CredenceAPIError
from tests.credence.running import Service

HEADER = ["Kunde", "Preis", "Anteil", "Tag", "Raucher", "Farbe", "Bemerkung", "Ziel"]
COLOURS = ("Rot", " rot", "BLAU", "Blau", "Grün")


def german(value: float, digits: int = 2) -> str:
    """As a spreadsheet in German writes a number: 1.234,56."""
    return f"{value:,.{digits}f}".translate(str.maketrans(",.", ".,"))


def messy_rows(count: int) -> Iterator[list[str]]:
    random = np.random.default_rng(3)
    for i in range(count):
        price, share = float(random.uniform(100, 9000)), float(random.uniform(0, 100))
        smokes, day = bool(random.random() < 0.5), i % 28 + 1
        target = price / 1000 + smokes + share / 50 + float(random.normal(0, 0.1))
        yield [
            f"K-{i * 7919 % 100_000:05d}",
            "-" if i % 23 == 5 else f"{german(price)} €",
            f"{german(share, 1)} %",
            f"{day:02d}.{i % 12 + 1:02d}.2024",
            "ja" if smokes else "nein",
            COLOURS[i % len(COLOURS)] if i % 4 else "Rot",
            f"Anmerkung {i} des Kunden zu einem langen Gespräch über {i * i} Dinge und mehr",
            german(target, 3),
        ]


ROWS = list(messy_rows(240))
SENT = ROWS[3:15]


def text_of(rows: list[list[str]], header: list[str] = HEADER, delimiter: str = ";") -> str:
    text = io.StringIO()
    writer = csv.writer(text, delimiter=delimiter, lineterminator="\r\n")
    writer.writerows([header, *rows])
    return text.getvalue()


@pytest.fixture(scope="module")
def model(client: Client, tmp_path_factory: pytest.TempPathFactory) -> TrainedModel:
    path = tmp_path_factory.mktemp("messy") / "messy.csv"
    path.write_bytes(text_of(ROWS).encode("cp1252"))
    return client.train(
        path,
        target="Ziel",
        network={"kind": "mlp", "hidden": [8]},
        training={"epochs": 3},
        pruning=[],
    )


@pytest.fixture(scope="module")
def expected(
    model: TrainedModel, client: Client, tmp_path_factory: pytest.TempPathFactory
) -> list[float]:
    path = tmp_path_factory.mktemp("rows") / "rows.csv"
    path.write_bytes(text_of(SENT).encode("cp1252"))
    prediction = model.predict(path)
    assert prediction.notes == []
    return list(prediction["mean"])


def test_the_columns_are_read_as_meant(model: TrainedModel) -> None:
    types = {feature["name"]: feature["type"] for feature in model.description["features"]}
    assert types == {
        "Preis": "number",
        "Anteil": "number",
        "Tag": "datetime",
        "Raucher": "boolean",
        "Farbe": "category",
    }


def test_json_gets_the_answer_of_the_file(
    client: Client, model: TrainedModel, expected: list[float]
) -> None:
    records = [dict(zip(HEADER[:-1], row, strict=False)) for row in SENT]
    answer = client.submit_predict({"model": model.name, "inputs": records})
    assert answer["mean"] == pytest.approx(expected)
    columns = {name: [record[name] for record in records] for name in HEADER[1:6]}
    answer = client.submit_predict({"model": model.name, "inputs": columns})
    assert answer["mean"] == pytest.approx(expected)


def test_a_frame_of_texts_gets_the_answer_of_the_file(
    model: TrainedModel, expected: list[float]
) -> None:
    records = [dict(zip(HEADER, row, strict=True)) for row in SENT]
    assert list(model.predict(records)["mean"]) == pytest.approx(expected)


def test_values_get_the_answer_of_their_texts(
    client: Client, model: TrainedModel, expected: list[float]
) -> None:
    answer = client.submit_predict(
        {
            "model": model.name,
            "inputs": [
                {
                    name: value_of(name, cell)
                    for name, cell in zip(HEADER[1:6], row[1:6], strict=True)
                }
                for row in SENT
            ],
        }
    )
    assert answer["mean"] == pytest.approx(expected)


def value_of(name: str, cell: str) -> float | bool | str | None:
    """The value in JSON of a German cell."""
    match name:
        case "Preis" | "Anteil" if cell == "-":
            return None
        case "Preis" | "Anteil":
            return float(cell.rstrip(" €%").replace(".", "").replace(",", "."))
        case "Tag":
            day, month, year = cell.split(".")
            return f"{year}-{month}-{day}"
        case "Raucher":
            return cell == "ja"
    return cell


def test_workbooks_and_other_dialects_get_the_answer_of_the_file(
    model: TrainedModel, expected: list[float], tmp_path: Path
) -> None:
    book = openpyxl.Workbook()
    sheet = book.active
    assert sheet is not None
    for row in [HEADER, *SENT]:
        sheet.append(row)
    book.save(tmp_path / "rows.xlsx")
    assert list(model.predict(tmp_path / "rows.xlsx")["mean"]) == pytest.approx(expected)
    turned = [list(reversed(row)) for row in SENT]
    (tmp_path / "rows.tsv").write_text(text_of(turned, HEADER[::-1], "\t"), encoding="utf-16")
    assert list(model.predict(str(tmp_path / "rows.tsv"))["mean"]) == pytest.approx(expected)


def test_the_command_line_needs_no_flags(
    service: Service, model: TrainedModel, expected: list[float], tmp_path: Path
) -> None:
    path = tmp_path / "rows.csv"
    path.write_bytes(text_of(SENT).encode("cp1252"))
    for arguments, piped in (([str(path)], b""), ([], path.read_bytes())):
        done = CliRunner().invoke(
            app, ["predict", model.name, *arguments], input=piped, env={"CREDENCE_URL": service.url}
        )
        assert done.exit_code == 0, done.stderr
        means = [float(row["mean"]) for row in csv.DictReader(io.StringIO(done.stdout))]
        assert means == pytest.approx(expected)
        assert "not features, ignored: Kunde, Bemerkung, Ziel" in done.stderr


def test_large_files_go_in_pieces(
    model: TrainedModel, expected: list[float], tmp_path: Path
) -> None:
    path = tmp_path / "many.csv"  # 100 samples of 2400 rows exceed the service's MAX_WORK
    path.write_bytes(text_of(ROWS * 10).encode("cp1252"))
    means = list(model.predict(path)["mean"])
    assert len(means) == 2400
    assert means[:240] == pytest.approx(means[-240:], rel=1e-4)  # batches differ in rounding
    assert means[3:15] == pytest.approx(expected, rel=1e-4)


def test_a_workbook_that_is_too_large_for_a_request_is_predicted_by_a_job(
    model: TrainedModel, expected: list[float], tmp_path: Path
) -> None:
    book = openpyxl.Workbook(write_only=True)
    sheet = book.create_sheet()
    for row in [HEADER, *ROWS * 5]:
        sheet.append(row)
    book.save(tmp_path / "many.xlsx")
    means = list(model.predict(tmp_path / "many.xlsx")["mean"])
    assert len(means) == 1200
    assert means[3:15] == pytest.approx(expected, rel=1e-4)


def test_next_weeks_file_is_read_as_the_training_data_were(
    client: Client, model: TrainedModel, tmp_path: Path
) -> None:
    week = [["K-1", "1.234 €", "5 %", "01.02.2025", "ja", "BLAU", "-", "1"]] * 3
    path = tmp_path / "week.csv"
    path.write_bytes(text_of(week).encode())
    dataset = client.upload(path, like=model.name)
    columns = {column["name"]: column for column in dataset["columns"]}
    assert columns["Preis"]["mean"] == 1234
    assert columns["Raucher"]["type"] == "boolean"
    (first, *_) = client.dataset_rows(dataset["id"])
    assert str(first["Tag"]).startswith("2025-02-01")
    job = client.submit_batch({"model": model.name, "dataset": dataset["id"]})
    assert client.finished(job["id"])["status"] == "succeeded"
    again = client.upload(path, name="again", like=dataset["id"])
    assert again["columns"] == dataset["columns"]
    with pytest.raises(CredenceAPIError, match="no model 'nobody'"):
        client.upload(path, like="nobody")
