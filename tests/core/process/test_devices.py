"""Devices that do not exist are refused by name, by the operator's setting and by the job's."""

import pytest

from core.exceptions import Invalid, InvalidSetting
from core.process.devices import job_device, service_device
from core.settings import Settings


def test_the_job_decides_then_the_operator() -> None:
    settings = Settings(device="cpu")
    assert service_device(settings) == "cpu"
    assert job_device("auto", settings) == "cpu"
    assert job_device("cpu", Settings()) == "cpu"


def test_a_device_that_is_not_there_is_refused() -> None:
    with pytest.raises(InvalidSetting, match=r"CREDENCE_DEVICE=cuda:77: this machine has cpu"):
        service_device(Settings(device="cuda:77"))
    with pytest.raises(Invalid, match=r"no device 'cuda:77'; it has cpu"):
        job_device("cuda:77", Settings())
