"""Files of trained baselines, as controllers; what is refused: networks, files, options."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from model.baselines.agent import BaselineAgent  # noqa: E402
from model.baselines.file import BaselineFile, load_baseline, save_baseline  # noqa: E402
from model.baselines.registry import BASELINES  # noqa: E402
from model.baselines.train_baseline import train_baseline_files  # noqa: E402
from model.baselines.training import load_arrays  # noqa: E402
from model.dqn.learner import BaselineConfig  # noqa: E402
from model.evaluate import evaluate  # noqa: E402
from model.report.tasks import plan  # noqa: E402
from streetflow.control.intersection import signalled_intersections  # noqa: E402
from streetflow.errors import InputError  # noqa: E402
from streetflow.networks.catalogue import find_network  # noqa: E402
from streetflow.roadnet.reader import read_roadnet  # noqa: E402
from tests.helpers.baselines import arterial, graph_of  # noqa: E402
from tests.helpers.run_cli import tinylight  # noqa: E402
from tests.helpers.shared_data import needs_data_set  # noqa: E402


def test_shared_models_refuse_intersections_that_differ(tmp_path: Path) -> None:
    intersections = list(signalled_intersections(read_roadnet(find_network("arterial").roadnet_file)))
    odd = dataclasses.replace(intersections[1], phases=intersections[1].phases[:5])
    for name in ("MPLight", "CoLight"):
        assert BASELINES[name].refusal(intersections) is None
        why = BASELINES[name].refusal([intersections[0], odd, intersections[2]])
        assert why is not None and "must be alike" in why and "8 phases" in why and "5 phases" in why
    for name in ("EcoLight", "FRAP", "TLRP"):
        assert BASELINES[name].refusal([intersections[0], odd]) is None
    assert "only one" in (BASELINES["CoLight"].refusal(intersections[:1]) or "")
    assert BASELINES["MPLight"].refusal(intersections[:1]) is None


@pytest.mark.parametrize("network", [pytest.param(n, marks=needs_data_set(n)) for n in ("Atlanta", "LosAngeles")])
def test_the_papers_dashes(network: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    jobs, dashes = plan([network], list(BASELINES), [0, 1])
    assert set(dashes) == {(network, "MPLight"), (network, "CoLight")}
    assert {job.model for job in jobs} == {"EcoLight", "FRAP", "TLRP"}
    with pytest.raises(InputError, match=f"{network}: intersections: MPLight shares its weights"):
        train_baseline_files("MPLight", find_network(network), [(0, 0, tmp_path / "x.npz")])
    assert tinylight("train", "--model", "MPLight", "--network", network, "--out", str(tmp_path / "x.npz")) == 2
    assert "must be alike" in capsys.readouterr().err


@pytest.fixture(scope="module")
def trained_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("baseline") / "frap.npz"
    train_baseline_files("FRAP", find_network("arterial"), [(0, 5, file)], config=BaselineConfig(episodes=1))
    return file


def test_a_file_decides_as_the_network_that_it_was_made_from(trained_file: Path) -> None:
    content = load_baseline(trained_file)
    assert (content.model, content.network, content.provenance["train_seed"]) == ("FRAP", "arterial", 5)
    environment = arterial("FRAP")
    agent = BaselineAgent(content, "frap.npz")
    frame = environment.reset()
    agent.reset(environment)
    graph, _ = graph_of("FRAP", list(environment.intersections), [0])
    load_arrays(graph, content.arrays, "frap.npz")
    for _ in range(20):
        x = torch.from_numpy(frame.astype(np.float32).reshape(3, 1, -1))
        actions = agent.act(frame)
        assert np.array_equal(actions, graph.best_actions(x)[:, 0].numpy())
        frame, _, _ = environment.step(actions)
    (row,) = evaluate("arterial", trained_file, [1])
    assert (row.arithmetic, row.policy_sha256, row.agent) == ("float", content.sha256, "frap.npz")


def test_the_same_training_gives_the_same_file(trained_file: Path, tmp_path: Path) -> None:
    again = tmp_path / "frap.npz"
    train_baseline_files("FRAP", find_network("arterial"), [(0, 5, again)], config=BaselineConfig(episodes=1))
    assert load_baseline(again).sha256 == load_baseline(trained_file).sha256


def test_faulty_files_are_refused(trained_file: Path, tmp_path: Path) -> None:
    content = load_baseline(trained_file)
    name = "value_out.weights"
    file = tmp_path / "x.npz"

    def refused(fault: str, changed: BaselineFile | None = None, data: bytes | None = None) -> None:
        if changed is not None:
            save_baseline(changed, file)
        elif data is not None:
            file.write_bytes(data)
        with pytest.raises(InputError, match=fault):
            evaluate("arterial", file, [0])

    arrays = dict(content.arrays)
    refused("missing", dataclasses.replace(content, arrays={k: v for k, v in arrays.items() if k != name}))
    refused("not an array of this model", dataclasses.replace(content, arrays=arrays | {"more": arrays[name]}))
    refused(r"value_out.weights: float32\[3, 20\]", dataclasses.replace(content, arrays=arrays | {name: arrays[name][..., 0]}))
    refused("not finite", dataclasses.replace(content, arrays=arrays | {name: arrays[name] * np.nan}))
    refused("unknown model 'X'", dataclasses.replace(content, model="X"))
    refused("trained on crossing", dataclasses.replace(content, network="crossing"))
    np.savez(file, a=np.zeros(1))
    refused("header")
    np.savez(file, header=np.array("{}"))
    refused("header")
    with np.load(trained_file) as archive:
        changed = {key: archive[key] for key in archive.files}
    changed[name] = changed[name] + 1
    np.savez(file, **changed)
    refused("changed or damaged")
    whole = trained_file.read_bytes()
    refused("not a weights file", data=whole[: len(whole) // 2])
    with pytest.raises(InputError, match="no integer form"):
        evaluate("arterial", trained_file, [0], integer=True)


def test_an_option_without_effect_and_an_unknown_model_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["train", "--network", "crossing", "--out", str(tmp_path / "x.npz"), "--model"]
    for more, fault in ((["FRAP", "--kept-features", "3"], "--kept-features"), (["FRUP"], "unknown model 'FRUP'")):
        assert tinylight(*command, *more) == 2 and fault in capsys.readouterr().err
