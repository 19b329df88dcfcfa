"""Many models of ordinary tables on one replica: memory, and milliseconds until they answer.

    python -m benchmarks.many_models [--models 1000]

A model as the recipe often chooses it for a table (four networks 264-64-64-9, 400 rows, 0.8 MB on
disk) is imported as so many models. Each is asked twice for one row: at first the replica loads it.
"""

import argparse
import statistics
import tempfile
import time
from pathlib import Path

import httpx
import psutil

from benchmarks import results
from benchmarks.http.process import Server
from benchmarks.ratios.engine import inputs, ordinary
from benchmarks.replica import serving
from core.registry.archives import pack
from models.artifact.files import write_model


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=int, default=1000)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        write_model(ordinary(), Path(folder) / "model")
        archive = b"".join(pack(Path(folder) / "model"))
    with serving("api") as server:
        found = measure(server, archive, arguments.models)
    results.save("many_models", {"machine": results.machine(), **found})
    print(table(found))


def measure(server: Server, archive: bytes, count: int) -> dict[str, float]:
    """Import the models, and ask each twice."""
    names = [f"table-{i}" for i in range(count)]
    with httpx.Client(base_url=f"http://127.0.0.1:{server.port}", timeout=60) as client:
        for name in [*names, "other"]:
            publish(client, name, archive)
        ask(client, "other")  # the first load also builds the schema
        before = resident_mib(server)
        first = [ask(client, name) for name in names]
        again = [ask(client, name) for name in names]
    return {
        "models": count,
        "mib_before": before,
        "mib": resident_mib(server),
        "first_ms": statistics.median(first),
        "again_ms": statistics.median(again),
    }


def publish(client: httpx.Client, name: str, archive: bytes) -> None:
    headers = {"Content-Type": "application/x-tar"}
    client.post(f"/models/{name}/versions", content=archive, headers=headers).raise_for_status()


def ask(client: httpx.Client, name: str) -> float:
    """Milliseconds of one row with 100 samples."""
    row = {column: values.tolist() for column, values in inputs(1).items()}
    started = time.perf_counter()
    client.post("/predict", json={"model": name, "inputs": row, "samples": 100}).raise_for_status()
    return 1000 * (time.perf_counter() - started)


def resident_mib(server: Server) -> float:
    return float(psutil.Process(server.tree()[0].pid).memory_info().rss) / 2**20


def table(found: dict[str, float]) -> str:
    headers = ["models", "memory before, MiB", "with all loaded, MiB", "each, MiB"]
    headers += ["first answer, ms", "second answer, ms", "difference: loading, ms"]
    loading = found["first_ms"] - found["again_ms"]
    each = (found["mib"] - found["mib_before"]) / found["models"]
    values = [found["mib_before"], found["mib"], each]
    values += [found["first_ms"], found["again_ms"], loading]
    return results.markdown(headers, [[found["models"], *map(results.figure, values)]])


if __name__ == "__main__":
    main()
