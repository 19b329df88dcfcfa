"""Trains the models of the golden answers, and records what they answer.

    python -m tests.models.golden.make CASE…            train, store and record; without CASE all
    python -m tests.models.golden.make --answers CASE…  only record what the stored models answer

The models stay as this code stored them: they also show that artifacts of earlier code still load.
Record answers again only if they are meant to change, and say in the changelog why.
"""

import argparse
import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import orjson
from pydantic import TypeAdapter

from core.inputs.records import decode_columns, read_rows
from core.predictions.document import to_document
from models.artifact.files import read_model, write_model
from models.config import (
    BBBConfig,
    ConvolutionalConfig,
    CyclicalSGLDConfig,
    DropoutConfig,
    EnsembleConfig,
    FeatureConfig,
    ForecastConfig,
    LanguageConfig,
    LaplaceConfig,
    LikelihoodConfig,
    MAPConfig,
    MetropolisConfig,
    MLEConfig,
    MLPConfig,
    ModelConfig,
    RecurrentConfig,
    SGLDConfig,
    SupportConfig,
    SWAGConfig,
    TrainingConfig,
)
from models.evaluation.adaptive import Adapted
from models.features.columns import Columns
from models.joint.fitting import train_joint
from models.joint.model import JointModel
from models.model import TrainedModel
from models.prediction.compiled.compiler import compiler
from models.prediction.options import PredictOptions
from models.tabular.model import TabularModel
from models.training.recipe import resolve
from models.training.train import TrainingRun, train
from tests.models.training.fitting import profile, types_of

Json = dict[str, Any]
ORJSON = orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_PASSTHROUGH_DATACLASS


def ask(model: TrainedModel, request: Json) -> Json:
    """The answer of `POST /predict`, as the service makes it: JSON goes in, and JSON comes out.

    Args:
        request: `adapted` in it is what labels have taught.
    """
    given = dict(request)
    inputs, future, adapted = (given.pop(name, None) for name in ("inputs", "future", "adapted"))
    options = model.resolve(TypeAdapter(PredictOptions).validate_python(given))
    if adapted is not None:
        options = replace(options, adapted=tuple(Adapted(**one) for one in adapted))
    columns = read_rows(inputs).decode(model.inputs, model.unread)
    ahead = None if future is None else decode_columns(future, model.future_inputs)
    prediction = model.predict_rows(model.read(columns, ahead, options), options)
    document = to_document(model.with_reasons(prediction, columns))
    return dict(json.loads(orjson.dumps(document, option=ORJSON, default=asdict)))


@contextmanager
def by(backend: str) -> Iterator[None]:
    """Predict by "kernels", once they are compiled, or by "torch" alone."""
    if backend == "kernels":
        assert compiler().wait(), "the kernels cannot be compiled"
        yield
    else:
        with patch.object(compiler(), "kernels", None):
            yield


HERE = Path(__file__).parent
ARTIFACTS, ANSWERS = HERE / "artifacts", HERE / "answers"
ROWS = 120
TINY = MLPConfig(hidden=(5,))
QUICK = TrainingConfig(
    epochs=12, batch_size=32, learning_rate=0.02, fine_tune_epochs=1, background=16
)
DIGITS = 8  # significant ones of a recorded number
WHOLE = {
    "heteroscedastic",
    "three_classes",
    "mixed",
    "race_numbers",
    "race_process",
}  # the others store less


# Data. `x` and `kind` explain the target; both may be missing.


def table(seed: int = 0) -> Columns:
    random = np.random.default_rng(seed)
    x, kind = random.normal(size=ROWS), random.integers(0, 3, ROWS)
    x[::17] = np.nan
    names = np.array(["oak", "ash", "elm", None], dtype=object)
    return {"x": x, "kind": names[np.where(np.arange(ROWS) % 19 == 5, 3, kind)]}


def signal(columns: Columns) -> np.ndarray:
    """What the columns say about the target."""
    return np.nan_to_num(columns["x"]) + 0.7 * (columns["kind"] == "oak")


def numbers(of: Callable[[np.ndarray, np.random.Generator], np.ndarray]) -> Columns:
    """The table, whose target is a function of the signal and of noise."""
    columns = table()
    return columns | {"y": of(signal(columns), np.random.default_rng(1))}


def plain() -> Columns:
    return numbers(lambda mean, random: 20 + 5 * mean + random.normal(size=ROWS))


def skewed() -> Columns:
    return numbers(lambda mean, random: np.exp(1 + 0.5 * mean + 0.3 * random.normal(size=ROWS)))


def shares() -> Columns:
    return numbers(lambda mean, random: 1 / (1 + np.exp(-mean - random.logistic(size=ROWS) / 3)))


def counts() -> Columns:
    return numbers(lambda mean, random: random.poisson(np.exp(0.5 + 0.5 * mean)).astype(float))


def rain() -> Columns:
    """Many rows are exactly 0."""
    return numbers(lambda mean, random: np.maximum(mean + random.normal(size=ROWS), 0.0))


def labels(names: tuple[str, ...]) -> Columns:
    columns, random = table(), np.random.default_rng(2)
    score = signal(columns) + 0.5 * random.normal(size=ROWS)
    ranks = np.searchsorted(np.linspace(-0.5, 0.9, len(names) - 1), score)
    return columns | {"y": np.array(names, dtype=object)[ranks]}


def two_classes() -> Columns:
    return labels(("no", "yes"))


def three_classes() -> Columns:
    return labels(("low", "mid", "high"))


def mixed() -> Columns:
    """A date, a text, a truth value, a category and a number with holes; shops are groups."""
    columns, random = table(), np.random.default_rng(3)
    day = np.datetime64("2024-01-01", "us") + np.arange(ROWS) * np.timedelta64(3, "D")
    words = np.array(["small red house", "large house by the lake", "red barn"], dtype=object)
    text = words[random.integers(0, 3, ROWS)]
    sunny = np.array([1.0, 0.0, np.nan])[random.integers(0, 3, ROWS)]
    shop = np.array(["north", "south"], dtype=object)[random.integers(0, 2, ROWS)]
    known = {"day": day, "text": text, "sunny": sunny, "shop": shop}
    y = signal(columns) + (sunny == 1) + 0.3 * random.normal(size=ROWS)
    return columns | known | {"y": y}


def pair() -> Columns:
    columns, random = table(), np.random.default_rng(4)
    noise = random.multivariate_normal([0, 0], [[1, 0.8], [0.8, 1]], ROWS)
    butter = 10 - 2 * signal(columns) + noise[:, 1]
    return columns | {"y": signal(columns) + 0.5 * noise[:, 0], "butter": butter}


def images() -> Columns:
    random = np.random.default_rng(5)
    image, names = random.normal(size=(ROWS, 4, 4)), np.array(["dark", "light"], dtype=object)
    light = (np.arange(ROWS) % 2).astype(int)
    return {"image": (image + light[:, None, None]).astype(np.float32), "y": names[light]}


def wide() -> Columns:
    a, b = np.random.default_rng(6).normal(size=(2, 400))
    return {"a": a, "b": b, "y": a + 0.5 * b + 0.1 * np.random.default_rng(7).normal(size=400)}


def waves() -> Columns:
    """A smooth function with a hole, above which the race puts its networks."""
    columns, random = table(), np.random.default_rng(12)
    x = 1.5 * columns["x"] + np.sign(columns["x"])
    y = 5 + 2 * np.sin(3 * np.nan_to_num(x)) + 0.7 * (columns["kind"] == "oak")
    return columns | {"x": x, "y": y + 0.2 * random.normal(size=ROWS)}


def months(count: int) -> np.ndarray:
    return (np.datetime64("2015-01", "M") + np.arange(count)).astype("datetime64[us]")


def sales() -> Columns:
    """One series that grows, with a season of a year."""
    t, random = np.arange(72), np.random.default_rng(8)
    level = 100 * np.exp(0.01 * t + 0.3 * np.sin(2 * np.pi * t / 12))
    return {"month": months(72), "y": level * np.exp(0.03 * random.normal(size=72))}


def shops() -> Columns:
    """Three series with a region and a price that is known ahead."""
    t, random = np.arange(40), np.random.default_rng(9)
    price = 2 + 0.5 * random.normal(size=(3, 40))
    y = 10 + np.arange(3)[:, None] + 2 * np.sin(2 * np.pi * t / 4) - price
    names = [np.repeat(np.array(each, dtype=object), 40) for each in ("abc", ("n", "s", "n"))]
    return {
        "time": np.tile(t.astype(float), 3),
        "shop": np.repeat(np.array(list("abc"), dtype=object), 40),
        "region": names[1],
        "price": price.ravel(),
        "y": (y + 0.5 * random.normal(size=(3, 40))).ravel(),
    }


def visits() -> Columns:
    """Two series of small counts, with zeros."""
    random = np.random.default_rng(10)
    rate = 0.8 + 0.6 * np.sin(2 * np.pi * np.arange(60) / 7)
    y = random.poisson(np.stack([rate, 1.5 * rate])).astype(float)
    return {
        "time": np.tile(np.arange(60.0), 2),
        "shop": np.repeat(np.array(["a", "b"], dtype=object), 60),
        "y": y.ravel(),
    }


def lines() -> Columns:
    random = np.random.default_rng(11)
    words = [" ".join(random.choice(list("abcde"), random.integers(1, 8))) for _ in range(60)]
    return {"y": np.array([*words, None], dtype=object)[:-1]}


# Cases: the data, and what the configuration gives beside the target.

WINDOWS = ForecastConfig(time="time", key="shop", horizon=3, context=4, season=4)
SERIES = TrainingConfig(epochs=10, learning_rate=0.02, patience=30, fine_tune_epochs=1)
RNN = RecurrentConfig(kind="rnn", hidden=(4,))


def shape(kind: Any, scale: Any = None, components: int | None = None) -> Json:
    return {"likelihood": LikelihoodConfig(kind=kind, scale=scale, components=components)}


CASES: dict[str, tuple[Callable[[], Columns], Json]] = {
    # likelihoods, by the default method
    "homoscedastic": (plain, {"likelihood": "homoscedastic", "pruning": (0.5,)}),
    "heteroscedastic": (plain, {"likelihood": "heteroscedastic", "pruning": (0.5,)}),
    "gaussian_log": (skewed, shape("gaussian", "log")),
    "mixture_identity": (plain, shape("mixture", "identity") | {"pruning": (0.5,)}),
    "mixture_log": (skewed, shape("mixture", "log")),
    "mixture_power": (skewed, shape("mixture", "power", 2)),
    "mixture_logit": (
        shares,
        shape("mixture", "logit") | {"support": SupportConfig(lower=0.0, upper=1.0)},
    ),
    "mixture_atom": (rain, shape("mixture") | {"support": SupportConfig(lower=0.0)}),
    "count": (counts, shape("count")),
    "two_classes": (two_classes, {"pruning": (0.5,)}),
    "three_classes": (three_classes, {"pruning": (0.5,)}),
    # methods
    "bbb_weight": (plain, {"method": BBBConfig(estimator="weight"), "pruning": (0.5,)}),
    "mc_dropout": (plain, {"method": DropoutConfig(kind="mc_dropout", rate=0.1)}),
    "mc_dropout_classes": (three_classes, {"method": DropoutConfig(kind="mc_dropout", rate=0.1)}),
    "map": (plain, {"method": MAPConfig(kind="map")}),
    "mle": (three_classes, {"method": MLEConfig(kind="mle")}),
    "sgld": (
        plain,
        {"method": SGLDConfig(kind="sgld", chains=2, draws=6, burn_in=20, thinning=3)},
    ),
    "csgld": (
        three_classes,
        {"method": CyclicalSGLDConfig(kind="csgld", chains=2, cycles=2, cycle_steps=20, draws=3)},
    ),
    "metropolis": (
        plain,
        {"method": MetropolisConfig(kind="metropolis", chains=2, draws=6, burn_in=30, thinning=5)},
    ),
    "swag": (plain, {"method": SWAGConfig(kind="swag", epochs=6, rank=4)}),
    "laplace_last_kron": (plain, {"method": LaplaceConfig(kind="laplace")}),
    "laplace_last_full": (
        three_classes,
        {"method": LaplaceConfig(kind="laplace", hessian="full")},
    ),
    "laplace_last_diagonal": (plain, {"method": LaplaceConfig(kind="laplace", hessian="diagonal")}),
    "laplace_all_kron": (plain, {"method": LaplaceConfig(kind="laplace", over="all")}),
    "laplace_all_classes": (three_classes, {"method": LaplaceConfig(kind="laplace", over="all")}),
    "members_bbb": (plain, shape("mixture", "identity") | {"members": 3}),
    "members_classes": (two_classes, {"members": 3}),
    "ensemble": (plain, {"method": EnsembleConfig(kind="ensemble", members=3)}),
    # recipes, inputs and tasks
    "race_numbers": (skewed, {"network": MLPConfig(), "training": None, "pruning": (0.5,)}),
    "race_process": (waves, {"network": MLPConfig(), "training": None, "pruning": (0.5,)}),
    "race_classes": (three_classes, {"network": MLPConfig(), "training": None, "pruning": ()}),
    "units": (wide, {"network": MLPConfig(hidden=(128, 128)), "pruning": (0.5,)}),
    "mixed": (mixed, {"training": replace(QUICK, groups="shop")}),
    "targets": (pair, {"pruning": (0.5,)}),
    "cnn": (images, {"network": ConvolutionalConfig(channels=(2,), hidden=(4,))}),
    "gru": (images, {"network": RecurrentConfig(kind="gru", hidden=(4,)), "pruning": (0.5,)}),
    "language": (lines, {"network": RecurrentConfig(kind="lstm", hidden=(4,)), "pruning": (0.5,)}),
    "series": (sales, {"forecast": ForecastConfig(time="month", horizon=4), "pruning": (0.5,)}),
    "series_alone": (
        sales,
        {
            "forecast": ForecastConfig(time="month", horizon=4, season=12, classics=False),
            "method": EnsembleConfig(kind="ensemble", members=2),
        },
    ),
    "panel": (
        shops,
        {
            "forecast": replace(WINDOWS, static=("region",)),
            "features": (
                FeatureConfig(name="region", type="category"),
                FeatureConfig(name="price", type="number"),
            ),
        },
    ),
    "panel_counts": (visits, {"forecast": replace(WINDOWS, season=7, transform="counts")}),
}


def configure(name: str, columns: Columns, target: str = "y") -> ModelConfig:
    given = {"target": target, "network": TINY, "training": QUICK, "pruning": ()} | CASES[name][1]
    if given["training"] is None:
        given["training"] = TrainingConfig(effort="quick", fine_tune_epochs=1, background=16)
    if not isinstance(given.get("method", BBBConfig()), BBBConfig):
        given["pruning"] = None
    if name == "language":
        given |= {"language": LanguageConfig(steps=6), "training": TrainingConfig(epochs=2)}
    if "forecast" in given:
        given |= {"task": "forecasting", "network": RNN, "training": SERIES}
    types = column_types(columns)
    profiles = [profile(one, values, types[one]) for one, values in columns.items()]
    return resolve(
        ModelConfig(**given),
        profiles,
        len(columns[target]),
        lambda names: {one: columns[one] for one in names},
    )


def column_types(columns: Columns) -> dict[str, str]:
    """The stored type of each column; `y` alone is the text of a language model."""
    given = {"sunny": "boolean", "text": "text"} | ({"y": "text"} if set(columns) == {"y"} else {})
    return types_of(columns) | {name: given[name] for name in columns if name in given}


def build(name: str) -> TrainedModel:
    """Train a case's model."""
    columns = CASES[name][0]()
    types = column_types(columns)
    if name != "targets":
        return train(columns, types, configure(name, columns))
    configs = []
    for target, other in (("y", "butter"), ("butter", "y")):
        own = {one: values for one, values in columns.items() if one != other}
        configs.append(configure(name, own, target))
    return train_joint(columns, types, configs, TrainingRun())


def brief(name: str, model: TrainedModel) -> TrainedModel:
    """Without what only the card shows and, in most cases, what tells unlike rows."""
    model = replace(model, history=(), card={}, notes=())
    if name in WHOLE:
        return model
    if isinstance(model, JointModel):
        return model.with_members(brief(name, one) for one in model.members)
    gone: Json = {"metrics": {}, "promise": None}
    if isinstance(model, TabularModel) and model.surprise is not None:
        model, gone = replace(model, surprise=None), gone | {"detector": None}
    variants = model.variants_by_prune.items()
    return model.with_variants({prune: replace(one, **gone) for prune, one in variants})


def requests(name: str) -> list[Json]:
    """What was asked when the answers were recorded; a new case gets the requests of one like it.

    `answers/NAME.json` is a list of {"request", "answer"}, of which this reads the requests alone.
    """
    return [line["request"] for line in json.loads((ANSWERS / f"{name}.json").read_text())]


def rounded(value: Any) -> Any:
    """JSON whose numbers have `DIGITS` digits."""
    match value:
        case float():
            return float(f"{value:.{DIGITS}g}")
        case list():
            return [rounded(one) for one in value]
        case dict():
            return {name: rounded(one) for name, one in value.items()}
    return value


def record_answers(name: str) -> None:
    """Write what the stored model answers, one request a line."""
    model = read_model(ARTIFACTS / name)
    with by("torch"):
        found = [
            json.dumps({"request": request, "answer": rounded(ask(model, request))})
            for request in requests(name)
        ]
    (ANSWERS / f"{name}.json").write_text("[\n" + ",\n".join(found) + "\n]\n")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--answers", action="store_true", help="do not train")
    parser.add_argument("cases", nargs="*", default=list(CASES))
    given = parser.parse_args()
    for name in given.cases:
        if not given.answers:
            model = brief(name, build(name))
            shutil.rmtree(ARTIFACTS / name, ignore_errors=True)
            write_model(model, ARTIFACTS / name)
        record_answers(name)


if __name__ == "__main__":
    main()
