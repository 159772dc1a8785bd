"""pytest --hil: skipped with the reason without it, a failure when the board is missing, a table at the end."""

import pytest

pytest_plugins = ["pytester"]

TEST = """
    import pytest

    def test_loop(closed_loop):
        assert closed_loop().passed

    def test_board(board):
        assert board.name

    @pytest.mark.hil
    def test_marked():
        pass

    def test_other():
        pass
"""


@pytest.fixture
def suite(pytester: pytest.Pytester) -> pytest.Pytester:
    pytester.makepyfile(TEST)
    return pytester


def test_without_a_board_the_tests_are_skipped_with_the_reason(suite: pytest.Pytester) -> None:
    result = suite.runpytest_subprocess("-rs")
    result.assert_outcomes(passed=1, skipped=3)
    result.stdout.fnmatch_lines(["*needs a board: run pytest with --hil=simavr*"])


def test_a_missing_board_is_a_failure(suite: pytest.Pytester) -> None:
    result = suite.runpytest_subprocess("--hil=/dev/ttyNone")
    outcomes = result.parseoutcomes()
    assert outcomes.get("failed", 0) + outcomes.get("errors", 0) == 2
    result.stdout.fnmatch_lines(["*/dev/ttyNone*"])


def test_an_unknown_network_is_a_failure(suite: pytest.Pytester) -> None:
    result = suite.runpytest_subprocess("--hil=simavr", "--hil-network=crosing")
    result.assert_outcomes(passed=2, errors=2)
    result.stdout.fnmatch_lines(["crosing: unknown network; did you mean crossing?*"])


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--hil=/dev/ttyNone"], "/dev/ttyNone: there is no such port: *"),
        (["--hil=simavr", "--hil-faults=bits=1"], "--hil-faults: 'bits=1' is no fault; *"),
        (["--hil=host", "--hil-faults=hang@3"], "--hil-faults: host can't do 'hang' on demand; *"),
        (["--hil=simavr", "--hil-baud=3"], "--hil-baud: 3 baud is out of range: 1200 to 2000000"),
        (["--hil=simavr", "--hil-f-cpu=3"], "--hil-f-cpu: 3 Hz is out of range: *"),
        (["--hil=simavr", "--hil-budget=0"], "--hil-budget: 0.0 s is no time that a decision may take"),
        (["--hil=simavr", "--hil-kernel=fast"], "kernel: unknown kernel 'fast'; there are auto, unrolled, table, c"),
        (["--hil=simavr", "--hil-policy=none.json"], "*none.json: there is no such file *"),
    ],
    ids=lambda value: value[-1] if isinstance(value, list) else "",
)
def test_bad_input_is_told_in_one_line(suite: pytest.Pytester, options: list[str], told: str) -> None:
    """No trace of the code that has found it out."""
    result = suite.runpytest_subprocess(*options, "-k", "loop")
    outcomes = result.parseoutcomes()
    assert outcomes.get("failed", 0) + outcomes.get("errors", 0) == 1 and "passed" not in outcomes
    result.stdout.fnmatch_lines([told])
    for traced in ("E  *", "*.py:[0-9]*", "During handling*"):
        result.stdout.no_fnmatch_line(traced)


def test_verdicts_are_printed_and_reported(suite: pytest.Pytester) -> None:
    result = suite.runpytest_subprocess("--hil=simavr", "--hil-baud=500000", "--junitxml=report.xml")
    result.assert_outcomes(passed=4)
    result.stdout.fnmatch_lines(["*hardware in the loop*", "*crossing/0 simavr*"])
    report = (suite.path / "report.xml").read_text()
    assert 'name="hil.latency"' in report and 'name="hil.equality" value="pass: 180 of 180' in report


def test_fixtures_and_parameters_of_the_same_name_are_left_alone(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import pytest

        @pytest.fixture
        def board():
            return 1

        def test_own_fixture(board):
            assert board == 2

        @pytest.mark.parametrize("closed_loop", [1])
        def test_parameter(closed_loop):
            assert closed_loop == 2
        """
    )
    pytester.runpytest_subprocess().assert_outcomes(failed=2)


def test_an_empty_board_is_a_failure_not_a_skip(suite: pytest.Pytester) -> None:
    outcomes = suite.runpytest_subprocess("--hil=").parseoutcomes()
    assert outcomes.get("failed", 0) + outcomes.get("errors", 0) == 2 and "skipped" not in outcomes
