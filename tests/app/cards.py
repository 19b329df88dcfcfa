"""A service with a small model of every task, for what is told of each on its card."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from core.context import Context, open_context
from core.settings import load_settings
from models.config import ForecastConfig, Json, ModelConfig, RecurrentConfig, TrainingConfig
from models.model import TrainedModel
from tests.app.running import class_columns, publish, publish_as, regression_columns

TASKS = ("price", "tree", "sales", "lines")
BRIEF = TrainingConfig(epochs=10, fine_tune_epochs=1)


def publish_all(data_dir: Path) -> None:
    """A regression, a classification, a forecast and a language model, each with a variant."""
    context = open_context(load_settings(data_dir=data_dir))
    columns = regression_columns()
    publish(context, "price", columns, target="price", alias="champion", change=with_selection)
    publish(context, "tree", class_columns(), target="tree", features=["x", "y", "image"])
    _publish_forecast(context)
    _publish_series(context)
    _publish_language_model(context, data_dir / "lines.txt")
    context.close()


def with_selection(model: TrainedModel) -> TrainedModel:
    """The model, as if training had compared three candidates."""
    candidates = [
        candidate("KL 0.05", -1.5, -0.5, kept=False, kl=0.05),
        candidate("KL 1", -1.0, 0.0, kept=True, kl=1.0, width=[20, 20]),
        candidate("KL 0.3", -1.05, -0.05, kept=True, kl=0.3),
    ]
    note = "KL 0.3 is within a standard error of KL 1."
    selection = {"candidates": candidates, "metric": "log_likelihood", "rows": 96, "note": note}
    return replace(model, selection=selection)


def candidate(name: str, score: float, difference: float, *, kept: bool, **settings: Any) -> Json:
    """A candidate of a selection; its errors are 0.2 and 0.1."""
    errors = {"standard_error": 0.2, "difference_error": 0.1}
    told = {"name": name, "settings": settings, "score": score, "difference": difference}
    return told | errors | {"kept": kept}


def _publish_forecast(context: Context) -> None:
    t, random = np.arange(60), np.random.default_rng(0)
    values = 50 * np.exp(0.02 * t + 0.2 * np.cos(np.pi * t / 2) + 0.02 * random.normal(size=60))
    quarters = (np.datetime64("2005-01", "M") + 3 * t).astype(str).tolist()
    columns = {"quarter": quarters, "sales": values.tolist()}
    dataset, _ = context.datasets.add_columns("sales", columns)
    config = ModelConfig(
        target="sales",
        task="forecasting",
        forecast=ForecastConfig(time="quarter"),
        network=RecurrentConfig(kind="rnn", hidden=(4,)),
        training=BRIEF,
        pruning=(0.5,),
    )
    publish_as(context, "sales", dataset, config)


def _publish_series(context: Context) -> None:
    """Two shops, of which one has a name that is HTML, and a column that is not read."""
    random = np.random.default_rng(0)
    days = np.datetime64("2025-01-01") + np.arange(60)
    values = {"<b>south": 90 + random.normal(size=60), "north": 20 + random.normal(size=60)}
    columns = {
        "shop": [shop for shop in values for _ in days],
        "day": days.astype(str).tolist() * 2,
        "sold": np.concatenate(list(values.values())).tolist(),
        "rain": random.exponential(size=120).tolist(),
    }
    dataset, _ = context.datasets.add_columns("shops", columns)
    config = ModelConfig(
        target="sold",
        task="forecasting",
        forecast=ForecastConfig(time="day", key="shop", horizon=3, classics=False),
        network=RecurrentConfig(kind="rnn", hidden=(4,)),
        training=BRIEF,
        pruning=(),
    )
    publish_as(context, "shops", dataset, config)


def _publish_language_model(context: Context, path: Path) -> None:
    random = np.random.default_rng(0)
    lines = [" ".join(random.choice(list("abcdef"), random.integers(1, 8))) for _ in range(120)]
    path.write_text("\n".join(lines))
    dataset, _ = context.datasets.add("lines", "text/plain", path)
    network = RecurrentConfig(kind="gru", hidden=(8,))
    config = ModelConfig(target="text", network=network, training=BRIEF, pruning=(0.5,))
    publish_as(context, "lines", dataset, config)
