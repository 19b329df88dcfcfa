"""The tools by the SDK's client, over both transports, beside the answers of the routes."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from credence.agents.server import LOCAL_TOOLS, TOOLS
from credence.client import Client
from credence.types import Version
from tests.credence.agents.sessions import Refused, Session, over_http, over_stdio
from tests.credence.conftest import TINY
from tests.credence.running import Service

OPENERS = {"stdio": over_stdio, "http": over_http}
ROWS = [{"x0": 0.5, "x1": 1.0, "kind": "odd"}, {"x0": 90.0, "x1": 1.0, "kind": "blue"}]
MESSY = "area;year;price\n" + "".join(
    f"{30 + i},5;{-999 if i % 4 == 0 else 1990 + i % 20};{100 + 2 * i + 3 * (37 * i % 23)}.000 €\n"
    for i in range(60)
)


@pytest.fixture(params=OPENERS)
def transport(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def use(transport: str, url: str, work: Callable[[Session], Any]) -> Any:
    """What `work` returns, in a session of its own."""

    async def main() -> Any:
        async with OPENERS[transport](url) as session:
            return await work(session)

    return anyio.run(main)


def test_each_transport_lists_its_tools(service: Service, transport: str) -> None:
    async def listed(session: Session) -> Any:
        return (await session.client.list_tools()).tools

    tools = use(transport, service.url, listed)
    expected = LOCAL_TOOLS if transport == "stdio" else TOOLS
    assert [tool.name for tool in tools] == [tool.title() for tool in expected]
    profile = tools[0].input_schema["properties"]
    assert ("file" in profile) == (transport == "stdio")  # a service's files are nobody's here


def test_predictions_are_those_of_the_route(
    service: Service, client: Client, version: Version, transport: str
) -> None:
    async def predict(session: Session) -> Any:
        return await session("predict", model="small", rows=ROWS, abstain_above=0.5, store=True)

    found = use(transport, service.url, predict)
    truth = client.submit_predict({"model": "small", "inputs": ROWS, "abstain_above": 0.5})
    assert found["version"] == truth["version"]
    assert found["prediction"].startswith("pred_")
    conformal = [one for one in truth["intervals"] if one["kind"] == "conformal"]
    (interval, *_) = conformal or truth["intervals"]
    for index, row in enumerate(found["rows"]):
        assert row["mean"] == pytest.approx(truth["mean"][index], rel=1e-4)
        bounds = [interval["lower"][index], interval["upper"][index]]
        if None not in bounds:
            assert row["interval"] == pytest.approx(bounds, rel=1e-4)
        for name in ("aleatoric", "epistemic"):
            std = math.sqrt(truth["variance"][name][index])  # type: ignore[index]
            assert row[f"{name}_std"] == pytest.approx(std, rel=1e-4)
        assert row["abstained"] == truth["abstained"][index]
        assert row["unlike_training"] == truth["out_of_distribution"][index]
        assert row.get("reasons", []) == [one["text"] for one in truth["reasons"][index]]
    assert "blue" in " ".join(found["rows"][1]["reasons"])


def test_wrong_arguments_are_told_what_is_right(service: Service, version: Version) -> None:
    dataset = version["dataset"]
    asked: list[tuple[str, dict[str, Any], str]] = [
        ("predict", {"model": "small"}, "rows: is required"),
        ("predict", {"model": "small", "rows": ROWS, "level": 2}, "less than 1"),
        ("predict", {"model": "small", "rows": ROWS, "lvl": 0.5}, "unknown argument"),
        ("predict", {"model": "smal", "rows": ROWS}, "list_models"),
        ("predict", {"model": "small", "rows": [{"x0": 1.0, "x1": 1.0}]}, "rows.0.kind"),
        ("job", {"job": "job_none", "wait_seconds": 900}, "at most 50"),
        ("train", {"dataset": dataset, "target": "why"}, "no column 'why'"),
        ("train", {"dataset": dataset, "target": "y", "model": "Preise 2026"}, "'preise-2026'"),
        ("profile_data", {}, "exactly one"),
        ("profile_data", {"dataset": dataset, "fix": [40]}, "40"),
        ("send_feedback", {"truth": [1.0]}, "prediction"),
        ("forecast", {}, "no tool 'forecast'"),
    ]

    async def ask(session: Session) -> None:
        for tool, arguments, told in asked:
            with pytest.raises(Refused) as refused:
                await session(tool, **arguments)
            assert told in str(refused.value), tool

    use("stdio", service.url, ask)


def test_a_table_is_described_and_fixed(service: Service, client: Client) -> None:
    async def fix(session: Session) -> Any:
        seen = await session("profile_data", csv=MESSY, name="flats", target="price")
        advised = [one["number"] for one in seen["findings"] if "fix" in one]
        fixed = await session("profile_data", dataset=seen["dataset"], target="price", fix=advised)
        return seen, advised, fixed

    seen, advised, fixed = use("stdio", service.url, fix)
    findings = client.dataset(seen["dataset"], "price")["findings"]
    assert [findings[number - 1]["code"] for number in advised] == ["sentinel"]
    year = next(column for column in fixed["columns"] if column["name"] == "year")
    assert (year["min"], year["missing"]) == (1991, 15)  # without −999


def test_files_are_read_on_the_users_machine(service: Service, table: Path) -> None:
    async def read(session: Session) -> Any:
        with pytest.raises(Refused, match="No such file"):
            await session("profile_data", file=str(table.with_name("none.csv")))
        return await session("profile_data", file=str(table))

    found = use("stdio", service.url, read)
    assert (found["rows"], len(found["columns"])) == (60, 4)


def test_trainings_are_confirmed(service: Service, client: Client, version: Version) -> None:
    async def train(session: Session) -> Any:
        wanted = {"dataset": version["dataset"], "target": "y", "model": "agents", "settings": TINY}
        planned = await session("train", **wanted)
        before = list(client.jobs(model="agents"))
        started = state = await session("train", **wanted, confirm=True)
        while state["status"] in ("queued", "running"):
            state = await session("job", job=started["job"], wait_seconds=50)
        return planned, before, state, await session("model_card", model="agents")

    planned, before, state, card = use("http", service.url, train)
    assert (planned["started"], before) == (False, [])
    low, high = planned["estimate"]["rough_seconds"]
    assert 0 < low < high
    assert planned["would_send"]["network"] == {"hidden": [8]}
    assert (state["status"], state["version"]) == ("succeeded", 1)
    metrics = client.version("agents", 1)["metrics"]
    assert state["scores"]["rmse"] == pytest.approx(metrics["rmse"], rel=1e-4)
    assert card["scores"]["coverage_of_90_percent_credible_intervals"] == pytest.approx(
        metrics["coverage"]["0.9"], rel=1e-4
    )
    assert [one["name"] for one in card["features"]] == ["x0", "x1", "kind"]
    assert set(card["simple_methods"]) == {"constant", "linear", "boosted_trees"}


def test_without_a_service_the_agent_is_told() -> None:
    async def ask(session: Session) -> None:
        with pytest.raises(Refused, match=r"no answer from http://127\.0\.0\.1:9"):
            await session("list_models")

    use("stdio", "http://127.0.0.1:9", ask)
