"""Sends a delivery: one POST, on a connection to an address that was checked.

Nothing of the response is read but its status. Redirects are not followed.
"""

import http.client
from time import monotonic

from core.clock import now
from core.exceptions import Invalid
from core.release import release
from core.sources.places.pinned import Refused, Unknown, connected, reason
from core.webhooks.deliveries import Answer, Attempt
from core.webhooks.receivers import Receiver, Rules, parse
from core.webhooks.signing import signed_headers

SECONDS = 10.0  # for a try, without the search for the host's address
SUCCESSES = range(200, 300)
REDIRECTS = range(300, 400)


def send(attempt: Attempt, rules: Rules, seconds: float = SECONDS) -> Answer:
    """Send a claimed delivery. All that goes wrong is the answer's error."""
    started = monotonic()
    try:
        receiver = parse(attempt.url)
        status = _post(attempt, receiver, seconds, private=rules.check(receiver))
    except (Invalid, ValueError) as error:
        return Answer(None, str(error), monotonic() - started)
    except (Refused, Unknown) as error:
        return Answer(None, str(error), monotonic() - started)
    except (OSError, http.client.HTTPException) as error:
        passed = monotonic() - started
        return Answer(None, _too_slow(seconds) if passed >= seconds else reason(error), passed)
    passed = monotonic() - started
    if passed >= seconds:  # the head of the response was cut off
        return Answer(None, _too_slow(seconds), passed)
    return Answer(status, _problem(status), passed)


def _post(attempt: Attempt, receiver: Receiver, seconds: float, *, private: bool) -> int:
    headers = {
        "Host": receiver.authority,
        "Content-Type": "application/json",
        "User-Agent": f"Credence/{release()}",
        **signed_headers(attempt.secret, attempt.delivery, now(), attempt.body),
    }
    tls = receiver.scheme == "https"
    with connected(receiver.host, receiver.port, seconds, private=private, tls=tls) as connection:
        connection.request("POST", receiver.target, attempt.body.encode(), headers)
        return connection.getresponse().status


def _too_slow(seconds: float) -> str:
    return f"the receiver does not answer within {seconds:g} s"


def _problem(status: int) -> str | None:
    if status in SUCCESSES:
        return None
    if status in REDIRECTS:
        return f"the receiver redirects ({status}): give the URL of the receiver itself"
    return f"the receiver answered {status}"
