"""A service with a small model of every task, for what is told of each on its card."""

from pathlib import Path

import numpy as np

from core.context import Context, open_context
from core.settings import load_settings
from models.config import ForecastConfig, ModelConfig, RecurrentConfig, TrainingConfig
from tests.app.running import class_columns, publish, publish_as, regression_columns

TASKS = ("price", "tree", "sales", "lines")
BRIEF = TrainingConfig(epochs=10, fine_tune_epochs=1)


def publish_all(data_dir: Path) -> None:
    """A regression, a classification, a forecast and a language model, each with a variant."""
    context = open_context(load_settings(data_dir=data_dir))
    publish(context, "price", regression_columns(), target="price", alias="champion")
    publish(context, "tree", class_columns(), target="tree", features=["x", "y", "image"])
    _publish_forecast(context)
    _publish_language_model(context, data_dir / "lines.txt")
    context.close()


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


def _publish_language_model(context: Context, path: Path) -> None:
    random = np.random.default_rng(0)
    lines = [" ".join(random.choice(list("abcdef"), random.integers(1, 8))) for _ in range(120)]
    path.write_text("\n".join(lines))
    dataset, _ = context.datasets.add("lines", "text/plain", path)
    network = RecurrentConfig(kind="gru", hidden=(8,))
    config = ModelConfig(target="text", network=network, training=BRIEF, pruning=(0.5,))
    publish_as(context, "lines", dataset, config)
