"""Signatures of deliveries, as the Standard Webhooks specification has them.

Source: https://www.standardwebhooks.com, version 1: HMAC-SHA256 of id, time and body.
"""

import base64
import secrets
from collections.abc import Mapping
from datetime import datetime

from standardwebhooks import Webhook

PREFIX = "whsec_"  # scanners for leaked secrets recognise one by it
SECRET_BYTES = 32  # the specification allows 24 to 64


def new_secret() -> str:
    """A secret that owner and service share."""
    return PREFIX + base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode()


def signed_headers(secret: str, identifier: str, moment: datetime, body: str) -> Mapping[str, str]:
    """The headers of a delivery. Receivers refuse a `moment` more than some minutes ago."""
    return {
        "webhook-id": identifier,
        "webhook-timestamp": str(int(moment.timestamp())),
        "webhook-signature": Webhook(secret).sign(identifier, moment, body),
    }
