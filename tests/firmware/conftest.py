"""What several tests of the firmware start from."""

from pathlib import Path

import pytest

from tests.helpers.random_policy import write_random_policy


@pytest.fixture(scope="module")
def policy_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("build") / "policy.json"
    write_random_policy(file)
    return file
