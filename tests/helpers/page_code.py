"""The code of a page in docs, so that tests run what readers copy."""

from __future__ import annotations

import re
import shlex

from tests.helpers.places import ROOT


def code_blocks(page: str, language: str) -> list[str]:
    """The fenced blocks of docs/PAGE in that language, in order."""
    return re.findall(
        rf"^```{language}\n(.*?)^```", (ROOT / "docs" / page).read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    )


def commands(page: str) -> list[list[str]]:
    """The arguments of each `tinylight` command in the page's shell blocks."""
    lines = "\n".join(code_blocks(page, "sh")).replace("\\\n", " ").splitlines()
    return [shlex.split(line, comments=True)[1:] for line in lines if line.startswith("tinylight ")]
