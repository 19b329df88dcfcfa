"""The tool that describes a table and fixes it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Self

from pydantic import Field, model_validator

from credence.agents.brief import first, present
from credence.agents.tool import DatasetId, Parsed, Rows, Tool, page
from credence.client import AsyncClient
from credence.client.requests import to_json
from credence.fixes import describe, improves, joined
from credence.types import Column, Dataset, Finding, Json

MAX_COLUMNS, MAX_FINDINGS, MAX_LEVELS = 40, 25, 8
MAX_CHARACTERS = 1_000_000  # of a table in a call: larger files go to POST /datasets


class ProfileData(Tool):
    """Describe a table: its columns, what looks wrong, and a fix for most of it.

    Give `csv`, `rows`, or the id of a data set. A table that you give is stored and gets an id.
    Call it again with `target` to see what matters for predicting that column, and with `fix` to
    apply fixes by the numbers of their findings: that makes a new data set, and the old one stays.
    A finding has a `fix`, or, where the table was read as most people mean it, what to do
    `if_that_is_wrong`.
    """

    changes = True
    dataset: DatasetId | None = None
    csv: Annotated[
        str | None,
        Field(max_length=MAX_CHARACTERS, description="a table as text: CSV with any delimiter"),
    ] = None
    rows: Annotated[
        Rows | None, Field(description='a table as records, such as [{"x": 1.5, "kind": "a"}]')
    ] = None
    name: Annotated[str, Field(max_length=200, description="name of a new data set")] = "table"
    target: Annotated[str | None, Field(description="the column to predict, if you know it")] = None
    fix: Annotated[
        tuple[int, ...],
        Parsed,
        Field(max_length=100, description="findings to fix, by number, as [1, 3]: same target"),
    ] = ()

    @model_validator(mode="after")
    def _one_table(self) -> Self:
        if len(self.tables()) != 1:
            known = ", ".join(self.sources)
            raise ValueError(f"give exactly one of {known}; given: {self.tables() or 'none'}")
        return self

    @property
    def sources(self) -> tuple[str, ...]:
        """The arguments that name or hold a table."""
        return "dataset", "csv", "rows"

    def tables(self) -> list[str]:
        """Those that were given."""
        return [name for name in self.sources if getattr(self, name) is not None]

    async def run(self, client: AsyncClient) -> Json:
        """The profile of the table, or of the new data set with the fixes."""
        dataset, note = self.dataset, None
        if dataset is None:
            stored = await self.upload(client)
            dataset, note = stored["id"], self._other_name(stored)
        found = await client.dataset(dataset, self.target)
        if self.fix:
            columns, options = joined(chosen_fixes(found["findings"], self.fix))
            fixed = await client.fix_columns(dataset, columns, **options)
            found = await client.dataset(fixed["id"], self.target)
        return profile(client, found, self.target) | present(note=note)

    def _other_name(self, stored: Dataset) -> str | None:
        """That the table was there before, if its name is not the one asked for."""
        if "name" not in self.model_fields_set or stored["name"] == self.name:
            return None
        return f"the same table is stored already, as {stored['name']!r}: this is that data set"

    async def upload(self, client: AsyncClient) -> Dataset:
        """The stored table."""
        if self.csv is not None:
            media_type, body = "text/csv", self.csv.encode()
        else:
            media_type, body = "application/json", to_json(self.rows)
        stored: Dataset = await client.run(
            client.create(
                "/datasets",
                params={"name": self.name},
                headers={"Content-Type": media_type},
                body=body,
            )
        )
        return stored


class ProfileFile(ProfileData):
    """Describe a table: its columns, what looks wrong, and a fix for most of it.

    Give `file`, `csv`, `rows`, or the id of a data set. A table that you give is uploaded and gets
    an id. Call it again with `target` to see what matters for predicting that column, and with
    `fix` to apply fixes by the numbers of their findings: that makes a new data set, and the old
    one stays. A finding has a `fix`, or, where the table was read as most people mean it, what to
    do `if_that_is_wrong`.
    """

    file: Annotated[
        Path | None,
        Field(
            description="path of a file on this machine: CSV, Excel, JSON, Parquet, zipped or not"
        ),
    ] = None

    @classmethod
    def title(cls) -> str:
        """The same name: over stdio this tool is in the place of the other."""
        return ProfileData.title()

    @property
    def sources(self) -> tuple[str, ...]:
        """The arguments that name or hold a table."""
        return "dataset", "file", "csv", "rows"

    async def upload(self, client: AsyncClient) -> Dataset:
        """The stored table."""
        if self.file is None:
            return await super().upload(client)
        try:
            return await client.upload(self.file.expanduser())
        except OSError as error:
            raise ValueError(f"file: {self.file}: {error.strerror or error}") from error


def chosen_fixes(findings: Sequence[Finding], numbers: Sequence[int]) -> list[Json]:
    """The fixes of these findings, which are numbered from 1.

    Raises:
        ValueError: a finding does not exist, or has no fix.
    """
    with_fix = [number for number, one in enumerate(findings, start=1) if one["fix"]]
    known = f"findings with a fix: {with_fix}" if with_fix else "no finding has a fix"
    for number in numbers:
        if number not in with_fix:
            raise ValueError(f"fix: {number} cannot be fixed; {known} (for this target)")
    return [fix for number in numbers if (fix := findings[number - 1]["fix"]) is not None]


def profile(client: AsyncClient, dataset: Dataset, target: str | None) -> Json:
    """A data set in short."""
    where = f"GET /datasets/{dataset['id']}"
    columns, more_columns = first([_column(one) for one in dataset["columns"]], MAX_COLUMNS, where)
    findings = [_finding(*numbered) for numbered in enumerate(dataset["findings"], start=1)]
    findings, more_findings = first(findings, MAX_FINDINGS, where)
    return present(
        dataset=dataset["id"],
        name=dataset["name"],
        rows=dataset["rows"],
        columns=columns,
        more_columns=more_columns,
        findings=findings,
        more_findings=more_findings,
        page=page(client, f"/datasets/{dataset['id']}"),
        next=_next(dataset, target),
    )


def _column(column: Column) -> Json:
    levels = column.get("levels", [])
    return present(
        name=column["name"],
        type=column["type"],
        missing=column["missing"] or None,
        min=column.get("min"),
        max=column.get("max"),
        mean=column.get("mean"),
        levels=levels[:MAX_LEVELS],
        num_levels=column.get("num_levels", len(levels)) if len(levels) > MAX_LEVELS else None,
        shape=column.get("shape"),
        left_out="not a feature unless you name it" if not column["use"] else None,
    )


def _finding(number: int, finding: Finding) -> Json:
    """A finding, with its fix if that improves something."""
    fix = describe(finding["fix"]) if finding["fix"] else None
    is_advice = improves(finding)
    return present(
        number=number,
        severity=finding["severity"],
        message=finding["message"],
        fix=fix if is_advice else None,
        if_that_is_wrong=None if is_advice else fix,
    )


def _next(dataset: Dataset, target: str | None) -> str:
    """What to do now."""
    numbered = enumerate(dataset["findings"], start=1)
    if advised := [number for number, one in numbered if improves(one)]:
        also = f" and target={target!r}" if target else ""
        return f"if you agree with the fixes, call profile_data with fix={advised}{also}"
    if target is None:
        return "call profile_data with the column to predict as target"
    return f"call train with target={target!r}"
