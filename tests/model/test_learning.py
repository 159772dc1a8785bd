"""Replay, exploration, target network; whole trainings on a toy: seeded, resumable, replicas independent, and they do learn."""

from __future__ import annotations

import dataclasses
import io
from pathlib import Path

import numpy as np
import pytest

from tests.helpers.toy_environment import ToyEnvironment

torch = pytest.importorskip("torch", reason="torch is not installed (extra: train)")

from model.dqn.replay import (  # noqa: E402
    ReplayMemory,
    explore,
    group_seed,
    refinement_learning_rate,
    search_epsilon,
    uniforms,
)
from model.train.checkpoint import CHECKPOINT_KEYS  # noqa: E402
from model.train.search_and_refine import EpisodeRow, Execution, Trained, TrainingConfig, train  # noqa: E402
from streetflow.errors import InputError  # noqa: E402

LSB = ToyEnvironment.lsb_per_unit
TINY = TrainingConfig(search_episodes=3, refine_episodes=4, layer2_dims=(4, 6), layer3_dims=(5, 3), batch=8, kept_episodes=2)


def seeds(count: int) -> np.ndarray:
    return np.array([group_seed(0, i) for i in range(count)], dtype=np.uint64)


# --- random numbers ---


def test_uniforms_are_uniform_and_depend_on_everything() -> None:
    drawn = uniforms(seeds(50), stream=1, step=3, count=2000)
    assert drawn.min() >= 0 and drawn.max() < 1
    counts = np.histogram(drawn, bins=20, range=(0, 1))[0]
    assert np.abs(counts / drawn.size * 20 - 1).max() < 0.06
    assert abs(np.corrcoef(drawn[:, :-1].ravel(), drawn[:, 1:].ravel())[0, 1]) < 0.02
    for other in (uniforms(seeds(50), 2, 3, 2000), uniforms(seeds(50), 1, 4, 2000), uniforms(seeds(50)[::-1], 1, 3, 2000)):
        assert not np.isclose(drawn, other).any(axis=1).all()
        assert abs(np.corrcoef(drawn.ravel(), other.ravel())[0, 1]) < 0.02


def test_a_groups_numbers_do_not_depend_on_its_neighbours() -> None:
    assert np.array_equal(uniforms(seeds(7), 1, 5, 32)[4], uniforms(seeds(7)[4:5], 1, 5, 32)[0])


# --- exploration ---


def test_epsilon_schedule_of_the_release() -> None:
    assert search_epsilon(0) == 0.1
    assert search_epsilon(59) == 0.0
    assert search_epsilon(63) == 0.0
    assert search_epsilon(30) == pytest.approx(0.1 * (1 - 30 / 59))


def test_refinement_learning_rate_halves_every_ten_episodes() -> None:
    assert [refinement_learning_rate(e) for e in (0, 9, 10, 19, 20)] == [1e-3, 1e-3, 5e-4, 5e-4, 2.5e-4]


def test_exploration_explores_epsilon_of_the_time_and_evenly() -> None:
    n_actions = np.array([4, 9])
    greedy = np.array([0, 8])
    taken = np.array([explore(greedy, n_actions, 0.3, seeds(2), step) for step in range(6000)])
    assert np.array_equal(explore(greedy, n_actions, 0.0, seeds(2), 0), greedy)
    for g, actions in enumerate(n_actions):
        counts = np.bincount(taken[:, g], minlength=actions)
        assert len(counts) == actions
        others = np.delete(counts, greedy[g]) / 6000
        assert np.abs(others - 0.3 / actions).max() < 0.015


# --- replay ---


def filled_replay(capacity: int, episodes: int, n_decisions: int = 7) -> ReplayMemory:
    """Frames hold 100 * episode + decision (+ 10000 * group + 1000 * feature); action and reward repeat the frame's number."""
    replay = ReplayMemory(capacity, n_decisions, 2, 3)
    base = 10_000 * np.arange(2)[:, None] + 1000 * np.arange(3)[None, :]
    for episode in range(episodes):
        replay.start_episode(base + 100 * episode)
        for decision in range(n_decisions):
            number = 100 * episode + decision
            replay.add(np.array([number, number]), np.array([number, -number]), base + number + 1)
    return replay


@pytest.mark.parametrize(("capacity", "episodes"), [(100, 3), (21, 3), (20, 5), (10, 9), (7, 4), (5, 6)])
def test_replay_holds_the_last_transitions_and_pairs_their_frames(capacity: int, episodes: int) -> None:
    replay = filled_replay(capacity, episodes)
    assert replay.size == min(capacity, 7 * episodes)
    every = np.arange(replay.count - replay.size, replay.count)
    states, actions, rewards, following = replay.gather(np.stack([every, every]), np.full((2, 3), 0.5, np.float32))
    numbers = np.array([100 * (t // 7) + t % 7 for t in every])
    assert np.array_equal(actions, np.stack([numbers, numbers]))
    assert np.array_equal(rewards, np.stack([numbers, -numbers]))
    for g in range(2):
        for f in range(3):
            assert np.array_equal(states[g, :, f], 0.5 * (10_000 * g + 1000 * f + numbers))
            assert np.array_equal(following[g, :, f], 0.5 * (10_000 * g + 1000 * f + numbers + 1))


def test_replay_keeps_each_groups_own_columns_from_the_extraction_on() -> None:
    replay = filled_replay(50, 2)
    replay.keep(np.array([[0, 2], [1, -1]]))
    one = np.ones((2, 2), np.float32)
    states = replay.gather(np.array([[3, 4], [5, 6]]), one)[0]
    assert states.tolist() == [[[3, 2003], [4, 2004]], [[11005, 0], [11006, 0]]]
    replay.start_episode(np.full((2, 2), 7))
    replay.add(np.zeros(2, int), np.zeros(2), np.full((2, 2), 8))
    assert replay.gather(np.array([[14], [14]]), one)[3].tolist() == [[[8, 8]], [[8, 8]]]
    assert replay.last_frame.tolist() == [[8, 8], [8, 8]]


def test_replay_draws_uniformly_with_replacement_and_each_group_its_own() -> None:
    replay = filled_replay(20, 5)
    drawn = np.stack([replay.draw(seeds(2), step, 32) for step in range(2000)], axis=1)
    assert drawn.shape == (2, 2000, 32)
    assert drawn.min() == 15 and drawn.max() == 34  # the last 20 of 35
    for g in range(2):
        frequency = np.bincount(drawn[g].ravel() - 15) / drawn[g].size * 20
        assert np.abs(frequency - 1).max() < 0.06
    assert not np.array_equal(drawn[0], drawn[1])
    assert (np.diff(np.sort(drawn[0], axis=1), axis=1) == 0).any(axis=1).all()  # 32 of 20: always repeats


def test_replay_refuses_an_episode_that_stopped_short() -> None:
    replay = filled_replay(50, 1)
    replay.add(np.zeros(2, int), np.zeros(2), np.zeros((2, 3), int))
    with pytest.raises(ValueError, match="7 decisions"):
        replay.start_episode(np.zeros((2, 3), int))


# --- whole trainings ---


def toys(count: int = 1, **options: object) -> list[ToyEnvironment]:
    return [ToyEnvironment((3, 2), seed=seed, **options) for seed in range(count)]  # type: ignore[arg-type]


def graph_bytes(trained: Trained | None) -> bytes:
    assert trained is not None
    buffer = io.BytesIO()
    for snapshot in (each for kept in trained.snapshots for each in kept):
        for array in (array for theta in snapshot.theta for array in theta):
            np.save(buffer, array)
    for kept in dataclasses.astuple(trained.choice):
        np.save(buffer, kept)
    return buffer.getvalue()


def same_rows(a: list[EpisodeRow], b: list[EpisodeRow]) -> bool:
    def numbers(rows: list[EpisodeRow]) -> list[list[float]]:
        return [[v for v in dataclasses.astuple(row) if not isinstance(v, str | tuple)] for row in rows]

    return np.array_equal(np.array(numbers(a)), np.array(numbers(b)), equal_nan=True) and all(
        x.alphas == y.alphas for x, y in zip(a, b, strict=True)
    )


def test_same_seed_same_bytes_other_seed_other_bytes() -> None:
    first, second = (train(toys(), [5], LSB, TINY) for _ in range(2))
    assert graph_bytes(first) == graph_bytes(second)
    assert first is not None and second is not None and same_rows(first.rows, second.rows)
    assert graph_bytes(train(toys(), [6], LSB, TINY)) != graph_bytes(first)


@pytest.mark.parametrize("killed_after", [0, 2, 3, 5])  # in the search, at the extraction, in the refinement
def test_resumed_equals_uninterrupted(tmp_path: Path, killed_after: int) -> None:
    whole = train(toys(2), [1, 2], LSB, TINY)
    checkpoint = tmp_path / "checkpoint.pt"
    assert train(toys(2), [1, 2], LSB, TINY, execution=Execution(checkpoint=checkpoint, stop_after=killed_after)) is None
    shown: list[EpisodeRow] = []
    resumed = train(
        toys(2),
        [1, 2],
        LSB,
        TINY,
        execution=Execution(resume_from=checkpoint),
        progress=lambda state: shown.extend(state.rows),
    )
    assert whole is not None and resumed is not None
    assert graph_bytes(resumed) == graph_bytes(whole)
    assert same_rows(resumed.rows, whole.rows)
    assert same_rows(shown, whole.rows)
    assert all(np.array_equal(a, b) for a, b in zip(resumed.alphas, whole.alphas, strict=True))


def test_threads_and_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = train(toys(3), [1, 2, 3], LSB, TINY)
    assert graph_bytes(train(toys(3), [1, 2, 3], LSB, TINY, execution=Execution(threads=3))) == graph_bytes(whole)
    monkeypatch.setattr("model.train.search_and_refine.BLOCK_GROUPS", 2)
    split = train(toys(3), [1, 2, 3], LSB, TINY, execution=Execution(threads=2))
    assert whole is not None and split is not None
    for a, b in zip(whole.snapshots, split.snapshots, strict=True):
        for ours, theirs in zip(a[0].theta, b[0].theta, strict=True):
            for array, other in zip(ours, theirs, strict=True):
                assert np.array_equal(array, other)


def test_alike_intersections_may_share_one_network() -> None:
    alike = [ToyEnvironment((3, 3), seed=seed) for seed in range(2)]
    config = dataclasses.replace(TINY, share=True)
    trained = train(alike, [1, 2], LSB, config)
    assert trained is not None
    assert len(trained.choice.features) == 2 and [len(each.theta) for each in trained.snapshots[0]] == [1, 1, 1]
    alone = train([ToyEnvironment((3, 3), seed=1)], [2], LSB, config)
    assert alone is not None
    for a, b in zip(trained.snapshots[1][0].theta[0], alone.snapshots[0][0].theta[0], strict=True):
        np.testing.assert_allclose(a[..., : b.shape[-1]], b, atol=1e-5, rtol=1e-5)
    with pytest.raises(InputError, match="differ in phases or lanes"):
        train(toys(), [1], LSB, config)


def test_the_weights_after_the_best_episodes_are_kept() -> None:
    trained = train(toys(2), [1, 2], LSB, TINY)
    assert trained is not None
    for replica, (final, *best) in enumerate(trained.snapshots):
        times = {
            row.episode: row.average_travel_time_s for row in trained.rows if row.stage == "refine" and row.replica == replica
        }
        assert final.episode == 3
        assert [each.episode for each in best] == sorted(times, key=lambda episode: times[episode])[:2]
        assert all(each.average_travel_time_s == times[each.episode] for each in best)
        assert not np.array_equal(best[0].theta[0][0], best[1].theta[0][0])


def test_frames_are_the_kept_features_of_late_states() -> None:
    trained = train(toys(1), [1], LSB, TINY)
    assert trained is not None
    for g, frame in enumerate(trained.frames):
        assert frame.shape == (2 * 20, sum(trained.kept_widths(g)))


def test_a_foreign_or_broken_checkpoint_is_refused(tmp_path: Path) -> None:
    checkpoint = tmp_path / "checkpoint.pt"
    train(toys(), [1], LSB, TINY, task={"flow": 3}, execution=Execution(checkpoint=checkpoint, stop_after=1))
    with pytest.raises(InputError, match="flow: the checkpoint has 3, this run 4: delete it to start afresh"):
        train(toys(), [1], LSB, TINY, task={"flow": 4}, execution=Execution(resume_from=checkpoint))
    with pytest.raises(InputError, match="train_seeds"):
        train(toys(), [2], LSB, TINY, execution=Execution(resume_from=checkpoint))
    with pytest.raises(InputError, match="config"):
        train(toys(), [1], LSB, dataclasses.replace(TINY, gamma=0.8), execution=Execution(resume_from=checkpoint))
    with pytest.raises(InputError, match="lsb_per_unit"):
        train(toys(), [1], (20, *LSB[1:]), TINY, execution=Execution(resume_from=checkpoint))
    with pytest.raises(InputError, match="can't be read"):
        train(toys(), [1], LSB, TINY, execution=Execution(resume_from=tmp_path / "missing.pt"))
    for content in ([], {"identity": []}, {"identity": {}, "episode": 1}, {"identity": 0} | dict.fromkeys(CHECKPOINT_KEYS, 0)):
        torch.save(content, checkpoint)
        with pytest.raises(InputError, match="not a training checkpoint"):
            train(toys(), [1], LSB, TINY, execution=Execution(resume_from=checkpoint))
    with pytest.raises(InputError, match="can't be read: Is a directory"):
        train(toys(), [1], LSB, TINY, execution=Execution(resume_from=tmp_path))
    checkpoint.write_bytes(b"nonsense")
    with pytest.raises(InputError, match="not a training checkpoint"):
        train(toys(), [1], LSB, TINY, execution=Execution(resume_from=checkpoint))


def test_a_budget_that_nothing_fits_is_refused_before_training() -> None:
    with pytest.raises(InputError, match=r"max_parameters: 30 is too little for 2 features at an intersection: at least 51$"):
        train(toys(), [1], LSB, dataclasses.replace(TINY, max_parameters=30))
    small = train(toys(), [1], LSB, dataclasses.replace(TINY, max_parameters=70))
    assert small is not None and small.choice.hidden[0].tolist() == [4, 3]


def test_limits_that_only_together_are_too_little_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    def fitting(shape: object, kept: int, budget: object) -> np.ndarray:
        return np.full((2, 4), sum(limit is not None for limit in vars(budget).values()) < 2)

    monkeypatch.setattr("model.train.search_and_refine.fitting_features", fitting)
    with pytest.raises(InputError, match=r"max_parameters: 90 is too little for 2 features .* within max_cycles 5 as well$"):
        train(toys(), [1], LSB, dataclasses.replace(TINY, max_parameters=90, max_cycles=5))


def test_replicas_train_as_they_would_alone() -> None:
    together = train(toys(3), [4, 5, 6], LSB, TINY)
    assert together is not None
    for replica in range(3):
        alone = train([ToyEnvironment((3, 2), seed=replica)], [4 + replica], LSB, TINY)
        assert alone is not None
        groups = slice(2 * replica, 2 * replica + 2)
        assert np.array_equal(together.choice.features[groups], alone.choice.features)
        for g in range(2):
            ours, theirs = together.snapshots[replica][0].theta[g], alone.snapshots[0][0].theta[g]
            for a, b in zip(ours, theirs, strict=True):
                np.testing.assert_allclose(a[..., : b.shape[-1]], b, atol=1e-5, rtol=1e-5)


def test_the_log_tells_each_episode() -> None:
    seen = []
    trained = train(toys(2), [1, 2], LSB, TINY, progress=seen.append)
    assert trained is not None
    assert [(p.done_episodes, p.total_episodes, len(p.rows)) for p in seen] == [(n, 7, 2) for n in range(1, 8)]
    assert [row.stage for row in trained.rows[::2]] == ["search"] * 3 + ["refine"] * 4
    assert [row.episode for row in trained.rows[1::2]] == [0, 1, 2, 0, 1, 2, 3]
    assert all(row.average_travel_time_s > 0 and row.loss > 0 for row in trained.rows)
    assert all(row.entropy_features > 0 for row in trained.rows if row.stage == "search")
    assert all(np.isnan(row.entropy_features) and row.epsilon == 0 for row in trained.rows if row.stage == "refine")


def test_it_learns_the_toy() -> None:
    """The trained sub-graph keeps the queues about as short as serving the longest one does, and that is what it looks at."""
    config = TrainingConfig(
        search_episodes=15,
        refine_episodes=20,
        layer2_dims=(8, 10),
        layer3_dims=(8, 10),
        epsilon=0.3,
        gamma=0.6,
        learning_rate=5e-3,  # 1,400 updates must do
    )
    environment = ToyEnvironment((3, 3), n_decisions=40)
    observation, done = environment.reset(), False
    while not done:
        observation, _, done = environment.step(observation[:, 0, :3].argmax(axis=1))
    longest_first = environment.average_travel_time_s()
    trained = train([environment], [0], LSB, config)
    assert trained is not None
    assert np.mean([row.average_travel_time_s for row in trained.rows[-5:]]) < 1.15 * longest_first
    assert (trained.choice.features[:, 0] == ToyEnvironment.feature_names.index("queues")).all()
