"""Records of runs: all that passed between harness and board, in a file from which every verdict can be reached again.

The format is in docs/report.md: JSON lines, gzip. Equal runs give equal bytes.
"""

import gzip
import hashlib
import json
import zlib
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from hil.boards.base import Board
from hil.boards.recording import Call, RecordingBoard, ReplayedBoard
from hil.build.build_id import BuildId
from hil.build.firmware import Firmware
from hil.build.footprint import Footprint
from hil.loop.fault_spec import FaultSpec
from hil.loop.faults_on_purpose import FaultyBoard
from hil.loop.identity import Judged
from hil.loop.job import Around, Chip, Job, OnProgress, judge_chips, run_job
from hil.loop.job_settings import JobSettings
from hil.loop.job_spec import trained_policy
from hil.loop.verdict import Verdict
from model.policy.agent import check_policy_fits
from model.policy.file import load_policy
from model.policy.provenance import file_sha256
from streetflow.errors import InputError
from streetflow.files import write_whole
from streetflow.input_file import read_input
from streetflow.networks.catalogue import find_network

FORMAT, VERSION = "tinylight-hil record", 1
LEVEL = 6  # of gzip: 9 takes four times as long for 3 %


def run_recorded(job: Job, file: Path, *, progress: OnProgress | None = None, around: Around | None = None) -> Verdict:
    """Run the job as `run_job` does, and write its record, unless no board was opened.

    Raises:
        InputError: as `run_job`; or the record can't be written.
    """
    boards: list[RecordingBoard] = []
    judged: list[dict[str, Any]] = []  # the build that each is judged by
    calls: list[tuple[int, Call]] = []

    def recorded(board: Board, firmware: Firmware, footprint: Footprint | None) -> Board:
        number = len(boards)
        board = board if around is None else around(board, firmware, footprint)
        boards.append(RecordingBoard(board, lambda call: calls.append((number, call))))
        sizes = None if footprint is None else footprint.as_dict()
        judged.append({"firmware": Judged.of(firmware)._asdict(), "footprint": sizes})
        return boards[-1]

    verdict = run_job(job, progress=progress, around=recorded)
    settings = {each.name: getattr(job, each.name) for each in fields(JobSettings)}
    settings["faults"] = None if job.faults is None else job.faults.text
    header = {
        "format": FORMAT,
        "version": VERSION,
        "job": {"network": job.network.name, "horizon_s": job.network.horizon_s, "flow": job.flow, **settings},
        "provenance": verdict.provenance,
        "boards": [board.facts | build for board, build in zip(boards, judged, strict=True)],
    }
    if boards:
        lines = [_line(header), *(_line([number, *call]) for number, call in calls)]
        digest = hashlib.sha256(b"".join(lines)).hexdigest()
        content = b"".join((*lines, _line({"calls": len(calls), "sha256": digest})))
        write_whole(file, gzip.compress(content, LEVEL, mtime=0))
    return verdict


def replay(file: Path, *, policy_file: Path | None = None, progress: OnProgress | None = None) -> tuple[Job, Verdict]:
    """Judge a record, without a board and without a build.

    Args:
        file: the record.
        policy_file: the policy, where it isn't any more where it was.
        progress: as of `run_job`.

    Returns:
        The recorded job, and the verdict on its bytes, with the recorded provenance.

    Raises:
        InputError: no such record, or a damaged one; its policy or traffic isn't at hand as it was; the run departs from it.
    """
    header, calls = _read(file)
    job = _job(header, file, policy_file)
    policy = load_policy(job.policy_file)
    environment = job.environment(policy)
    check_policy_fits(policy, environment, str(job.policy_file))
    boards = [
        ReplayedBoard(facts, [(line, call[1:]) for line, call in calls if call[0] == number], file)
        for number, facts in enumerate(header["boards"])
    ]
    with ExitStack() as stack:
        opened = [stack.enter_context(board if job.faults is None else FaultyBoard(board, job.faults)) for board in boards]
        chips = [Chip(board, *_build(facts)) for board, facts in zip(opened, header["boards"], strict=True)]
        verdict = judge_chips(job, policy, environment, chips, progress)
    for board in boards:
        board.finish()
    return job, replace(verdict, provenance=header["provenance"])


def _build(facts: dict[str, Any]) -> tuple[Judged, Footprint | None]:
    """What the board is judged by."""
    told = facts["firmware"]
    build = None if told["build"] is None else BuildId(*told["build"])
    sizes = facts["footprint"]
    return Judged(**told | {"build": build}), None if sizes is None else Footprint.from_dict(sizes)


def _job(header: dict[str, Any], file: Path, policy_file: Path | None) -> Job:
    """The recorded job; InputError unless policy and traffic are the recorded ones."""
    told, provenance = dict(header["job"]), header["provenance"]
    network = replace(find_network(told.pop("network")), horizon_s=told.pop("horizon_s"))
    flow = told.pop("flow")
    told["faults"] = None if told["faults"] is None else FaultSpec.parse(told["faults"])
    told |= {name: tuple(told[name]) for name in ("firmware_flags", "lamp_faults") if name in told}
    wanted = provenance["policy_sha256"]
    recorded = Path(provenance["policy_file"])
    if policy_file is None:
        policy_file = recorded if recorded.exists() else trained_policy(network.name)
    if (found := load_policy(policy_file).sha256) != wanted:
        hint = "" if recorded.exists() else f" ({recorded} is gone: name a copy of it with --policy)"
        raise InputError(policy_file, "", f"is policy {found[:12]}, and {file} is of {wanted[:12]}{hint}")
    for name, at_hand in (("roadnet", network.roadnet_file), ("flow", network.flow_file(flow))):
        if file_sha256(at_hand) != provenance[f"{name}_sha256"]:
            raise InputError(at_hand, "", f"isn't the {name} file that {file} was recorded with")
    return Job(network, flow, policy_file, **told)


def _read(file: Path) -> tuple[dict[str, Any], list[tuple[int, Call]]]:
    """Header and calls, each with its line; the number of its board stands first in a call."""
    try:
        content = gzip.decompress(read_input(file))
    except (gzip.BadGzipFile, EOFError, zlib.error) as fault:
        raise InputError(file, "", f"no record of a run: {fault}") from None
    lines = content.splitlines(keepends=True)
    try:
        header, *calls, end = (json.loads(line) for line in lines)
        is_ours = header["format"] == FORMAT
    except (ValueError, KeyError, TypeError, UnicodeDecodeError):
        is_ours = False
    if not is_ours:
        raise InputError(file, "", "no record of a run, or not all of one (tinylight hil --record writes them)")
    if header["version"] != VERSION:
        raise InputError(file, "line 1", f"version {header['version']} of the format; this program reads version {VERSION}")
    digest = hashlib.sha256(b"".join(lines[:-1])).hexdigest()
    if not isinstance(end, dict) or (end.get("calls"), end.get("sha256")) != (len(calls), digest):
        raise InputError(file, f"line {len(lines)}", "the record isn't as it was written: its checksum differs")
    return header, list(enumerate(calls, 2))


def _line(content: dict[str, Any] | Sequence[Any]) -> bytes:
    return json.dumps(content, separators=(",", ":"), allow_nan=False).encode() + b"\n"
