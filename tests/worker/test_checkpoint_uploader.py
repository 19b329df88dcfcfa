"""Checkpoints reach the store when the training has written them, and not more often."""

import os
from pathlib import Path

from core.context import Context
from models.training.checkpoints import CheckpointSpacing
from tests.worker.conftest import train_job
from worker.checkpoint_uploader import CheckpointUploader


def _write(folder: Path, content: bytes) -> None:
    """As a training does: a new file in place of the old one."""
    folder.mkdir(exist_ok=True)
    fresh = folder / "fit.safetensors.new"
    fresh.write_bytes(content)
    fresh.replace(folder / "fit.safetensors")
    later = folder.stat().st_mtime_ns + 1_000_000  # some file systems count in ticks
    os.utime(folder, ns=(later, later))


def test_a_new_checkpoint_is_uploaded_once_and_uploads_are_spaced(
    context: Context, dataset: str, tmp_path: Path
) -> None:
    job = train_job(context, dataset)
    claim = context.jobs.claim(job.id, "worker", 60.0)
    assert claim is not None
    folder, copy = tmp_path / "checkpoints", tmp_path / "copy"
    uploader, seldom = (
        CheckpointUploader(context.checkpoints, claim, folder, spacing)
        for spacing in (CheckpointSpacing(0.0), CheckpointSpacing(60.0, lambda: 0.0))
    )
    uploader.upload_if_due()
    _write(folder, b"first")
    seldom.upload_if_due()
    assert not context.checkpoints.exists(job.id)
    for content in (b"first", b"second"):
        _write(folder, content)
        uploader.upload_if_due()
        (name,) = context.store.children(f"checkpoints/{job.id}")
        uploader.upload_if_due()
        assert context.store.children(f"checkpoints/{job.id}") == [name]
    assert context.checkpoints.fetch(job.id, copy)
    assert (copy / "fit.safetensors").read_bytes() == b"second"
