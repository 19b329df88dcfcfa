"""Data sets: an uploaded file is read and profiled once, and stored as one Arrow file."""

import hashlib
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc
from jaxtyping import Int
from sqlalchemy import ColumnElement, case, delete, func, not_, or_, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session, defer

from core.access import audit, shares
from core.access.callers import DATASET, EVERYBODY, JOB, SERVICE, Caller, check_change
from core.access.idempotency import AlreadyCompleted
from core.access.quotas import check_bytes
from core.clock import now
from core.database.database import Database
from core.database.schema import DatasetRow, JobRow
from core.database.statements import installation_id
from core.database.stored_bytes import stored_bytes
from core.datasets.apart import Workplace, ingested
from core.datasets.blocks import StoredBlocks, open_blocks
from core.datasets.columns import canonical
from core.datasets.columns.conversion import to_numpy
from core.datasets.columns.place import Column
from core.datasets.columns.shown import cut_rows, shown_rows
from core.datasets.dataset import Dataset, Provenance, about_of, brief, dataset_of, given_fields
from core.datasets.files.ingest import Given, Ingested, ingest
from core.datasets.files.opening import opened, reopened
from core.datasets.files.options import ReadingOptions
from core.datasets.files.source import Source
from core.datasets.formats import inline
from core.datasets.formats.limits import check_size
from core.datasets.understanding.fixes import ColumnFix, check_names, merge
from core.datasets.understanding.fixes import to_json as fixes_to_json
from core.datasets.understanding.levels import EXACT
from core.datasets.understanding.merging import check_levels, check_spellings
from core.exceptions import Conflict, Invalid, NotFound, QuotaExceeded
from core.jobs.checkpoints import checkpoints_key
from core.jobs.jobs import UNFINISHED, JobStatus, cancel_row
from core.jobs.results import parts_key
from core.names import check_identifier, check_name, new_id
from core.paging import (
    Page,
    check_limit,
    decode_number,
    encode_cursor,
    first_fitting,
    read_newest,
)
from core.process.disks import on_disk
from core.process.memory_budget import MemoryBudget
from core.process.resources import available_bytes
from core.schedules.triggers import data_refreshed
from core.storage import ArtifactStore
from models.features.columns import Columns

MAX_BYTES = 2**31
ROWS = "rows"  # the kind of cursors of rows
LISTED_COLUMNS = 100  # of one data set in a list; each column takes up to 30 kB
RowSelection = slice | Int[np.ndarray, "rows"]
ALL_ROWS = slice(None)
NOTHING_GIVEN = Given()
NO_FILE = "the file of this data set is not stored: upload it again with these options"
NOT_STORED = (
    "the file of this data set is not stored, so that rows that were left out and levels that were "
    "merged cannot come back: use the data set from before that change, or upload it again"
)


@dataclass(frozen=True)
class Origin:
    """What a data set is made from: a file's bytes, and what its caller says about them.

    Args:
        provenance: where the file was read from; None of an upload.
    """

    name: str
    format: str
    sha256: str
    bytes: int
    given: Given
    provenance: Provenance | None = None

    @property
    def variant(self) -> str:
        """A digest of what the caller says; equal bytes with an equal digest are one data set."""
        said = {"release": 2, "options": given_fields(self.given.options)}
        said |= {} if self.provenance is None else {"source": self.provenance.source}
        text = orjson.dumps(
            said | {"fixes": fixes_to_json(self.given.fixes)}, option=orjson.OPT_SORT_KEYS
        )
        return hashlib.sha256(text).hexdigest()


class Datasets:
    """The data sets that `caller` may see: a row in the database and a file in the store each."""

    def __init__(  # noqa: PLR0917
        self,
        database: Database,
        store: ArtifactStore,
        max_bytes: int = MAX_BYTES,
        scratch: Path | None = None,
        caller: Caller = SERVICE,
        memory: MemoryBudget | None = None,
    ) -> None:
        self._database = database
        self._store = store
        self._max_bytes = max_bytes
        self._scratch = scratch  # folder for files before they are published
        self._caller = caller
        memory = memory or MemoryBudget(available_bytes())
        self._workplace = Workplace(max_bytes, memory, scratch, caller.share)

    def add(  # noqa: PLR0917 - a file, and what is known of it
        self,
        name: str,
        media_type: str,
        source: Path,
        sha256: str | None = None,
        given: Given = NOTHING_GIVEN,
        provenance: Provenance | None = None,
    ) -> tuple[Dataset, bool]:
        """Store a file as a data set, and keep the file.

        The same bytes with the same options again return the existing data set, and False.

        Args:
            media_type: what the file is sent as; what it plainly is goes before that.
            source: the file, which nobody writes to any more: it is linked, not copied.
            sha256: of the file, in hexadecimal; computed if None.
            given: its fixes of columns that the file does not have wait until it is read otherwise.
            provenance: where the file was read from. The same bytes of another source, or of an
                upload, are another data set.

        Raises:
            UnsupportedFormat, NotParseable, Invalid, TooLarge: see `core.datasets.formats`.
            QuotaExceeded: the caller would store more than its quota.
        """
        check_name(name)
        sha256 = sha256 or _sha256(source)
        with opened(source, media_type, self._max_bytes, self._scratch) as file:
            size = source.stat().st_size
            about = Origin(name, file.format.name, sha256, size, given, provenance)
            if existing := self._find(about):
                self._remember(existing)
                return existing, False
            with ingested(file, given, self._workplace) as found:
                return self._publish(about, found, self._caller, source=source)

    def change_columns(
        self,
        dataset_id: str,
        fixes: Sequence[ColumnFix],
        name: str | None = None,
        options: ReadingOptions = NOTHING_GIVEN.options,
    ) -> tuple[Dataset, bool]:
        """A new data set of the same bytes, with the file or some columns read otherwise.

        Fixes and options of earlier changes are kept, each until a later one says otherwise. Of a
        file that is read otherwise, earlier fixes wait while no column has their name. A data set
        without a stored file (inline rows, the first release) is changed from its columns. The
        same changes again return the existing data set, and False.

        Args:
            name: of the new data set; by default that of the old one.
            options: how to read the file; None in it keeps what was said or found out before.

        Raises:
            NotFound: there is no such data set.
            NotParseable, TooLarge: the file cannot be read in this way.
            Invalid: a fix names no column or no level, or cannot be done; or there are options but
                no file.
        """
        before = self.get(dataset_id)
        row = self._row(dataset_id)
        if given_fields(options).keys() - {"unique_rows"} and row.source_key is None:
            raise Invalid([("/options", NO_FILE)])
        said = replace(before.given.options, **given_fields(options))
        given = Given(
            replace(said, unique_rows=said.unique_rows or None),  # rows stay by default
            merge(before.given.fixes, fixes),
        )
        about = Origin(
            name or before.name,
            before.format,
            before.sha256,
            before.bytes,
            given,
            before.provenance,
        )
        if existing := self._find(about):
            self._remember(existing)
            return existing, False
        if row.source_key is None and _undoes(fixes, before.given, given):
            raise Invalid([("/", NOT_STORED)])
        with self._read_again(row, before, given) as found:
            check_names(fixes, found.table.column_names)
            self._check_levels(before, fixes, found)
            return self._publish(about, found, self._caller, source_key=row.source_key)

    def _check_levels(self, before: Dataset, fixes: Sequence[ColumnFix], found: Ingested) -> None:
        """Raise `Invalid` if a fix merges what are no levels of its column before the change."""
        types = {profile.name: profile.type for profile in before.columns}
        readings = {reading.name: reading for reading in (*before.readings, *found.readings)}
        earlier = {reading.name: reading.levels for reading in before.readings}
        for place, fix in enumerate(fixes):
            if not fix.levels:
                continue
            path = f"/columns/{place}/levels"
            if types.get(fix.name) != "category":
                read = f"was read as {types[fix.name]}" if fix.name in types else "is new"
                advice = "read it as a category first, then merge its levels"
                raise Invalid([(path, f"column {fix.name!r} {read}: {advice}")])
            known = set(self.distinct(before.id, fix.name))
            check_levels(fix.name, fix.levels, known, earlier.get(fix.name, {}), path)
            if readings[fix.name].format != EXACT:
                check_spellings(fix.levels, known, path)

    @contextmanager
    def _read_again(self, row: DatasetRow, before: Dataset, given: Given) -> Iterator[Ingested]:
        format_ = before.format
        if row.source_key is None:
            with self._open(row.artifact_key) as table:
                yield ingest(
                    Source(table=table, reading=before.reading),
                    given.fixes,
                    is_text=format_ == "text",
                    unique_rows=bool(given.options.unique_rows),
                )
            return
        path = self._store.local_path(row.source_key)
        with (
            reopened(path, format_, self._max_bytes, self._scratch) as file,
            ingested(file, given, self._workplace) as found,
        ):
            yield found

    def add_columns(self, name: str, columns: Mapping[str, Sequence[Any]]) -> tuple[Dataset, bool]:
        """As `add`, for columns of a JSON body. Errors have pointers under `/data/columns`."""
        check_name(name)
        body = _inline_bytes(columns)
        check_size(len(body), self._max_bytes, "the inline data")
        sha256 = hashlib.sha256(body).hexdigest()
        about = Origin(name, "json", sha256, len(body), NOTHING_GIVEN)
        table = canonical(inline.read(columns), inline.POINTER)
        if existing := self._find(about):
            return existing, False
        return self._publish(about, ingest(Source(table=table)))

    def get(self, dataset_id: str) -> Dataset:
        """The data set, or `NotFound`."""
        return dataset_of(self._row(dataset_id))

    def list(self, limit: int = 20, cursor: str | None = None) -> Page[Dataset]:
        """The data sets, newest first. Those of more than `LISTED_COLUMNS` come without columns."""
        wide = DatasetRow.columns, DatasetRow.about
        is_wide = func.json_array_length(DatasetRow.columns) > LISTED_COLUMNS
        query = select(DatasetRow).where(self._caller.view.of(DATASET))
        with self._database.read() as session:
            page = read_newest(
                session,
                "datasets",
                query,
                DatasetRow.number,
                limit,
                cursor,
                self._caller.hold,
                size=case((is_wide, 0), else_=stored_bytes(wide)),
                options=[defer(column) for column in wide],
            )
            widths = _widths(session, [row.id for row in page.data])
            narrow = [id_ for id_, width in widths.items() if width <= LISTED_COLUMNS]
            whole = select(DatasetRow).where(DatasetRow.id.in_(narrow))
            loaded = whole.execution_options(populate_existing=True)
            found = {row.id: dataset_of(row) for row in session.scalars(loaded)}
            data = [found.get(row.id) or brief(row, widths[row.id]) for row in page.data]
        return Page(data, page.next_cursor)

    def delete(self, dataset_id: str) -> None:
        """Delete a data set, its file, and the files of jobs that cannot be resumed without it.

        Raises:
            NotFound: it does not exist.
            NotOwner: it was only shared with the caller.
            Conflict: while a job that has not ended uses it.
        """
        check_identifier("dataset", dataset_id)
        with self._database.begin() as session:
            check_change(session, self._caller, DATASET, dataset_id)
            self._stop_jobs_of_others(session, dataset_id)
        with self._database.begin() as session:
            check_change(session, self._caller, DATASET, dataset_id)
            statement = delete(DatasetRow).where(DatasetRow.id == dataset_id)
            returned = statement.returning(DatasetRow.artifact_key, DatasetRow.source_key)
            deleted = session.execute(returned).one_or_none()
            if deleted is None:
                raise NotFound("dataset", dataset_id)
            unused = _without_readers(session, deleted.source_key)
            of_this = _reads(dataset_id)
            using = select(JobRow.id).where(of_this, JobRow.status.in_(UNFINISHED))
            if job := session.scalars(using.order_by(JobRow.number).limit(1)).first():
                raise Conflict(
                    f"dataset {dataset_id} is used by job {job}: cancel it or wait until it ends"
                )
            unresumable = select(JobRow.id).where(of_this, JobRow.status != JobStatus.SUCCEEDED)
            results = session.scalars(unresumable.where(JobRow.kind == "predict")).all()
            runs = session.scalars(unresumable.where(JobRow.kind == "train")).all()
            shares.forget(session, DATASET, dataset_id)
            audit.record(session, self._caller, "dataset.delete", dataset_id)
        of_jobs = *map(parts_key, results), *map(checkpoints_key, runs)
        self._delete_files([deleted.artifact_key, *unused, *of_jobs])

    def _stop_jobs_of_others(self, session: Session, dataset_id: str) -> None:
        """Cancel jobs on this data set that the caller cannot see; they do not prevent deletion."""
        others = not_(self._caller.view.of(JOB)), JobRow.parent.is_(None)
        query = select(JobRow).where(_reads(dataset_id), JobRow.status.in_(UNFINISHED), *others)
        for row in session.scalars(query.order_by(JobRow.number).with_for_update()).all():
            cancel_row(session, row)
            audit.record(session, self._caller, "job.cancel", row.id, dataset=dataset_id)

    def rows(
        self,
        dataset_id: str,
        limit: int = 20,
        names: Sequence[str] | None = None,
        start: int = 0,
    ) -> Sequence[dict[str, Any]]:
        """At most `limit` rows from `start` as JSON values, for a page of the dashboard.

        Long texts are cut (see `core.datasets.columns.shown`).

        Args:
            names: the columns; all if None.
        """
        check_limit(limit)
        row = self._row(dataset_id)
        with self._open(row.artifact_key) as table:
            some = table if names is None else table.select(list(names))
            return cut_rows(some.slice(start, limit))

    def shown_rows(
        self, dataset_id: str, limit: int = 20, cursor: str | None = None
    ) -> Page[bytes]:
        """The first rows, each as a JSON object, in pages (see `core.paging`).

        Raises:
            NotFound: there is no such data set.
            TooLarge: see `core.datasets.columns.shown`.
        """
        check_limit(limit)
        start = 0 if cursor is None else decode_number(ROWS, cursor)
        row = self._row(dataset_id)
        with self._open(row.artifact_key) as table:
            data = first_fitting(shown_rows(table.slice(start, limit)))
            end = start + len(data)
            return Page(data, encode_cursor(ROWS, end) if end < table.num_rows else None)

    def distinct(self, dataset_id: str, name: str) -> Sequence[str]:
        """The values of a column as texts, sorted; missing ones are left out."""
        with self._open(self._row(dataset_id).artifact_key) as table:
            values = pc.unique(_texts(table, name)).to_pylist()
        return sorted(value for value in values if value is not None)

    def levels(self, dataset: Dataset) -> Mapping[str, Sequence[str]]:
        """All levels of each category; a profile has only the most frequent ones."""
        return {
            one.name: one.levels
            if one.num_levels == len(one.levels)
            else self.distinct(dataset.id, one.name)
            for one in dataset.columns
            if one.type == "category" and one.levels is not None
        }

    def newest_of(
        self, dataset_id: str, name: str, value: str | None, limit: int, names: Sequence[str]
    ) -> Sequence[dict[str, Any]]:
        """The last `limit` rows with a value of `distinct`; None is that of the last row.

        Args:
            names: the columns.
        """
        check_limit(limit)
        with self._open(self._row(dataset_id).artifact_key) as table:
            texts = _texts(table, name)
            wanted = texts[-1] if value is None else pa.scalar(value)
            found = pc.indices_nonzero(pc.equal(texts, wanted))
            return cut_rows(table.select(list(names)).take(found[-limit:]))

    def columns(
        self,
        dataset_id: str,
        names: Sequence[str] | None = None,
        rows: RowSelection = ALL_ROWS,
        types: Mapping[str, str] | None = None,
    ) -> Columns:
        """Copies of columns as arrays, in the convention of `models.features.columns`.

        Only `rows` are read: a slice, or the numbers of rows in the order that is wanted.

        Args:
            types: of columns that are not read as their profile says, as
                `core.datasets.inputs.target_type` gives for a target.

        Raises:
            Invalid: a column does not exist; the message lists those that do.
        """
        row = self._row(dataset_id)
        profiles = {p.name: p for p in dataset_of(row).columns}
        wanted = list(profiles) if names is None else list(names)
        if unknown := [name for name in wanted if name not in profiles]:
            raise Invalid([("/columns", _no_such_column(unknown[0], list(profiles)))])
        with self._open(row.artifact_key) as table:
            own = {name: profiles[name].type for name in wanted}
            chosen = table.select(wanted)
            some = chosen[rows] if isinstance(rows, slice) else chosen.take(rows)
            return _arrays(some, own | dict(types or {}))

    @contextmanager
    def blocks(self, dataset_id: str, types: Mapping[str, str]) -> Iterator[StoredBlocks]:
        """Columns of a data set, to be read some rows at a time.

        Args:
            types: the type that each column is read as.

        Raises:
            Invalid: a column does not exist; the message lists those that do.
        """
        row = self._row(dataset_id)
        known = [profile.name for profile in dataset_of(row).columns]
        if unknown := [name for name in types if name not in known]:
            raise Invalid([("/columns", _no_such_column(unknown[0], known))])
        with open_blocks(self._store.local_path(row.artifact_key), types) as blocks:
            yield blocks

    def table(
        self, dataset_id: str, names: Sequence[str], rows: slice, path: str = "/columns"
    ) -> pa.Table:
        """Columns as they are stored, of some rows.

        Raises:
            Invalid: a column does not exist; the error has `path`, and lists those that do.
        """
        row = self._row(dataset_id)
        known = [profile.name for profile in dataset_of(row).columns]
        if unknown := [name for name in names if name not in known]:
            raise Invalid([(path, _no_such_column(unknown[0], known))])
        with self._open(row.artifact_key) as table:
            return table.select(list(names))[rows]

    def export(self, dataset_id: str, names: Sequence[str], path: Path) -> None:
        """Write columns to a file that `read_columns` reads without a database."""
        key = self._row(dataset_id).artifact_key
        with self._open(key) as table:
            some = table.select(list(names))
            with pa.ipc.new_file(str(path), some.schema) as writer:
                writer.write_table(some)

    def _find(self, about: Origin) -> Dataset | None:
        """The data set with these bytes and options that the caller's owner or everybody owns."""
        owners = DatasetRow.owner.in_((self._caller.owner, EVERYBODY))
        query = select(DatasetRow).where(
            DatasetRow.sha256 == about.sha256,
            DatasetRow.format == about.format,
            DatasetRow.variant == about.variant,
        )
        with self._database.read() as session:
            row = session.scalars(query.where(owners).order_by(DatasetRow.number)).first()
        return None if row is None else dataset_of(row)

    def _remember(self, existing: Dataset) -> None:
        """Record the existing data set as the result, if the request has an idempotency key."""
        if self._caller.operation is not None:
            with self._database.begin() as session:
                self._caller.record(session, existing.id, (existing, False))

    def _row(self, dataset_id: str) -> DatasetRow:
        check_identifier("dataset", dataset_id)
        with self._database.read() as session:
            seen = self._caller.view.of(DATASET)
            query = select(DatasetRow).where(DatasetRow.id == dataset_id, seen)
            row = session.scalars(query).one_or_none()
        if row is None:
            raise NotFound("dataset", dataset_id)
        return row

    @contextmanager
    def _open(self, key: str) -> Iterator[pa.Table]:
        """The table, mapped into memory: only the pages in use are read from the disk."""
        with pa.memory_map(str(self._store.local_path(key))) as file:
            yield pa.ipc.open_file(file).read_all()

    def _publish(
        self,
        about: Origin,
        found: Ingested,
        recording: Caller | None = None,
        *,
        source: Path | None = None,
        source_key: str | None = None,
    ) -> tuple[Dataset, bool]:
        """Store the table and the uploaded file, then the row that refers to them.

        Args:
            source: the uploaded file, to be stored.
            source_key: where it is stored already.
        """
        check_size(found.table.nbytes, self._max_bytes, "the data set")
        dataset_id = new_id("ds")
        keys = self._keys(dataset_id)
        row = DatasetRow(
            id=dataset_id,
            owner=self._caller.owner,
            name=about.name,
            format=about.format,
            rows=found.table.num_rows,
            columns=[dict(vars(column)) for column in found.profiles],
            bytes=about.bytes,
            sha256=about.sha256,
            artifact_key=keys.table,
            created_at=now(),
            variant=about.variant,
            source_key=keys.source if source is not None else source_key,
            about=about_of(found, about.given, about.provenance),
        )
        row.stored_bytes = self._store_table(row.artifact_key, found)
        mine = [row.artifact_key]
        if source is not None:
            row.stored_bytes += about.bytes
            self._store_upload(keys.source, source)
            mine.append(keys.source)
        try:
            with self._database.begin() as session:
                _check_source(session, source_key)
                check_bytes(session, self._caller, row.stored_bytes, self._store.free_bytes())
                session.add(row)
                audit.record(session, self._caller, "dataset.create", dataset_id, **_audited(about))
                if about.provenance is not None and about.provenance.refreshed_from is not None:
                    data_refreshed(session, dataset_id, about.variant, self._caller.owner)
                if recording is not None:
                    recording.record(session, dataset_id, (dataset_of(row), True))
        except (QuotaExceeded, AlreadyCompleted, Conflict):
            self._delete_files(mine)
            raise
        except IntegrityError:  # after any other error the row may be committed
            self._delete_files(mine)
            existing = self._find(about)
            if existing is None:
                raise
            if recording is not None:
                self._remember(existing)
            return existing, False  # the same bytes came in twice at once
        return dataset_of(row), True

    def _delete_files(self, keys: Sequence[str]) -> None:
        for key in keys:
            self._store.delete(key)

    def _keys(self, dataset_id: str) -> "_Keys":
        """The keys of the files. They contain the database's identifier (see `installation_id`)."""
        with self._database.begin() as session:
            stem = f"datasets/{installation_id(session)}-{dataset_id}"
        return _Keys(f"{stem}.arrow", f"{stem}.source")

    def _store_upload(self, key: str, source: Path) -> None:
        with (
            on_disk("the data set"),
            tempfile.TemporaryDirectory(dir=self._scratch) as folder,
        ):
            link = Path(folder) / "upload"
            try:
                link.hardlink_to(source)
            except OSError:  # another disk
                shutil.copyfile(source, link)
            self._store.move_file(key, link)

    def _store_table(self, key: str, found: Ingested) -> int:
        """Publish the table. Returns the size of its file in bytes."""
        with (
            on_disk("the data set"),
            tempfile.TemporaryDirectory(dir=self._scratch) as folder,
        ):
            path = found.file
            if path is None:
                path = Path(folder) / "data.arrow"
                with pa.ipc.new_file(str(path), found.table.schema) as writer:
                    writer.write_table(found.table)
            size = path.stat().st_size
            self._store.move_file(key, path)
            return size


def _undoes(fixes: Sequence[ColumnFix], before: Given, now: Given) -> bool:
    """Whether rows that were left out, or levels that were merged, come back."""
    merged = {fix.name: fix.levels or {} for fix in before.fixes}
    separated = any(
        fix.levels is not None
        and (not fix.levels or not merged.get(fix.name, {}).keys().isdisjoint(fix.levels))
        for fix in fixes
        if merged.get(fix.name)
    )
    return separated or bool(before.options.unique_rows and not now.options.unique_rows)


def _audited(about: Origin) -> Mapping[str, Any]:
    """What the audit log tells of a new data set: its name, and where it was read from."""
    if about.provenance is None:
        return {"name": about.name}
    named = {key: about.provenance.source.get(key) for key in ("uri", "database", "secret")}
    return {"name": about.name} | {key: value for key, value in named.items() if value}


class _Keys(NamedTuple):
    table: str
    source: str


def _widths(session: Session, ids: Sequence[str]) -> Mapping[str, int]:
    """The number of columns of each data set, counted by the database."""
    width = func.json_array_length(DatasetRow.columns).label("width")
    query = select(DatasetRow.id, width).where(DatasetRow.id.in_(ids))
    return {row.id: row.width for row in session.execute(query)}


def _without_readers(session: Session, source_key: str | None) -> list[str]:
    """The uploaded file, if no other data set is made from it."""
    if source_key is None:
        return []
    others = select(DatasetRow.id).where(DatasetRow.source_key == source_key).limit(1)
    return [] if session.scalars(others).first() else [source_key]


def _check_source(session: Session, source_key: str | None) -> None:
    """Raise `Conflict` if the file of a data set that is changed was deleted in the meantime."""
    if source_key is None:
        return
    query = select(DatasetRow.id).where(DatasetRow.source_key == source_key)
    if session.scalars(query.with_for_update().limit(1)).first() is None:
        raise Conflict("the data set was deleted in the meantime: upload the file again")


def read_columns(path: Path, types: Mapping[str, str]) -> Columns:
    """Copies of the columns of a file that `Datasets.export` wrote.

    Args:
        types: the type of each column to read, by name.
    """
    with pa.memory_map(str(path)) as file:
        return _arrays(pa.ipc.open_file(file).read_all(), types)


def _texts(table: pa.Table, name: str) -> Column:
    return pc.cast(table.column(name), pa.string())


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _reads(dataset_id: str) -> ColumnElement[bool]:
    """The SQL condition for jobs on the data set: on its rows, or as out-of-distribution rows."""
    other = JobRow.spec["out_of_distribution"].as_string()
    return or_(JobRow.dataset == dataset_id, other == dataset_id)


def _arrays(table: pa.Table, types: Mapping[str, str]) -> Columns:
    return {name: np.array(to_numpy(table.column(name), type_)) for name, type_ in types.items()}


def _inline_bytes(columns: Mapping[str, Sequence[Any]]) -> bytes:
    try:
        return orjson.dumps(columns)
    except TypeError as error:
        raise Invalid([(inline.POINTER, f"cannot be read: {error}")]) from error


def _no_such_column(name: str, known: Sequence[str]) -> str:
    listed = ", ".join(repr(n) for n in known[:20]) + (" …" if len(known) > 20 else "")
    return f"there is no column {name!r}: the columns are {listed}"
