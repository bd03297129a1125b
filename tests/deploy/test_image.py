"""What the image says where it cannot work as it is."""

from __future__ import annotations

from pathlib import Path

import docker
import pytest
from docker.errors import ContainerError
from docker.models.images import Image

pytestmark = [pytest.mark.docker, pytest.mark.timeout(400)]


def test_read_only_container_without_a_tmpfs_is_told_to_mount_one(engine: docker.DockerClient, image: Image) -> None:
    """As kernels must be loaded from a folder that can be written to."""
    with pytest.raises(ContainerError) as told:
        engine.containers.run(image, "warm", read_only=True, remove=True)
    assert told.value.exit_status == 2
    assert "mount a tmpfs at /tmp" in str(told.value)


def test_cpu_without_avx2_is_told_before_a_kernel_crashes(
    engine: docker.DockerClient, image: Image, tmp_path: Path
) -> None:
    """With what to set, which then works."""
    (tmp_path / "cpuinfo").write_text("flags : sse4_2 popcnt\n")
    old = {str(tmp_path / "cpuinfo"): {"bind": "/proc/cpuinfo", "mode": "ro"}}
    with pytest.raises(ContainerError) as told:
        engine.containers.run(image, ["client", "--help"], volumes=old, remove=True)
    assert told.value.exit_status == 2
    assert "set NUMBA_CPU_NAME=x86-64-v2" in str(told.value)
    set_so = {"NUMBA_CPU_NAME": "x86-64-v2"}
    assert engine.containers.run(image, ["client", "--help"], volumes=old, environment=set_so, remove=True)
    assert engine.containers.run(image, "version", volumes=old, remove=True), "needs no kernel"
