"""Row 10: a web page lets its own name lead to the service, or names it as it likes."""

from urllib.parse import urlsplit

import pytest

from core.access.hosts import AllowedHosts, check_names
from core.exceptions import WrongHost
from tests.attacks.sending import ask
from tests.credence.running import Service, serving

EVIL = "Host: evil.example"


def test_a_forged_host_is_misdirected(open_service: Service) -> None:
    for path in ("/models", "/models/", "/health/live", "/metrics", "/", "/ui/x"):
        answer = ask(open_service.url, "GET", path, [EVIL])
        assert answer.status == 421, path
        assert answer.header("Location") is None
        assert b"CREDENCE_ALLOWED_HOSTS" in answer.body


def test_a_page_under_its_own_name_changes_nothing(open_service: Service) -> None:
    """What the browser of a victim sends after DNS rebinding: everything is of one origin."""
    headers = [EVIL, "Origin: http://evil.example", "Sec-Fetch-Site: same-origin"]
    for path in ("/datasets?name=x", "/predict", "/v2/models/m/infer"):
        sent = [*headers, "Content-Type: text/csv"]
        assert ask(open_service.url, "POST", path, sent, b"a\n1\n").status == 421


def test_no_host_two_and_no_name_are_bad_requests(open_service: Service) -> None:
    for headers in (
        [],
        ["Host:"],
        ["Host: localhost", EVIL],
        ["Host: localhost/@evil.example"],
        ["Host: user@localhost"],
        ["Host: [::1"],
    ):
        for method, path in (("GET", "/models"), ("POST", "/predict")):
            answer = ask(open_service.url, method, path, headers)
            assert answer.status == 400, headers
            assert b"Host header" in answer.body


def test_a_forged_forwarded_host_is_no_origin(open_service: Service) -> None:
    own = urlsplit(open_service.url).netloc
    headers = [f"Host: {own}", "Origin: http://evil.example", "X-Forwarded-Host: evil.example"]
    answer = ask(open_service.url, "POST", "/datasets?name=x", headers, b"a\n1\n")
    assert answer.status == 403


def test_this_machine_reaches_it_by_its_usual_names(open_service: Service) -> None:
    for host in ("localhost", "LOCALHOST.:80", "127.0.0.1", "[::1]:9", "127.9.9.9"):
        assert ask(open_service.url, "GET", "/models", [f"Host: {host}"]).status == 200, host


def test_probes_come_by_any_address(open_service: Service) -> None:
    for path in ("/health/live", "/health/ready", "/metrics", "/v2/health/live"):
        assert ask(open_service.url, "GET", path, ["Host: 10.1.2.3:8000"]).status == 200
    assert ask(open_service.url, "GET", "/models", ["Host: 10.1.2.3:8000"]).status == 421


def test_names_that_are_allowed(tmp_path_factory: pytest.TempPathFactory) -> None:
    directory = tmp_path_factory.mktemp("named")
    names = {"CREDENCE_ALLOWED_HOSTS": "credence.example, *.lab.example"}
    with serving(directory, "api", "--host", "0.0.0.0", CREDENCE_AUTH="off", **names) as named:
        url = named.url.replace("0.0.0.0", "127.0.0.1")
        for host, status in {
            "credence.example": 200,
            "Credence.Example:8443": 200,
            "a.lab.example": 200,
            "lab.example": 421,
            "evil-lab.example": 421,
            "127.0.0.1": 200,
            "evil.example": 421,
        }.items():
            assert ask(url, "GET", "/models", [f"Host: {host}"]).status == status, host
        proxied = ["Host: 127.0.0.1", "Origin: https://credence.example"]
        forwarded = [*proxied, "X-Forwarded-Host: credence.example", "Content-Type: text/csv"]
        answer = ask(url, "POST", "/datasets?name=x", forwarded, b"a\n1\n2\n")
        assert answer.status == 201


def test_an_address_is_known_by_the_connection_alone() -> None:
    hosts = AllowedHosts([], "0.0.0.0")
    hosts.check([b"192.0.2.7:8000"], "192.0.2.7")
    hosts.check([b"[2001:db8::7]"], "2001:db8::7")
    hosts.check([b"192.0.2.7"], "::ffff:192.0.2.7")
    with pytest.raises(WrongHost, match=r"not '192\.0\.2\.8'.*CREDENCE_ALLOWED_HOSTS"):
        hosts.check([b"192.0.2.8"], "192.0.2.7")


def test_what_is_no_host_is_named_at_the_start() -> None:
    assert check_names("a.example,*.b.example,::1,[::1],10.0.0.1,*") is not None
    for wrong in ("http://a", "a:80", "a b", "*.*.x", "a*"):
        with pytest.raises(ValueError, match="is not a host"):
            check_names(wrong)
