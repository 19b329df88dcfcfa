"""The tool that predicts."""

from itertools import islice
from math import sqrt
from typing import Annotated, Any

from pydantic import Field

from credence.agents.brief import present
from credence.agents.tool import (
    ModelName,
    Parsed,
    Rows,
    Tool,
    VersionReference,
)
from credence.client import AsyncClient
from credence.types import Json

MAX_CLASSES = 3  # the most probable ones of a row
TOP_FEATURES = 3


class Predict(Tool):
    """Predict rows: a value or a class, how uncertain it is, and why.

    The uncertainty has two parts: `aleatoric` is the noise in the data, which no training removes;
    `epistemic` is what the model does not know, which more data would remove. `unlike_training`
    marks rows that the model has seen nothing like: do not rely on them; `reasons` says why.
    """

    model: ModelName
    version: VersionReference = None
    rows: Annotated[
        Rows,
        Field(
            description="records with every feature, null if missing: see model_card. For a "
            "forecast: the history in the order of time"
        ),
    ]
    level: Annotated[
        float, Field(gt=0, lt=1, description="probability that the interval has the true value")
    ] = 0.9
    abstain_above: Annotated[
        float | None,
        Field(
            ge=0,
            description="marks rows that a person should decide: those whose standard deviation "
            "(of classes: entropy in nats) is greater. model_card suggests values",
        ),
    ] = None
    explain: Annotated[
        bool, Field(description="add the features that move the prediction most")
    ] = False
    exceeds: Annotated[
        tuple[float, ...],
        Parsed,
        Field(max_length=16, description="thresholds: the probability that the value is above"),
    ] = ()
    horizon: Annotated[int | None, Field(ge=1, description="of a forecast: steps ahead")] = None
    store: Annotated[
        bool, Field(description="keep the request, to send the true values by its id later")
    ] = False

    async def run(self, client: AsyncClient) -> Json:
        """A record per row, or per step of a forecast."""
        answer: Any = await client.submit_predict(self.request())
        rows = [_row(answer, index) for index in range(len(answer["mean"]))]
        return present(
            model=answer["model"],
            version=answer["version"],
            interval=None if "classes" in answer else _kind_of_interval(answer, self.level),
            other_targets=list(answer.get("targets", {}))[1:],
            notes=answer.get("notes"),
            prediction=answer.get("id"),
        ) | {"rows": rows}

    def request(self) -> Json:
        """The body of `POST /predict`."""
        given = present(
            version=self.version,
            exceeds=self.exceeds,
            horizon=self.horizon,
        )
        given |= {"explain": True} if self.explain else {}
        given |= {"store": True} if self.store else {}
        if self.abstain_above is not None:
            given["abstain_above"] = self.abstain_above
        return {"model": self.model, "inputs": self.rows, "intervals": [self.level]} | given


def _kind_of_interval(answer: Any, level: float) -> str:
    kind = _best_interval(answer)["kind"]
    checked = "checked on rows held out" if kind == "conformal" else "as the model believes"
    return f"{kind}: has the true value with probability {level:g}, {checked}"


def _best_interval(answer: Any) -> Any:
    """The conformal interval, or the credible one if no rows checked it."""
    conformal = [one for one in answer["intervals"] if one["kind"] == "conformal"]
    has_bounds = conformal and None not in (*conformal[0]["lower"], *conformal[0]["upper"])
    return conformal[0] if has_bounds else answer["intervals"][0]


def _row(answer: Any, index: int) -> Json:
    """What is predicted for a row; lists that an answer lacks are left out."""

    def of(name: str) -> Any:
        values = answer.get(name)
        return values[index] if values is not None and index < len(values) else None

    found = present(
        row=None if "times" in answer else index,
        time=of("times"),
        series=of("series"),
        abstained=of("abstained"),
        unlike_training=of("out_of_distribution"),
        reasons=[reason["text"] for reason in of("reasons") or []],
    )
    value = _class(answer, index) if "classes" in answer else _number(answer, index)
    exceeds = {
        f"{one['threshold']:g}": one["probability"][index] for one in answer.get("exceeds", [])
    }
    return (
        found
        | value
        | present(
            probability_above=exceeds, moved_most_by=_moved(answer.get("contributions"), index)
        )
    )


def _number(answer: Any, index: int) -> Json:
    interval = _best_interval(answer)
    parts = {
        f"{name}_std": sqrt(max(0.0, answer["variance"][name][index] or 0.0))
        for name in ("aleatoric", "epistemic")
    }
    bounds = [interval["lower"][index], interval["upper"][index]]
    return {"mean": answer["mean"][index], "interval": bounds} | parts


def _class(answer: Any, index: int) -> Json:
    pairs = zip(answer["classes"], answer["probabilities"][index], strict=True)
    best = islice(sorted(pairs, key=lambda pair: -pair[1]), MAX_CLASSES)
    entropy = {f"{k}_entropy": answer["entropy"][k][index] for k in ("aleatoric", "epistemic")}
    return {
        "label": answer["labels"][index],
        "probabilities": {str(k): p for k, p in best},
    } | entropy


def _moved(contributions: Any, index: int) -> Json:
    """The features with the greatest contributions; of classes, to the one that moves most."""
    if contributions is None:
        return {}
    found = {
        name: max(value, key=abs) if isinstance(value, list) else value
        for name, value in zip(contributions["features"], contributions["mean"][index], strict=True)
    }
    return dict(sorted(found.items(), key=lambda pair: -abs(pair[1]))[:TOP_FEATURES])
