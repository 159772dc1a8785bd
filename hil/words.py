"""Numbers with their nouns, for messages."""


def counted(count: int, one: str, many: str = "") -> str:
    """`1 try`, `3 tries`: the plural is `many`, or the singular with an s."""
    return f"{count} {one if count == 1 else many or one + 's'}"
