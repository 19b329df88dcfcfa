"""Archives of a model with files that were changed, and sums that are right."""

import hashlib
import io
import json
import tarfile
from collections.abc import Mapping
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "fixtures/release_0001/artifacts/models/line"


def files() -> dict[str, bytes]:
    """The files of a small regression of one number, `x`."""
    [folder] = FOLDER.iterdir()
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def with_card_member(value: bytes) -> dict[str, bytes]:
    """The files, with one member more in the card."""
    plain = files()
    card = plain["card.json"].rstrip().removesuffix(b"}") + b', "a": ' + value + b"}"
    return plain | {"card.json": card}


def packed(members: Mapping[str, bytes]) -> bytes:
    """A gzipped archive."""
    sums = {
        name: {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
        for name, content in members.items()
        if name != "manifest.json"
    }
    manifest = json.dumps({"format": 1, "files": sums}).encode()
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz", format=tarfile.USTAR_FORMAT) as tar:
        for name, content in {**members, "manifest.json": manifest}.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return buffer.getvalue()
