"""Search: models, data sets and jobs whose names contain some words."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import ColumnElement, and_, case, or_, select, true
from sqlalchemy.orm import InstrumentedAttribute

from core.access.callers import DATASET, JOB, MODEL, Caller
from core.database.database import Database
from core.database.schema import DatasetRow, JobRow, ModelRow, VersionRow
from core.paging import check_limit
from core.registry import versions

MAX_WORDS = 8  # each is one more condition


@dataclass(frozen=True)
class FoundModel:
    """A model, and what its newest version predicts."""

    name: str
    version: int
    task: str
    target: str | None


@dataclass(frozen=True)
class FoundDataset:
    """A data set."""

    id: str
    name: str
    rows: int
    created_at: datetime


@dataclass(frozen=True)
class FoundJob:
    """A job without a parent."""

    id: str
    kind: str
    model: str
    status: str
    created_at: datetime


class Search:
    """Search in what `caller` may see. Each method returns at most `limit` items.

    An item is found if each word is a part of its name, in upper or lower case: of a data set also
    of its id, of a job of its id, model or status.
    """

    def __init__(self, database: Database, caller: Caller) -> None:
        self._database = database
        self._view = caller.view

    def models(self, text: str, limit: int) -> Sequence[FoundModel]:
        """Models: first those whose name begins with the first word, then by name."""
        words = _words(text)
        about = (VersionRow.description[key].as_string() for key in ("task", "target"))
        query = (
            select(VersionRow.model, VersionRow.version, *about)
            .join(ModelRow, VersionRow.model == ModelRow.name)
            .where(VersionRow.version == versions.newest(), self._view.of(MODEL))
            .where(_contain(words, ModelRow.name))
            .order_by(_begins(words, ModelRow.name), ModelRow.name)
        )
        with self._database.read() as session:
            return [FoundModel(*row) for row in session.execute(query.limit(check_limit(limit)))]

    def datasets(self, text: str, limit: int) -> Sequence[FoundDataset]:
        """Data sets, newest first."""
        query = (
            select(DatasetRow.id, DatasetRow.name, DatasetRow.rows, DatasetRow.created_at)
            .where(self._view.of(DATASET), _contain(_words(text), DatasetRow.name, DatasetRow.id))
            .order_by(DatasetRow.number.desc())
        )
        with self._database.read() as session:
            return [FoundDataset(*row) for row in session.execute(query.limit(check_limit(limit)))]

    def jobs(self, text: str, limit: int) -> Sequence[FoundJob]:
        """Jobs without a parent, newest first."""
        query = (
            select(JobRow.id, JobRow.kind, JobRow.model, JobRow.status, JobRow.created_at)
            .where(JobRow.parent.is_(None), self._view.of(JOB))
            .where(_contain(_words(text), JobRow.model, JobRow.id, JobRow.status))
            .order_by(JobRow.number.desc())
        )
        with self._database.read() as session:
            return [FoundJob(*row) for row in session.execute(query.limit(check_limit(limit)))]


def _words(text: str) -> list[str]:
    """The words of a text. PostgreSQL accepts no control characters, so they separate words."""
    plain = "".join(letter if letter.isprintable() else " " for letter in text)
    return plain.split()[:MAX_WORDS]


def _contain(words: Sequence[str], *columns: InstrumentedAttribute[str]) -> ColumnElement[bool]:
    """The SQL condition that each word is in one of the columns. `%` and `_` are letters."""
    found = (or_(*(one.icontains(word, autoescape=True) for one in columns)) for word in words)
    return and_(true(), *found)


def _begins(words: Sequence[str], column: InstrumentedAttribute[str]) -> ColumnElement[int]:
    """0 if the column begins with the first word, else 1."""
    first = words[0] if words else ""
    return case((column.istartswith(first, autoescape=True), 0), else_=1)
