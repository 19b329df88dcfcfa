"""Metrics of a process and its machine, for the API and the worker."""

import platform
import shutil
from collections.abc import Iterator
from pathlib import Path

import torch
from prometheus_client import CollectorRegistry, Gauge, Metric
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector

from core.process.resources import available_bytes
from core.release import release


def register_process(registry: CollectorRegistry, data_dir: Path) -> None:
    """Add build, memory, processor time, the data directory's disk and device memory."""
    build = Gauge(
        "credence_build_info",
        "Always 1; the labels tell what runs",
        ["version", "python", "torch"],
        registry=registry,
    )
    build.labels(release(), platform.python_version(), torch.__version__).set(1)
    limit = Gauge(
        "credence_machine_memory_bytes",
        "Memory of the machine, or of the container if that is less",
        registry=registry,
    )
    limit.set(available_bytes())
    registry.register(_DiskCollector(data_dir))
    registry.register(_DeviceCollector())
    ProcessCollector(registry=registry)


class _DiskCollector(Collector):
    """The disk of the data directory. Without the directory there are no samples."""

    def __init__(self, data_dir: Path) -> None:
        self._data_dir = data_dir

    def describe(self) -> list[Metric]:
        return list(self._families())

    def collect(self) -> Iterator[Metric]:
        size, free = self._families()
        if self._data_dir.exists():
            usage = shutil.disk_usage(self._data_dir)
            size.add_metric([], usage.total)
            free.add_metric([], usage.free)  # without the reserve of root
        yield from (size, free)

    @staticmethod
    def _families() -> tuple[GaugeMetricFamily, GaugeMetricFamily]:
        return (
            GaugeMetricFamily("credence_disk_size_bytes", "Size of the data directory's disk"),
            GaugeMetricFamily("credence_disk_free_bytes", "What is free of it for this process"),
        )


class _DeviceCollector(Collector):
    """Torch's memory on each CUDA device, if this process uses CUDA."""

    def describe(self) -> list[Metric]:
        return list(self._families())

    def collect(self) -> Iterator[Metric]:
        allocated, reserved = self._families()
        if torch.cuda.is_initialized():  # a scrape must not initialise CUDA
            for index in range(torch.cuda.device_count()):
                device = f"cuda:{index}"
                allocated.add_metric([device], torch.cuda.memory_allocated(index))
                reserved.add_metric([device], torch.cuda.memory_reserved(index))
        yield from (allocated, reserved)

    @staticmethod
    def _families() -> tuple[GaugeMetricFamily, GaugeMetricFamily]:
        name = "credence_device_memory_{}_bytes"
        return (
            GaugeMetricFamily(
                name.format("allocated"), "Device memory in tensors", labels=["device"]
            ),
            GaugeMetricFamily(
                name.format("reserved"), "Device memory held, free or not", labels=["device"]
            ),
        )
