"""The folder through which a worker and the processes that train for it talk.

order.json, data.arrow   what to train, from the worker
stop                     there once the worker wants it to end
progress.jsonl           a line per report, from rank 0, like all below
checkpoints/             how far it has come
model/                   the artifact
ending.json              written last: null, or the error that the training ended with
out-of-memory            from any rank
"""

import json
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter

from core.datasets.datasets import read_columns
from models import exceptions
from models.exceptions import InvalidData, ModelError, Stopped
from models.features.columns import Columns
from models.training.progress import Progress
from worker.order import Order

_ORDER, _PROGRESS = TypeAdapter(Order), TypeAdapter(Progress)


@dataclass(frozen=True)
class Exchange:
    """One training's folder."""

    folder: Path

    @property
    def data(self) -> Path:
        return self.folder / "data.arrow"

    @property
    def model(self) -> Path:
        return self.folder / "model"

    @property
    def checkpoints(self) -> Path:
        return self.folder / "checkpoints"

    def give(self, order: Order) -> None:
        (self.folder / "order.json").write_bytes(_ORDER.dump_json(order))

    def order(self) -> Order:
        return _ORDER.validate_json((self.folder / "order.json").read_bytes())

    def columns(self, order: Order) -> Columns:
        return read_columns(self.data, order.types)

    def ask_to_stop(self) -> None:
        (self.folder / "stop").touch()

    def stop_is_asked(self) -> bool:
        return (self.folder / "stop").exists()

    def report(self, progress: Progress) -> None:
        with (self.folder / "progress.jsonl").open("ab") as file:
            file.write(_PROGRESS.dump_json(progress) + b"\n")

    def reports(self, offset: int) -> tuple[list[Progress], int]:
        """Reports from an offset on, and the offset of the next; half a line is left for then."""
        path = self.folder / "progress.jsonl"
        if not path.exists():
            return [], offset
        with path.open("rb") as file:
            file.seek(offset)
            data = file.read()
        whole = data[: data.rfind(b"\n") + 1]
        return [_PROGRESS.validate_json(line) for line in whole.splitlines()], offset + len(whole)

    def tell_out_of_memory(self) -> None:
        (self.folder / "out-of-memory").touch()

    def tell_ending(self, error: ModelError | Stopped | None) -> None:
        told = None
        if error is not None:
            arguments = [error.message, error.path] if isinstance(error, ModelError) else []
            told = {"error": type(error).__name__, "arguments": arguments}
        (self.folder / "ending.json").write_text(json.dumps(told), encoding="utf-8")

    def has_ended(self) -> bool:
        """Whether rank 0 came to the end, be it an error that `raise_ending` raises."""
        return (self.folder / "ending.json").exists()

    def raise_ending(self) -> None:
        """
        Raises:
            InvalidData, Diverged, Stopped: as they were told.
        """
        told = json.loads((self.folder / "ending.json").read_text(encoding="utf-8"))
        if told is not None:
            kind = getattr(exceptions, told["error"], InvalidData)
            raise kind(*told["arguments"])

    def ran_out_of_memory(self) -> bool:
        return (self.folder / "out-of-memory").exists()
