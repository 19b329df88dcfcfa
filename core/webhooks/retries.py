"""When a delivery that failed is sent again, and when a webhook is given up."""

import secrets
from datetime import timedelta

FIRST_SECONDS = 15.0
FACTOR = 4.0
MAX_TRIES = 8  # the pauses are 15 s, 1, 4, 16 and 64 minutes, 4.3 and 17 hours: 22.8 h together
JITTER = 0.2  # so that a receiver that is back does not get all at once
GIVE_UP = timedelta(days=3)  # without a success: the webhook is then disabled


def pause(tries: int) -> timedelta | None:
    """The pause after so many tries that failed; None if there is no other try."""
    if tries >= MAX_TRIES:
        return None
    share = 1 + JITTER * (2 * secrets.randbelow(10**6) / 10**6 - 1)
    return timedelta(seconds=FIRST_SECONDS * FACTOR ** (tries - 1) * share)
