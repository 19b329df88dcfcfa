"""A prediction as arrays: means or classes, with their uncertainty."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from credence.client.anomalies import PREFIX as ANOMALY
from credence.client.anomalies import Anomalies, read_anomalies
from credence.client.arrow import Table, numpy
from credence.client.pictures import to_html
from credence.client.totals import GROUP, PREFIX, Totals
from credence.intervals import interval_columns

if TYPE_CHECKING:
    from numpy import ndarray


class Interval(NamedTuple):
    """Bounds per row; NaN where a conformal or adaptive one is unbounded."""

    lower: "ndarray"
    upper: "ndarray"


class Contributions(NamedTuple):
    """Rows × features: what each feature contributes, with the standard errors of all three.

    Of a classifier `mean` is the probability of the predicted class.
    """

    features: tuple[str, ...]
    mean: "ndarray"
    aleatoric: "ndarray"
    epistemic: "ndarray"
    mean_error: "ndarray"
    aleatoric_error: "ndarray"
    epistemic_error: "ndarray"


class Density(NamedTuple):
    """The predictive density of each row.

    Attributes:
        kind: `density` per unit of the target; `probability` of each of `values`, where only whole
            numbers occur.
        values: rows × points, increasing, with 99.8 % of the probability between the ends.
        density: rows × points.
        atoms: values that occur with a probability of their own, and this probability per row.
    """

    kind: str
    values: "ndarray"
    density: "ndarray"
    atoms: dict[float, "ndarray"]


class Decisions(NamedTuple):
    """What to do in each row, in the unit of the costs.

    Attributes:
        action: with the least expected cost: the name of an action, or a number.
        expected_cost: of the action.
        value_of_information: by how much it falls if the truth is known first.
        value_of_model_information: by how much it falls if the weights are known first, which is
            what more training data can save; None of forecasts.
        ask: whether asking a person costs less; None if the costs do not say what that costs.
    """

    action: "ndarray"
    expected_cost: "ndarray"
    value_of_information: "ndarray"
    value_of_model_information: "ndarray | None"
    ask: "ndarray | None"


@dataclass(frozen=True, repr=False)
class Prediction:
    """A model's predictions in the order of the rows; those of a forecast are for steps ahead.

    `table` has the columns of the service's Arrow response; `prediction["mean"]` is one of them
    as a numpy array.

    Attributes:
        classes: the class labels of a classifier, else None.
        restore: gives a table the form that the rows had.
        of_groups: the predictions of groups of series, by name; see `Totals.groups`.
    """

    table: Table
    classes: tuple[str | int | float | bool, ...] | None
    restore: Callable[[Table], Any]
    of_groups: "Mapping[str, Prediction]" = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        table: Table,
        classes: tuple[str | int | float | bool, ...] | None,
        restore: Callable[[Table], Any],
    ) -> "Prediction":
        """The prediction in a table of the service, whose last rows may be of groups of series."""
        if GROUP not in table.column_names:
            return cls(table, classes, restore)
        names = table.to_pylist(GROUP)
        count = names.count(None)
        groups = {}
        for name in dict.fromkeys(names[count:]):
            first = names.index(name)
            part = table.rows(first, first + names.count(name))
            groups[name] = cls(part, None, restore)
        return cls(table.rows(0, count), classes, restore, groups)

    def __len__(self) -> int:
        return self.table.num_rows

    def __repr__(self) -> str:
        rows = f"{len(self)} rows" if len(self) != 1 else "1 row"
        unlike = sum(map(bool, self.table.to_pylist("out_of_distribution")))
        about = f", {unlike} unlike those of training" if unlike else ""
        return f"<Prediction of {self.model} version {self.version}: {rows}{about}>"

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        return to_html(self)

    def __getitem__(self, name: str) -> "ndarray":
        """A column as an array.

        Raises:
            ValueError: there is no such column; the message names those that there are.
        """
        if name not in self.table.column_names:
            there = ", ".join(self.table.column_names)
            raise ValueError(f"the prediction of {self.model} has no {name!r}: it has {there}")
        return self.table.to_numpy(name)

    @property
    def model(self) -> str:
        """The model's name."""
        return self.table.metadata["model"]

    @property
    def version(self) -> int:
        """The version's number."""
        return int(self.table.metadata["version"])

    @property
    def samples(self) -> int:
        """How many weight draws were used."""
        return int(self.table.metadata["samples"])

    @property
    def seed(self) -> int:
        """The seed that gives the same prediction again."""
        return int(self.table.metadata["seed"])

    @property
    def id(self) -> str | None:
        """The identifier for feedback; None unless the prediction was made with `store=True`."""
        return self.table.metadata.get("id")

    @property
    def notes(self) -> list[str]:
        """What the service says about the rows of a file, such as cells that cannot be read."""
        return list(json.loads(self.table.metadata.get("notes", "[]")))

    @property
    def mean(self) -> "ndarray":
        """Predicted values; for a classifier probabilities, rows × classes."""
        return self["mean"] if self.classes is None else self.probabilities

    @property
    def median(self) -> "ndarray":
        """Values that the target is below or above with equal probability."""
        self._check_numbers()
        return self["median"]

    @property
    def std(self) -> "ndarray":
        """Standard deviation of the predictive distribution, in the target's unit."""
        return self._deviation("total")

    @property
    def aleatoric_deviation(self) -> "ndarray":
        """Standard deviation of the noise, in the target's unit: more data would not reduce it."""
        return self._deviation("aleatoric")

    @property
    def epistemic_deviation(self) -> "ndarray":
        """Standard deviation due to uncertain weights: more data would reduce it."""
        return self._deviation("epistemic")

    @property
    def mc_error(self) -> "ndarray":
        """Standard error of `mean` from finite sampling; NaN where it cannot be estimated."""
        return self["mc_error"] if self.classes is None else self._per_class("mc_error")

    @property
    def labels(self) -> "ndarray":
        """The most probable class of each row."""
        self._check_classes()
        return self["label"]

    @property
    def probabilities(self) -> "ndarray":
        """Rows × classes, in the order of `classes`."""
        return self._per_class("probability")

    @property
    def out_of_distribution(self) -> "ndarray":
        """True for rows unlike those of training: their prediction is a guess."""
        return self["out_of_distribution"]

    @property
    def ood_score(self) -> "ndarray":
        """The score that is compared with the threshold of the version's detector."""
        return self["ood_score"]

    @property
    def reasons(self) -> list[list[dict[str, Any]]]:
        """Why each row is unlike those of training, the strongest reason first; usual rows have [].

        `column`, `code`, `value`, `seen` and `text`; numbers and dates are texts here, as the
        columns of a row have several types. Empty for every row of a model of an earlier release.
        """
        if "reasons" not in self.table.column_names:
            return [[] for _ in range(len(self))]
        return [row or [] for row in self.table.to_pylist("reasons")]

    @property
    def abstained(self) -> "ndarray":
        """With `abstain_above`: True for rows that a person should decide."""
        return self["abstained"]

    @property
    def contributions(self) -> Contributions:
        """With `explain`: what each feature contributes to the mean and to both uncertainties.

        Raises:
            ValueError: the prediction was made without `explain=True`.
        """
        first = "contribution_"
        names = [n.removeprefix(first) for n in self.table.column_names if n.startswith(first)]
        if not names:
            raise ValueError("there are no contributions: predict with explain=True")
        parts = [
            numpy().column_stack([self[f"{error}{part}{first}{name}"] for name in names])
            for error in ("", "standard_error_")
            for part in ("", "aleatoric_", "epistemic_")
        ]
        return Contributions(tuple(names), *parts)

    @property
    def times(self) -> "ndarray":
        """The times of a forecast's steps ahead."""
        return self["time"]

    @property
    def series(self) -> "ndarray":
        """The name of each row's series, of a forecast of several: series after series.

        Raises:
            ValueError: the model has no key.
        """
        if "series" not in self.table.column_names:
            raise ValueError(f"{self.model} has no key: all rows are of one series")
        return self["series"]

    @property
    def steps(self) -> "ndarray":
        """How many steps ahead each row of a forecast is; 1 is the first."""
        if "step" in self.table.column_names:
            return self["step"]
        steps: ndarray = numpy().arange(1, len(self.times) + 1)
        return steps

    @property
    def draws(self) -> "ndarray":
        """With `return_draws`: samples × rows (× classes)."""
        np = numpy()
        draws: ndarray = np.moveaxis(np.asarray(self["draws"], dtype=float), 0, 1)
        return draws

    def interval(self, level: float = 0.9, kind: str = "credible") -> Interval:
        """Bounds that contain the target with probability `level`.

        Args:
            kind: `credible`, from the predictive distribution; `conformal`, from the errors on
                rows held out for calibration; or `adaptive`, conformal at a level that follows
                the labels sent since (predict with `interval_kinds=["adaptive"]`).

        Raises:
            ValueError: this level was not requested; the message names those that were.
        """
        prefix = "" if kind == "credible" else f"{kind}_"
        if f"{prefix}lower_{level}" not in self.table.column_names:
            there = interval_columns(self.table.column_names)
            known = ", ".join(f"{at} ({k})" for k, at in there) or "none"
            hint = f"predict with intervals=[{level}]"
            hint += ', interval_kinds=["adaptive"]' if kind == "adaptive" else ""
            raise ValueError(f"no {kind} interval of level {level}, there are: {known}; {hint}")
        return Interval(self[f"{prefix}lower_{level}"], self[f"{prefix}upper_{level}"])

    @property
    def adapted_levels(self) -> dict[float, float]:
        """The level at which each adaptive interval is given, by the level that was asked for."""
        levels = json.loads(self.table.metadata.get("adapted_levels", "{}"))
        return {float(level): adapted for level, adapted in levels.items()}

    def exceeds(self, threshold: float) -> "ndarray":
        """The probability that the target is above a threshold of the request.

        Raises:
            ValueError: this threshold was not requested; the message names those that were.
        """
        return self._asked("exceeds", float(threshold), "exceeds")

    def any_above(self, threshold: float) -> "ndarray":
        """The probability that a forecast is above a threshold of `exceeds` at some step so far.

        That of a series' last step is of the whole horizon.

        Raises:
            ValueError: this threshold was not requested, or this is no forecast.
        """
        return self._ever("any_above", threshold)

    def any_below(self, threshold: float) -> "ndarray":
        """The same of a value below the threshold."""
        return self._ever("any_below", threshold)

    def quantile(self, p: float) -> "ndarray":
        """The value that the target is at most with probability `p`, one of the request.

        Raises:
            ValueError: this probability was not requested; the message names those that were.
        """
        return self._asked("quantile", float(p), "quantiles")

    def density(self) -> Density:
        """The predictive density of each row.

        Raises:
            ValueError: it was not requested.
        """
        self._check_numbers()
        if "density" not in self.table.column_names:
            raise ValueError('no density; predict with density={"points": 64}')
        prefix = "density_atom_"
        names = [name for name in self.table.column_names if name.startswith(prefix)]
        atoms = {float(n.removeprefix(prefix)): self[n] for n in names if "mc_error" not in n}
        kinds = self.table.to_pylist("density_kind")
        values, density = (self[name] for name in ("density_values", "density"))
        return Density(kinds[0] if kinds else "density", values, density, atoms)

    @property
    def decisions(self) -> Decisions:
        """With `costs`: the action with the least expected cost.

        Raises:
            ValueError: the prediction was made without costs.
        """
        if "expected_cost" not in self.table.column_names:
            hint = "predict with costs={'over': 1, 'under': 4}, or with a matrix for classes"
            raise ValueError(f"the prediction of {self.model} has no decisions: {hint}")
        there = self.table.column_names
        return Decisions(
            *(self[name] for name in ("action", "expected_cost", "value_of_information")),
            *(self[n] if n in there else None for n in ("value_of_model_information", "ask")),
        )

    @property
    def totals(self) -> Totals:
        """With `totals`: sums of a forecast from its first step to each step.

        Raises:
            ValueError: the prediction was made without totals.
        """
        if f"{PREFIX}mean" not in self.table.column_names:
            hint = 'predict with totals={"exceeds": [500]}, or totals={}'
            raise ValueError(f"the prediction of {self.model} has no totals: {hint}")
        return Totals(self)

    @property
    def anomalies(self) -> Anomalies:
        """With `anomalies`: how improbable the newest values of each series are.

        Raises:
            ValueError: the prediction was made without anomalies.
        """
        if f"{ANOMALY}p_value" not in self.table.column_names:
            raise ValueError(
                f"the prediction of {self.model} has no anomalies: predict with anomalies=7"
            )
        return read_anomalies(self.table)

    @property
    def targets(self) -> tuple[str, ...]:
        """The names of the targets; () of a model of one."""
        return tuple(json.loads(self.table.metadata.get("targets", "[]")))

    def target(self, name: str) -> "Prediction":
        """The prediction of one of several targets, as if it had been asked alone.

        Raises:
            ValueError: the model has no such target; the message names those that it has.
        """
        if name not in self.targets:
            known = ", ".join(self.targets) or "one only"
            raise ValueError(f"{self.model} has no target {name!r}, but: {known}")
        part = self.table.under(f"target.{name}.")
        part.metadata = {k: v for k, v in part.metadata.items() if k != "targets"}
        return Prediction(part, None, self.restore)

    def joint(self, level: float = 0.9) -> dict[str, Interval]:
        """Bounds of each target, all of which contain it together with probability `level`.

        Raises:
            ValueError: the model has one target, or this level was not requested.
        """
        if not self.targets:
            raise ValueError(f"{self.model} has one target: see interval()")
        names = {
            t: [f"joint.{t}.{end}_{level}" for end in ("lower", "upper")] for t in self.targets
        }
        if names[self.targets[0]][0] not in self.table.column_names:
            raise ValueError(
                f"no joint intervals of level {level}: predict with intervals=[{level}]"
            )
        return {t: Interval(*(self[name] for name in both)) for t, both in names.items()}

    @property
    def joint_draws(self) -> dict[str, "ndarray"]:
        """With `return_draws`: samples × rows of each target; the k-th draws belong together."""
        np = numpy()
        each = {t: np.asarray(self[f"joint.{t}.draws"], dtype=float) for t in self.targets}
        return {target: values.T for target, values in each.items()}

    def sets(self, level: float = 0.9, kind: str = "credible") -> list[list[Any]]:
        """A set of classes per row that contains the true one with probability `level`.

        The most probable class is first, and in every set.

        Args:
            kind: `credible`, from the predicted probabilities, or `conformal`, from rows held out
                for calibration.

        Raises:
            ValueError: these sets were not requested, or this version has none of the kind.
        """
        self._check_classes()
        name = f"{'' if kind == 'credible' else f'{kind}_'}set_{level}"
        if name not in self.table.column_names:
            there = [n for n in self.table.column_names if n.startswith(("set_", "conformal_set_"))]
            known, hint = ", ".join(there) or "none", f"predict with set_level={level}"
            raise ValueError(f"no {kind} sets of level {level}, there are: {known}; {hint}")
        return self.table.to_pylist(name)

    def to_frame(self) -> Any:
        """All columns, in the form that the rows had; a pandas frame keeps its index."""
        return self.restore(self.table)

    def _asked(self, prefix: str, value: float, option: str) -> "ndarray":
        """The column of a threshold or of a quantile."""
        self._check_numbers()
        names = [n for n in self.table.column_names if n.startswith(f"{prefix}_")]
        if f"{prefix}_{value}" not in names:
            there = [n.removeprefix(f"{prefix}_") for n in names if not n.endswith("_mc_error")]
            hint = f"predict with {option}=[{value}]"
            raise ValueError(f"{option} has no {value}, but: {', '.join(there) or 'none'}; {hint}")
        return self[f"{prefix}_{value}"]

    def _ever(self, name: str, threshold: float) -> "ndarray":
        """The column of a threshold that a path passes at some step."""
        self.exceeds(threshold)
        return self[f"{name}_{float(threshold)}"]

    def _deviation(self, kind: str) -> "ndarray":
        self._check_numbers()
        deviation: ndarray = numpy().sqrt(self[f"{kind}_variance"])
        return deviation

    def _check_numbers(self) -> None:
        if self.classes is not None:
            raise ValueError(f"{self.model} predicts classes: see probabilities and the entropies")

    def _check_classes(self) -> None:
        if self.classes is None:
            raise ValueError(f"{self.model} predicts numbers: see mean, std and interval()")

    def _per_class(self, name: str) -> "ndarray":
        """Columns per class, in the order of the classes."""
        self._check_classes()
        names = [n for n in self.table.column_names if n.startswith(f"{name}_")]
        columns: ndarray = numpy().column_stack([self[n] for n in names])
        return columns
