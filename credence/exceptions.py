"""Exceptions of the client.

ClientError
├── CredenceAPIError      the service refused the request
├── ServiceUnreachable    there was no response
└── JobFailed             a job ended without a result
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from credence.types import Job

if TYPE_CHECKING:
    import httpx


@dataclass(frozen=True)
class FieldError:
    """An error in one field of a request; `path` is a JSON pointer into its body."""

    path: str
    message: str


class ClientError(Exception):
    """Base of all errors of this package."""


class ServiceUnreachable(ClientError):
    """No response from `url`: nothing listens there, or it took too long."""

    ADVICE = (
        "start a service with `credence serve`, or give the address of one: CREDENCE_URL, "
        "--url, or Client(url)"
    )

    def __init__(self, url: str, reason: str, advice: str = ADVICE) -> None:
        super().__init__(f"no answer from {url}: {reason}\n{advice}")
        self.url = url


class CredenceAPIError(ClientError):
    """An `application/problem+json` response (RFC 9457), or any other error response."""

    def __init__(
        self,
        status: int,
        title: str,
        detail: str = "",
        errors: Sequence[FieldError] = (),
        request_id: str | None = None,
    ) -> None:
        joined = "; ".join(f"{error.path}: {error.message}" for error in errors)
        has_detail = detail and detail not in [joined, *(error.message for error in errors)]
        lines = [f"{title}: {detail}" if has_detail else title]
        lines += [f"  {error.path or '/'}: {error.message}" for error in errors]
        super().__init__("\n".join(lines))
        self.status = status
        self.title = title
        self.detail = detail
        self.errors = tuple(errors)
        self.request_id = request_id

    @classmethod
    def from_response(cls, response: "httpx.Response") -> "CredenceAPIError":
        """The error in a problem document; a proxy may send none, then that of the status line."""
        request_id = response.headers.get("X-Request-ID")
        title = f"{response.status_code} {response.reason_phrase}"
        if "json" not in response.headers.get("Content-Type", ""):
            return cls(response.status_code, title, request_id=request_id)
        problem = response.json()
        return cls(
            response.status_code,
            problem.get("title", title),
            problem.get("detail", ""),
            [FieldError(error["path"], error["message"]) for error in problem.get("errors", ())],
            problem.get("request_id", request_id),
        )


class JobFailed(ClientError):
    """A job failed or was cancelled; `job` is its final state."""

    def __init__(self, job: Job) -> None:
        error = job["error"]
        reason = f"{error['message']} ({error['code']})" if error else job["status"]
        super().__init__(f"{job['id']}: {reason}")
        self.job = job
