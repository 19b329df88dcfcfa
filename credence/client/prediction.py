"""What a prediction says, as arrays: how much the model does not know beside what it predicts."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from credence.client.frames import Arrays


class Interval(NamedTuple):
    """Bounds per row; NaN where a conformal one is unbounded."""

    lower: np.ndarray
    upper: np.ndarray


@dataclass(frozen=True, repr=False)
class Prediction:
    """A model's answer for some rows, in their order; of a forecast for the steps ahead.

    Attributes:
        table: the service's answer as it came: all its columns, variances and entropies.
    """

    table: pa.Table
    classes: tuple[str | int | float | bool, ...] | None
    restore: Callable[[Arrays], Any]

    def __len__(self) -> int:
        return self.table.num_rows

    def __repr__(self) -> str:
        rows = f"{len(self)} rows" if len(self) != 1 else "1 row"
        strange = int(self.out_of_distribution.sum())
        told = f", {strange} unlike those of training" if strange else ""
        return f"<Prediction of {self.model} version {self.version}: {rows}{told}>"

    @property
    def model(self) -> str:
        """The model's name."""
        return self._told("model")

    @property
    def version(self) -> int:
        """Its version's number."""
        return int(self._told("version"))

    @property
    def samples(self) -> int:
        """How many weight draws were used."""
        return int(self._told("samples"))

    @property
    def seed(self) -> int:
        """What makes the same answer again."""
        return int(self._told("seed"))

    @property
    def id(self) -> str | None:
        """By which labels can come back, of a prediction with `store=True`."""
        return self._told("id") if b"id" in self._metadata else None

    @property
    def mean(self) -> np.ndarray:
        """Predicted values; of classes their probabilities, rows × classes."""
        return self._column("mean") if self.classes is None else self.probabilities

    @property
    def std(self) -> np.ndarray:
        """Standard deviation of the predictive distribution, in the target's unit."""
        return np.sqrt(self._number("total_variance"))

    @property
    def aleatoric(self) -> np.ndarray:
        """What the data leave open, however much of them there is: a standard deviation in the
        target's unit; of classes nats of entropy.
        """
        if self.classes is not None:
            return self._column("expected_entropy")
        return np.sqrt(self._column("aleatoric_variance"))

    @property
    def epistemic(self) -> np.ndarray:
        """What the model does not know, and more data would tell: as `aleatoric`."""
        if self.classes is not None:
            return self._column("mutual_information")
        return np.sqrt(self._column("epistemic_variance"))

    @property
    def mc_error(self) -> np.ndarray:
        """Standard error of `mean` from finite sampling; NaN where it cannot be estimated."""
        return self._column("mc_error") if self.classes is None else self._classes("mc_error")

    @property
    def labels(self) -> np.ndarray:
        """The likeliest class of each row."""
        return np.asarray(self._class_column("label").to_pylist())

    @property
    def probabilities(self) -> np.ndarray:
        """Rows × classes, in the order of `classes`."""
        return self._classes("probability")

    @property
    def entropy(self) -> np.ndarray:
        """Of the predicted probabilities, in nats: `aleatoric` + `epistemic`."""
        return self._class_column("predictive_entropy").to_numpy()

    @property
    def out_of_distribution(self) -> np.ndarray:
        """Which rows are unlike those of training: what is said of them is a guess."""
        return self._column("out_of_distribution").astype(bool)

    @property
    def ood_score(self) -> np.ndarray:
        """What is compared with the threshold of the version's detector."""
        return self._column("ood_score")

    @property
    def abstained(self) -> np.ndarray:
        """With `abstain_above`: rows to leave to a human."""
        return self._column("abstained").astype(bool)

    @property
    def times(self) -> np.ndarray:
        """Of a forecast: of the steps ahead."""
        return self._column("time")

    @property
    def draws(self) -> np.ndarray:
        """With `return_draws`: samples × rows (× classes)."""
        return np.moveaxis(np.asarray(self.table.column("draws").to_pylist(), dtype=float), 0, 1)

    def interval(self, level: float = 0.9, kind: str = "credible") -> Interval:
        """Bounds that hold the target with this probability, as the model believes (`credible`) or
        as held-out rows have shown (`conformal`).

        Raises:
            ValueError: for a level that was not asked for; the message tells which were.
        """
        prefix = "" if kind == "credible" else f"{kind}_"
        if f"{prefix}lower_{level}" not in self.table.column_names:
            there = [n.partition("lower_")[::2] for n in self.table.column_names if "lower_" in n]
            known = ", ".join(f"{at} ({k.rstrip('_') or 'credible'})" for k, at in there) or "none"
            hint = f"predict with intervals=[{level}]"
            raise ValueError(f"no {kind} interval of level {level}, there are: {known}; {hint}")
        bounds = (self._column(f"{prefix}{end}_{level}") for end in ("lower", "upper"))
        return Interval(*bounds)

    def to_frame(self) -> Any:
        """The same kind of frame that the rows came in, row by row (of pandas with its index)."""
        told = ["out_of_distribution", "ood_score", "abstained"]
        front = {"time": self.times} if "time" in self.table.column_names else {}
        if self.classes is None:
            names = ["mean", "std", "aleatoric", "epistemic"]
            told = [n for n in self.table.column_names if "lower_" in n or "upper_" in n] + told
        else:
            front["label"] = self.labels
            names = ["entropy", "aleatoric", "epistemic"]
            told = [n for n in self.table.column_names if n.startswith("probability_")] + told
        known = {name: getattr(self, name) for name in names}
        rest = {n: self._column(n) for n in told if n in self.table.column_names}
        return self.restore(front | known | rest)

    @property
    def _metadata(self) -> dict[bytes, bytes]:
        return self.table.schema.metadata or {}

    def _told(self, name: str) -> str:
        return self._metadata[name.encode()].decode()

    def _column(self, name: str) -> np.ndarray:
        if name not in self.table.column_names:
            raise ValueError(f"{self.model} was not asked for {name}, or cannot tell it")
        return self.table.column(name).to_numpy()

    def _number(self, name: str) -> np.ndarray:
        if self.classes is not None:
            raise ValueError(f"{self.model} predicts classes: see probabilities and entropy")
        return self._column(name)

    def _class_column(self, name: str) -> Any:
        if self.classes is None:
            raise ValueError(f"{self.model} predicts numbers: see mean, std and interval()")
        return self.table.column(name)

    def _classes(self, name: str) -> np.ndarray:
        """Columns per class stand in the order of the classes."""
        self._class_column("label")
        names = [n for n in self.table.column_names if n.startswith(f"{name}_")]
        return np.column_stack([self._column(n) for n in names])
