"""Search finds what its caller may see by parts of names."""

from pathlib import Path

from core.access.callers import SERVICE, Caller
from core.database.database import Database
from core.datasets.datasets import Datasets
from core.jobs.jobs import Jobs
from core.jobs.specs import TrainSpec
from core.registry.registry import Registry
from core.search import Search
from core.storage import ArtifactStore
from models.config import ModelConfig
from tests.core.conftest import owner

DESCRIPTION = {"task": "regression", "target": "y", "imported": {"origin": None, "bytes": 1}}


def data(database: Database, store: ArtifactStore, name: str, caller: Caller = SERVICE) -> str:
    rows = {"x": [1.0, 2.0], "y": [2.0, 4.0], name: [0.0, 1.0]}
    return Datasets(database, store, caller=caller).add_columns(name, rows)[0].id


def test_each_word_is_a_part_of_the_name(database: Database, store: ArtifactStore) -> None:
    names = ("Bike hires 2025.csv", "bike_repairs.csv", "100%.csv")
    ids = {name: data(database, store, name) for name in names}
    search = Search(database, SERVICE)
    wanted = {
        "bike": ["bike_repairs.csv", "Bike hires 2025.csv"],  # newest first
        "HIRES bike": ["Bike hires 2025.csv"],
        "bike cars": [],
        "%": ["100%.csv"],
        "e_r": ["bike_repairs.csv"],  # not "e hires", though _ is any letter in SQL
        "\x00bike\n": ["bike_repairs.csv", "Bike hires 2025.csv"],
        "": list(reversed(names)),
        ids["100%.csv"]: ["100%.csv"],
    }
    assert {text: [one.name for one in search.datasets(text, 10)] for text in wanted} == wanted
    assert len(search.datasets("csv", 2)) == 2


def test_nobody_finds_what_others_own(
    database: Database, store: ArtifactStore, artifact: Path
) -> None:
    for caller, name in ((owner("anna"), "annas"), (owner("ben"), "bens"), (SERVICE, "alls")):
        dataset = data(database, store, name, caller)
        Registry(database, store, caller).add(name, artifact, DESCRIPTION)
        spec = TrainSpec(model=name, dataset=dataset, config=ModelConfig(target="y"))
        Jobs(database, caller).create(spec)
    search = Search(database, owner("anna"))
    assert {one.name for one in search.models("s", 10)} == {"annas", "alls"}
    assert {one.name for one in search.datasets("s", 10)} == {"annas", "alls"}
    assert {one.model for one in search.jobs("s", 10)} == {"annas", "alls"}
