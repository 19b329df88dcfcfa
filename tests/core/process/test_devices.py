"""Devices that do not exist are refused by name, by the operator's setting and by the job's."""

import pytest

from core.exceptions import Invalid, InvalidSetting
from core.process.devices import job_device, service_device
from core.settings import Settings


def test_the_job_decides_then_the_operator() -> None:
    settings = Settings(device="cpu")
    assert (service_device(settings), job_device("auto", settings)) == ("cpu", "cpu")
    with pytest.raises(InvalidSetting, match=r"CREDENCE_DEVICE=cuda:77"):
        service_device(Settings(device="cuda:77"))
    with pytest.raises(Invalid, match=r"cuda:77"):
        job_device("cuda:77", Settings())
