"""Encodings and byte-order marks."""

import codecs
from collections.abc import Sequence
from typing import Any

from core.datasets.files.options import DatasetOptions
from tests.corpus.case import Case, Said, text

GERMAN = ["Köln", "München", "Düsseldorf", "Straße", "Gößweinstein", "Nürnberg"]
FRENCH = ["Orléans", "Besançon", "Nîmes", "Mâcon", "Saint-Étienne", "Angoulême"]
QUOTED = ["“first”", "price in €", "it’s", "left – right", "„unten“", "50 ‰"]
RUSSIAN = ["Москва", "Санкт-Петербург", "Нижний Новгород", "Казань", "Екатеринбург", "Челябинск"]
JAPANESE = ["東京都", "大阪府", "北海道", "京都府", "神奈川県", "愛知県のデータ"]
GREEK = ["Αθήνα", "Θεσσαλονίκη", "Πάτρα", "Ηράκλειο", "Λάρισα", "Βόλος"]


def lines(words: Sequence[str], column: str = "place") -> list[str]:
    """A row per number below 24, with these words in turn."""
    rows = [f"{words[i * i % 6]},{i * 5 % 24}.5,{i % 7}" for i in range(24)]
    return [f"{column},size,y", *rows]


def read(words: Sequence[str], column: str = "place") -> dict[str, Any]:
    """What such a file becomes."""
    return {
        "rows": 24,
        "types": {column: "category", "size": "number", "y": "number"},
        "values": {column: [words[i * i % 6] for i in range(24)]},
    }


def utf16(mark: bytes, encoding: str) -> bytes:
    """UTF-16 with a byte-order mark."""
    return mark + "\r\n".join([*lines(GERMAN), ""]).encode(encoding)


CASES = (
    Case(
        file="latin1.csv",
        content=text(lines(GERMAN, "straße"), "latin-1"),
        **read(GERMAN, "straße"),
        findings=[Said("encoding")],
    ),
    Case(
        file="cp1252_french.csv",
        content=text(lines(FRENCH), "cp1252"),
        **read(FRENCH),
        findings=[Said("encoding")],
    ),
    Case(
        file="cp1252_quotes_and_euro.csv",
        content=text(lines(QUOTED), "cp1252"),
        **read(QUOTED),
        findings=[Said("encoding")],
    ),
    Case(
        file="cp1251_russian.csv",
        content=text(lines(RUSSIAN, "город"), "cp1251"),
        **read(RUSSIAN, "город"),
        findings=[Said("encoding")],
    ),
    Case(
        file="shift_jis.csv",
        content=text(lines(JAPANESE, "場所"), "shift_jis"),
        **read(JAPANESE, "場所"),
        findings=[Said("encoding")],
    ),
    Case(
        file="iso8859_7_given.csv",
        content=text(lines(GREEK), "iso8859-7"),
        options=DatasetOptions(encoding="iso8859-7"),
        **read(GREEK),
    ),
    Case(
        file="cp437_given.csv",
        content=text(lines(GERMAN), "cp437"),
        options=DatasetOptions(encoding="cp437"),
        **read(GERMAN),
    ),
    Case(file="utf8_bom.csv", content=text(lines(GERMAN), "utf-8-sig"), **read(GERMAN)),
    Case(
        file="utf16_little_bom.csv",
        content=lambda: utf16(codecs.BOM_UTF16_LE, "utf-16-le"),
        **read(GERMAN),
    ),
    Case(
        file="utf16_big_bom.csv",
        content=lambda: utf16(codecs.BOM_UTF16_BE, "utf-16-be"),
        **read(GERMAN),
    ),
    Case(
        file="utf16_tabs_of_excel.txt",
        content=lambda: (
            codecs.BOM_UTF16_LE
            + "\r\n".join([*(one.replace(",", "\t") for one in lines(GERMAN)), ""]).encode(
                "utf-16-le"
            )
        ),
        **read(GERMAN),
    ),
    Case(
        file="one_latin1_byte_in_utf8.csv",  # neither encoding is right for all of it
        content=lambda: text(lines(GERMAN))().replace("München".encode(), b"M\xfcnchen", 1),
        refused=r"line 3\b.*encoding=",
    ),
)
