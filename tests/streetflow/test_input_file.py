"""What a user names as a file is read, or refused in one line: also where it has no end."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from hil.loop.record import replay
from model.policy.file import load_policy
from model.quantise.network_file import read_network
from model.report.sweep import Sweep
from streetflow.errors import InputError
from streetflow.input_file import read_input
from streetflow.roadnet.flow import read_flows
from streetflow.roadnet.json_reader import read_json
from streetflow.sumo.xml_file import read_xml

READERS: dict[str, Callable[[Path], object]] = {
    "json": read_json,
    "flow": lambda file: read_flows(file, {}),
    "policy": load_policy,
    "XML": lambda file: read_xml(file, ("net",), "a SUMO network"),
    "PyTorch or ONNX": read_network,
    "sweep": Sweep,
    "record": replay,
}


@pytest.mark.parametrize("reader", READERS.values(), ids=READERS)
def test_a_device_is_refused_and_not_read_without_end(reader: Callable[[Path], object], tmp_path: Path) -> None:
    for name in ("endless.json", "endless.toml"):
        (tmp_path / name).symlink_to("/dev/zero")
        with pytest.raises(InputError, match=f"{name}: can't be read: it is a device, not a file"):
            reader(tmp_path / name)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("", "the name of a file is empty"),
        (".", "Is a directory"),
        ("none", "there is no such file"),
        ("a\0b", "embedded null"),
    ],
)
def test_what_can_not_be_read_is_said(name: str, why: str) -> None:
    with pytest.raises(InputError, match=why):
        read_input(name)


def test_a_pipe_is_read_to_its_end(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(b"[1]",))
    writer.start()
    assert read_input(pipe) == b"[1]"
    writer.join()
