"""What is said of a table does not depend on the units of its columns."""

from functools import partial
from pathlib import Path

import numpy as np
import pytest

from core.context import open_context
from core.datasets.findings.target_checks import check_target
from core.settings import load_settings


@pytest.mark.parametrize("unit", [1e-9, 1e-4, 1e9])
def test_findings_do_not_depend_on_the_unit(tmp_path: Path, unit: float) -> None:
    context = open_context(load_settings(data_dir=tmp_path))
    found = []
    for factor in (1.0, unit):
        random = np.random.default_rng(0)
        size, noise = random.normal(size=(2, 400))
        columns = {
            "size": size.tolist(),
            "scaled": (factor * random.gamma(2.0, size=400)).tolist(),
            "width": (factor * np.round(50 + random.random(400), 6)).tolist(),
            "copy": (factor * (3 * size + noise)).tolist(),
            "y": (factor * (3 * size + noise)).tolist(),
        }
        dataset, _ = context.datasets.add_columns(f"unit-{factor}", columns)
        load = partial(context.datasets.columns, dataset.id)
        findings = [*dataset.findings, *check_target(dataset, "y", load)]
        said = [(one.code, one.column, one.severity, one.rows) for one in findings]
        found.append(said + [(one.name, one.type, one.use) for one in dataset.columns])
    context.close()
    assert found[0] == found[1]
    assert ("leak", "copy") in [one[:2] for one in found[0]]
