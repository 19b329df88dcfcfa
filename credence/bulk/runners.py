"""Who predicts the parts: this process, tasks of Ray, or tasks of Spark.

Each part is a task of its own that writes its file, so that all of them resume in the same way.
"""

from collections.abc import Sequence
from functools import partial
from importlib import import_module
from typing import Any

from core.exceptions import Unavailable
from credence.bulk.parts import Part
from credence.bulk.scoring import Run, Runner, Show


def local(run: Run, parts: Sequence[Part], show: Show) -> None:
    """One part after the other in this process."""
    for part in parts:
        run.predict(part, show)


def ray(run: Run, parts: Sequence[Part], show: Show) -> None:
    """A task of Ray per part; on the cluster of `RAY_ADDRESS`, or else on this machine."""
    engine: Any = _engine("ray")
    engine.init(ignore_reinit_error=True, log_to_driver=False)
    task, shared = engine.remote(_predict), engine.put(run)
    waiting = [task.remote(shared, part) for part in parts]
    while waiting:
        (done,), waiting = engine.wait(waiting)
        show(engine.get(done))


def spark(run: Run, parts: Sequence[Part], show: Show) -> None:
    """A task of Spark per part; with the session's own settings, or else on this machine.

    Raises:
        Unavailable: a part failed as often as the session allows.
    """
    engine: Any = _engine("pyspark.sql")
    context = engine.SparkSession.builder.getOrCreate().sparkContext
    if parts:
        try:
            rows = context.parallelize(parts, len(parts)).map(partial(_predict, run)).collect()
        except _engine("py4j.protocol").Py4JJavaError as error:
            reason = str(error.java_exception.getMessage()).partition("\n")[0]
            message = (
                f"Spark ended early; the same command predicts the parts that are missing: {reason}"
            )
            raise Unavailable(message) from error
        show(sum(rows))


RUNNERS: dict[str, Runner] = {"local": local, "ray": ray, "spark": spark}


def _predict(run: Run, part: Part) -> int:
    return run.predict(part)


def _engine(name: str) -> Any:
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        package = name.partition(".")[0]
        raise ModuleNotFoundError(f"{package} is not installed: pip install {package}") from error
