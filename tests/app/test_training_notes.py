"""Nothing about target and features is decided silently: jobs say it."""

import httpx
import numpy as np

from tests.app.running import Service

ROWS = 200
rng = np.random.default_rng(0)
X, Z = rng.normal(size=(2, ROWS))
Y = X + rng.normal(size=ROWS)


def notes(own: Service, columns: dict[str, list[object]], **body: object) -> list[str]:
    given = {"model": "m", "target": "y", "data": {"columns": columns}, **body}
    answer: httpx.Response = own.post("/train", given)
    assert answer.status_code == 202, answer.text
    job = answer.json()
    assert own.http.get(f"/jobs/{job['id']}").json()["notes"] == job["notes"]
    assert "notes" not in job["request"]
    found: list[str] = job["notes"]
    return found


def test_a_setting_that_turns_off_the_search_is_named(own: Service) -> None:
    columns: dict[str, list[object]] = {"x": X.tolist(), "y": Y.tolist()}
    (note,) = notes(own, columns, training={"epochs": 5})
    assert note.startswith("training.epochs is given without training.effort")
    (note,) = notes(own, columns, network={"kind": "mlp", "hidden": [8]})
    assert note.startswith("network.hidden is given")
    for kept in ({"learning_rate": 0.001}, {"epochs": 5, "effort": "quick"}):
        assert notes(own, columns, training=kept) == []


def test_columns_that_are_no_features_are_named_with_the_reason(own: Service) -> None:
    columns = {
        "customer_id": list(range(ROWS)),
        "x": X.tolist(),
        "w": np.ones(ROWS).tolist(),
        "group": [f"g{i % 20}" for i in range(ROWS)],
        "review": [
            f"a rather long sentence of the customer number {i}, unread" for i in range(ROWS)
        ],
        "y": Y.tolist(),
    }
    split = {"split": {"by": "group"}}
    found = notes(own, columns, weight="w", training=split)
    named = {name: [n for n in found if f"{name!r}" in n] for name in columns}
    assert "identifies rows" in named["customer_id"][0]
    assert "weights of the rows" in named["w"][0]
    assert "groups that the split keeps together" in named["group"][0]
    assert "free text" in named["review"][0]
    assert not named["x"]
    chosen = notes(own, columns, weight="w", training=split, features=["x"])
    assert not [note for note in chosen if "customer_id" in note]
