"""Wording of messages: numbers with their nouns, and fields by the name of the option that set them."""

import re
from collections.abc import Mapping


def counted(count: int, one: str, many: str = "") -> str:
    """`1 try`, `3 tries`: the plural is `many`, or the singular with an s."""
    return f"{count} {one if count == 1 else many or one + 's'}"


def named(text: str, options: Mapping[str, str]) -> str:
    """`text` with the option's name for each field that stands in backticks and that `options` has."""
    return re.sub("`([a-z_]+)`", lambda found: options.get(found[1], found[0]), text)
