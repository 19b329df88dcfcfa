"""The page of a model, a job or a data set; a browser is any program in BROWSER."""

import httpx
import pytest

from credence.client import Client
from credence.types import Version
from tests.credence.invoking import command, printed
from tests.credence.running import Service, credence


def address(service: Service, *what: str) -> str:
    return printed("open", *what, "--print", url=service.url).strip()


@pytest.mark.parametrize("what", ["model", "job", "dataset"])
def test_the_address_is_that_of_a_page(service: Service, version: Version, what: str) -> None:
    found = address(service, version[what])  # type: ignore[literal-required]
    assert httpx.get(found, timeout=100).status_code == 200
    assert found.startswith(f"{service.url}/ui/{what}s/{version[what]}")  # type: ignore[literal-required]


def test_without_a_name_it_is_what_the_newest_job_has_made(
    service: Service, client: Client, version: Version
) -> None:
    client.set_alias("small", "trusted", 1)
    assert address(service, "small", "--version", "trusted").endswith("/small/versions/1")
    request = {"model": "newest", "dataset": version["dataset"], "target": "y"}
    request |= {"network": {"hidden": [4]}, "training": {"epochs": 1}, "pruning": []}
    job = client.wait(client.submit_train(request)["id"], poll_seconds=0.1)
    assert address(service).endswith(f"/ui/models/newest/versions/{job['version']}")
    evaluation = client.submit_evaluate("small", {"version": 1, "dataset": version["dataset"]})
    assert address(service).endswith(f"/ui/jobs/{evaluation['id']}")


def test_a_browser_gets_the_address(service: Service, version: Version) -> None:
    done = credence("open", "small", url=service.url, BROWSER="echo browser %s")
    assert done.stdout == f"browser {service.url}/ui/models/small/versions/1\n"
    none = credence("open", "small", url=service.url, BROWSER="nosuchbrowser")
    assert none.stdout == f"{service.url}/ui/models/small/versions/1\n"
    assert command("open", "nosuch", "--print", url=service.url).exit_code == 1
