import gc
import http.server
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from credence.client import Client
from credence.client.files.media_types import headers_for
from credence.exceptions import CredenceAPIError, ServiceUnreachable
from credence.types import Version


def test_a_refusal_carries_the_problem_document(client: Client) -> None:
    request = {"model": "small", "dataset": "ds_none", "target": "y", "network": {"hidden": [0]}}
    with pytest.raises(CredenceAPIError) as caught:
        client.submit_train(request)
    error = caught.value
    assert error.status == 422
    assert error.title
    assert error.request_id
    assert any(field.path.startswith("/network/hidden") for field in error.errors)
    assert "/network/hidden" in str(error)


def test_a_name_cannot_climb_out_of_its_place(client: Client, version: Version) -> None:
    with pytest.raises(CredenceAPIError) as caught:
        client.delete_version("small", "..")
    assert caught.value.status in (404, 422)
    assert client.version("small", 1)["version"] == 1


def test_no_service_is_told_apart_from_a_refusal() -> None:
    with Client("http://127.0.0.1:1") as client, pytest.raises(ServiceUnreachable, match=":1: "):
        client.job("job_1")


def test_who_forgets_to_close_leaves_no_connection_open(client: Client) -> None:
    assert Client(client.url).metrics()
    gc.collect()  # of an open socket it would warn, which pytest takes for an error


def test_the_same_file_twice_is_one_data_set(client: Client, table: Path) -> None:
    first, second = client.upload(table), client.upload(table, name="again")
    assert first["id"] == second["id"]
    assert first["rows"] == 60


def test_lists_go_over_all_pages(client: Client, version: Version) -> None:
    ids = [job["id"] for job in client.jobs(model="small")]
    assert version["job"] in ids
    assert len(ids) == len(set(ids))


def test_an_alias_names_a_version_until_it_is_removed(client: Client, version: Version) -> None:
    client.set_alias("small", "champion", 1)
    assert client.version("small", "champion")["version"] == 1
    client.delete_alias("small", "champion")
    with pytest.raises(CredenceAPIError) as caught:
        client.version("small", "champion")
    assert caught.value.status == 404


def test_evaluation_scores_labelled_rows(client: Client, version: Version) -> None:
    job = client.submit_evaluate(
        "small", {"version": 1, "dataset": version["dataset"], "prune": 0.5}
    )
    job = client.wait(job["id"], poll_seconds=0.1)
    assert job["status"] == "succeeded"
    assert {"rmse", "log_likelihood"} <= set(job["metrics"])


@pytest.fixture
def proxy_url() -> Iterator[str]:
    """Something in between that answers 502 in HTML."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_error(502, "Bad Gateway")

        def log_message(self, *_: object) -> None: ...

    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_an_answer_that_is_no_problem_document_keeps_its_status(proxy_url: str) -> None:
    with closing(Client(proxy_url)) as client, pytest.raises(CredenceAPIError, match="502") as e:
        client.job("job_1")
    assert e.value.status == 502


@pytest.mark.parametrize(
    ("name", "headers"),
    [
        ("a.CSV", {"Content-Type": "text/csv"}),
        ("a.b.csv.gz", {"Content-Type": "text/csv", "Content-Encoding": "gzip"}),
        ("a.ndjson", {"Content-Type": "application/x-ndjson"}),
        ("a.csv.zst", {"Content-Type": "text/csv"}),
        ("a.zip", {"Content-Type": "application/octet-stream"}),
        ("a.dat", {"Content-Type": "application/octet-stream"}),
        ("a", {"Content-Type": "application/octet-stream"}),
    ],
)
def test_a_file_is_sent_as_what_its_suffix_says(name: str, headers: dict[str, str]) -> None:
    assert headers_for(Path(name)) == headers


def test_what_is_said_about_a_file_and_its_columns_is_kept(client: Client, tmp_path: Path) -> None:
    path = tmp_path / "said.csv"
    path.write_text("id,x,y\n" + "".join(f"{i},{i * i % 7},{i % 5}\n" for i in range(30)))
    said = client.upload(path, delimiter=",")
    changed = client.fix_columns(said["id"], [{"name": "id", "use": False}], name="without id")
    assert changed["id"] != said["id"]
    assert changed["name"] == "without id"
    assert [column["use"] for column in changed["columns"]] == [False, True, True]
    assert client.dataset(changed["id"])["columns"] == changed["columns"]
    headless = client.fix_columns(said["id"], header=False)
    assert (said["rows"], headless["rows"]) == (30, 31)
    assert headless["reading"]["header"] is False


def test_costs_give_decisions(client: Client, version: Version) -> None:
    rows = {"kind": ["odd", "even"], "x0": [0.5, 1.0], "x1": [1.0, 2.0]}
    model = client.model("small")
    found = model.predict(rows, costs={"over": 1, "under": 4}, intervals=[0.6])
    decisions = found.decisions
    assert decisions.action.tolist() == pytest.approx(found.interval(0.6).upper.tolist())
    assert (decisions.expected_cost > 0).all()
    assert decisions.ask is None
    asked = model.predict(rows, costs={"over": 1, "under": 4, "abstain": 0.0}).decisions.ask
    assert asked is not None
    assert asked.all()
    with pytest.raises(ValueError, match="predict with costs="):
        _ = model.predict(rows).decisions
