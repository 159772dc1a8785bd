"""Which vehicles a lane is for: SUMO's vehicle classes, as ``allow`` and ``disallow`` list them."""

from __future__ import annotations

from streetflow.sumo.xml_file import Element

ROAD_CLASSES = frozenset(
    {"passenger", "private", "taxi", "hov", "evehicle", "bus", "coach", "delivery", "truck", "trailer", "motorcycle", "moped"}
    | {"emergency", "authority", "army", "vip", "custom1", "custom2"}
)
"""Of motor traffic on roads. A lane for none of these (a footway, a cycle path, a railway) is no lane of ours."""
OTHER_CLASSES = frozenset(
    {"ignoring", "pedestrian", "bicycle", "scooter", "wheelchair", "tram", "rail_urban", "rail", "rail_electric", "rail_fast"}
    | {"ship", "container", "cable_car", "subway", "aircraft", "drone"}
)
ALL_CLASSES = ROAD_CLASSES | OTHER_CLASSES


def allowed_classes(element: Element) -> frozenset[str]:
    """The classes that may use a lane or a connection. A class of a newer SUMO counts as one of no road."""
    if "allow" in element.attributes:
        words = element.words("allow")
        return ALL_CLASSES if words == ["all"] else frozenset(words)
    words = element.words("disallow")
    return frozenset() if words == ["all"] else ALL_CLASSES - frozenset(words)
