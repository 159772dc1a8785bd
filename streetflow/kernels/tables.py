"""The engine's whole state as one record of arrays, in four memory blocks.

Kernels take the blocks (few arguments: each array argument costs time at every call) and slice them into a `State`
once. ``net`` blocks have a fixed size per engine; ``veh`` blocks grow. ``i`` blocks are int32, ``f`` blocks float64.

Indices: lanes, intersections, flows are numbered in file order; a *drivable* is a lane or a lane link, all lanes
first; a *slot* is a vehicle's row in the tables; -1 always means none. Units: m, s, m/s.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, NamedTuple, TypeAlias, get_type_hints

import numpy as np
from numpy.typing import NDArray

from streetflow.kernels.column import column
from streetflow.kernels.jit import helper

Ints: TypeAlias = NDArray[np.int32]
Floats: TypeAlias = NDArray[np.float64]

# counters[...]
STEP = 0  # steps done
FLIP = 1  # 0 or 1: which of the two buffers (distance_0/1, ...) holds the current values
N_RUNNING = 2
N_PRESENT = 3  # running, waiting and pending
N_FINISHED = 4
N_FREE = 5  # entries of free_slots
N_FREED = 6  # entries of freed_slots
N_PENDING = 7  # entries of pending
NEXT_EVENT = 8  # first entry of flow_order that hasn't started
N_ACTIVE_FLOWS = 9  # entries of active_flows
RNG_POSITION = 10  # next word of rng
OWN_LIGHTS = 11  # 1: lights run by their own plan
FAULT_SLOT = 12  # the vehicle that a StepError names
BROKEN = 13  # 1 after a fault in the middle of a step
N_TRIPS = 14  # entries of trip_...
N_CREATED = 15  # vehicles created since the last reset
N_NEEDED = 16  # free slots that the next step may need
LANE_CHANGE = 17  # 1: vehicles change lanes
TIDY_STEP = 18  # the step before which vehicles should be renumbered
REVISITS = 19  # 1: a route comes back to a road, see `plan_ahead`
N_COUNTERS = 20

# reals[...]
DELTA = 0  # the step, s
FLOW_CLOCK = 1  # s, accumulated
FINISHED_TIME = 2  # sum of the travel times of finished vehicles, s
N_REALS = 4

# kinds[kind * KIND_SIZE + ...]: parameters of a vehicle kind and values formed from them once
LENGTH = 0
WIDTH = 1
MAX_POS_ACC = 2
MAX_NEG_ACC = 3
USUAL_POS_ACC = 4
USUAL_NEG_ACC = 5
MIN_GAP = 6
MAX_SPEED = 7
HEADWAY = 8
HORIZON = 9
MAX_POS_STEP = 10  # A+ * delta
MAX_NEG_STEP = 11  # A- * delta
USUAL_POS_STEP = 12  # a+ * delta
USUAL_NEG_STEP = 13  # a- * delta
HEADWAY_DIVISOR = 14  # tau + delta / 2
MAX_FOUR_A = 15  # 4 * (0.5 / A-)
MAX_HALF_OVER_A = 16  # 0.5 / (0.5 / A-)
USUAL_FOUR_A = 17  # 4 * (0.5 / a-)
USUAL_HALF_OVER_A = 18  # 0.5 / (0.5 / a-)
SAME_BRAKES = 19  # 1.0 if A- == a- (and the minimum gap isn't negative)
STANDING_REST = 20  # a standing vehicle doesn't start towards a red light this near, m
KIND_SIZE = 24

# status[slot]
FREE = 0
PENDING = 1  # created, not planned yet
WAITING = 2  # in the entry queue of its first lane
RUNNING = 3

# role[slot]: a change of lanes is driven by two vehicles
SINGLE = 0
OWNER = 1  # on the lane that it leaves
SHADOW = 2  # on the target lane
ABORTED = 3  # a shadow that is removed in this step
DONE = 4  # an owner that is removed in this step: its shadow is the vehicle now

PRIORITY_BUCKETS = 1 << 16
WORD_BITS = 31  # used per int32 word of a bit set: words stay positive
RNG_WORDS = 624
NO_ENTRY_STEP = 2147483647


SLOT = "slot"


class State(NamedTuple):
    """Every table of a running engine. Annotation: element type, memory block, size, SLOT if values are slots."""

    counters: Annotated[Ints, "net", "counters"]
    reals: Annotated[Floats, "net", "reals"]
    rng: Annotated[Ints, "net", "rng"]  # MT19937 words, bit patterns
    priority_uses: Annotated[Ints, "net", "priority_buckets"]  # vehicles per low 16 bits of priority
    # drivables
    length: Annotated[Floats, "net", "drivables"]
    speed_limit: Annotated[Floats, "net", "drivables"]
    head: Annotated[Ints, "net", "drivables", SLOT]  # slot of the first vehicle of the list
    tail: Annotated[Ints, "net", "drivables", SLOT]
    n_vehicles: Annotated[Ints, "net", "drivables"]
    n_waiting: Annotated[Ints, "net", "drivables"]  # those slower than 0.1 m/s
    arrival_step: Annotated[Ints, "net", "drivables"]  # last step in which vehicles arrived
    arrival_after: Annotated[Ints, "net", "drivables", SLOT]  # tail before that step's arrivals
    occupied: Annotated[Ints, "net", "drivable_words"]  # bit set of the drivables that hold vehicles
    queued: Annotated[Ints, "net", "lane_words"]  # bit set of the lanes with an entry queue
    listed: Annotated[Ints, "net", "drivables"]  # scratch: what list_set_bits found
    # lanes
    queue_head: Annotated[Ints, "net", "lanes", SLOT]  # slots waiting to enter
    queue_tail: Annotated[Ints, "net", "lanes", SLOT]
    out_count: Annotated[Ints, "net", "lanes"]  # vehicles on the lane's outgoing lane links
    out_first: Annotated[Ints, "net", "lanes_1"]  # into out_links
    lane_width: Annotated[Floats, "net", "lanes"]
    segment_first: Annotated[Ints, "net", "segments_1"]  # into segment_head
    segment_head: Annotated[Ints, "net", "segments"]  # slot of the first vehicle of each segment of a lane
    # lane links, numbered from 0 (drivable number minus the number of lanes)
    out_links: Annotated[Ints, "net", "links"]  # drivables
    start_lane: Annotated[Ints, "net", "links"]
    end_lane: Annotated[Ints, "net", "links"]
    rank: Annotated[Ints, "net", "links"]  # straight 3, left 2, right 1
    is_turn: Annotated[Ints, "net", "links"]
    is_open: Annotated[Ints, "net", "links"]
    bit_word: Annotated[Ints, "net", "links"]  # the word of announcing that holds the lane link's bit
    bit_mask: Annotated[Ints, "net", "links"]
    conflicts: Annotated[Ints, "net", "link_words"]  # link * n_words + word: bits of crossing lane links
    crossing_first: Annotated[Ints, "net", "links"]  # its crossings, by ascending other lane link; equal ones are shared
    crossing_rank: Annotated[Ints, "net", "crossings"]  # its rank along the lane link: 0 is met first
    crossing_m: Annotated[Floats, "net", "crossings_2"]  # per crossing: distance along the own and the other lane link
    # intersections
    announcing: Annotated[Ints, "net", "intersection_words"]  # bits of lane links that may announce a vehicle
    word_first: Annotated[Ints, "net", "links"]  # the first word of the lane link's intersection
    beside_first: Annotated[Ints, "net", "links"]  # the first lane link of the lane link's intersection
    link_first: Annotated[Ints, "net", "intersections_1"]
    phase_first: Annotated[Ints, "net", "intersections_1"]
    phase_link_first: Annotated[Ints, "net", "phases_1"]
    phase_links: Annotated[Ints, "net", "phase_links"]
    phase_time: Annotated[Floats, "net", "phases"]
    phase_index: Annotated[Ints, "net", "intersections"]
    phase_remaining: Annotated[Floats, "net", "intersections"]
    # flows
    flow_start: Annotated[Ints, "net", "flows"]  # s
    flow_end: Annotated[Ints, "net", "flows"]  # s
    flow_kind: Annotated[Ints, "net", "flows"]
    flow_route: Annotated[Ints, "net", "flows"]
    flow_counter: Annotated[Ints, "net", "flows"]
    flow_dropped: Annotated[Ints, "net", "flows"]
    flow_order: Annotated[Ints, "net", "flows"]  # by start time
    active_flows: Annotated[Ints, "net", "flows"]  # ascending
    flow_interval: Annotated[Floats, "net", "flows"]
    flow_credit: Annotated[Floats, "net", "flows"]
    # vehicles, by slot
    status: Annotated[Ints, "veh", "slots"]
    kind: Annotated[Ints, "veh", "slots"]
    priority: Annotated[Ints, "veh", "slots"]
    route: Annotated[Ints, "veh", "slots"]
    path_index: Annotated[Ints, "veh", "slots"]  # index in path of the drivable that it is on or waits to enter
    place: Annotated[Ints, "veh", "slots"]  # position in its route of the last road on whose lane it was after a step
    jump_from: Annotated[Ints, "veh", "slots"]  # index in path of the lane from which it jumps, -1: none; see `plan_ahead`
    jump_to: Annotated[Ints, "veh", "slots"]
    jump_from_1: Annotated[Ints, "veh", "slots"]  # the jump after it, -1: none
    jump_to_1: Annotated[Ints, "veh", "slots"]
    jump_from_2: Annotated[Ints, "veh", "slots"]
    jump_to_2: Annotated[Ints, "veh", "slots"]
    planned_end: Annotated[Ints, "veh", "slots"]  # index in path of the last drivable planned (behind all jumps)
    following: Annotated[Ints, "veh", "slots"]  # path[path_index + 1] of a running vehicle: its next drivable
    behind: Annotated[Ints, "veh", "slots", SLOT]  # next vehicle of the list or queue
    previous: Annotated[Ints, "veh", "slots"]  # previous drivable
    link_entry_step: Annotated[Ints, "veh", "slots"]
    leader: Annotated[Ints, "veh", "slots", SLOT]  # of list heads only, but of all with lane changing
    gap: Annotated[Floats, "veh", "slots"]  # likewise; inf until the first leader
    blocker_0: Annotated[Ints, "veh", "slots", SLOT]
    blocker_1: Annotated[Ints, "veh", "slots", SLOT]
    distance_0: Annotated[Floats, "veh", "slots"]
    distance_1: Annotated[Floats, "veh", "slots"]
    speed_0: Annotated[Floats, "veh", "slots"]
    speed_1: Annotated[Floats, "veh", "slots"]
    custom_speed: Annotated[Floats, "veh", "slots"]  # NaN: none
    flow: Annotated[Ints, "veh", "slots"]  # -1: pushed
    ordinal: Annotated[Ints, "veh", "slots"]
    enter_step: Annotated[Ints, "veh", "slots"]  # step of creation
    entry_step: Annotated[Ints, "veh", "slots"]  # step of entry into the network, -1: not yet
    free_flow_s: Annotated[Floats, "veh", "slots"]  # undisturbed time over the drivables that it has left
    moving_step: Annotated[Ints, "veh", "slots"]  # last step after which its speed was 0.1 or more
    serial: Annotated[Ints, "veh", "slots"]  # order of creation
    role: Annotated[Ints, "veh", "slots"]  # SINGLE to DONE
    partner: Annotated[Ints, "veh", "slots", SLOT]  # the shadow of an owner, the owner of a shadow
    offset: Annotated[Floats, "veh", "slots"]  # of an owner: m sideways, positive outwards
    direction: Annotated[Ints, "veh", "slots"]  # of the signal that it sends: -1 inwards, 1 outwards, 0
    free_slots: Annotated[Ints, "veh", "slots", SLOT]
    freed_slots: Annotated[Ints, "veh", "slots", SLOT]  # free from the next step on
    pending: Annotated[Ints, "veh", "slots", SLOT]  # created, not planned yet, in order
    mover: Annotated[Ints, "veh", "slots"]  # vehicles that leave their drivable in this step
    mover_path_index: Annotated[Ints, "veh", "slots"]  # their new index in path, -1: trip ends
    mover_from: Annotated[Ints, "veh", "slots"]  # the drivables that they leave
    mover_to: Annotated[Ints, "veh", "slots"]  # those that they enter, -1: trip ends
    # of lane changing within one step, by slot
    segment: Annotated[Ints, "veh", "changers"]  # number of its segment on its lane
    segment_behind: Annotated[Ints, "veh", "changers"]  # next vehicle of the segment
    planner: Annotated[Ints, "veh", "changers"]  # vehicles that change or want to, in order of creation
    target_path_index: Annotated[Ints, "veh", "changers"]  # index in path of the lane that it wants to change to
    target_leader: Annotated[Ints, "veh", "changers"]
    target_follower: Annotated[Ints, "veh", "changers"]
    follower_gap: Annotated[Floats, "veh", "changers"]  # from the target follower
    signaller: Annotated[Ints, "veh", "changers"]  # the vehicle that it has received a signal from, -1: none
    settled: Annotated[Ints, "veh", "changers"]  # 1: its new speed is fixed
    # finished trips, in the order of their ends
    trip_flow: Annotated[Ints, "veh", "trips"]
    trip_ordinal: Annotated[Ints, "veh", "trips"]
    trip_created: Annotated[Ints, "veh", "trips"]  # steps
    trip_entered: Annotated[Ints, "veh", "trips"]
    trip_ended: Annotated[Ints, "veh", "trips"]
    trip_free_flow_s: Annotated[Floats, "veh", "trips"]
    # routes, lane paths, kinds
    path_inner: Annotated[Ints, "veh", "sideways"]  # by index in path: that of the lane beside, -1: no lane path there
    path_outer: Annotated[Ints, "veh", "sideways"]
    path: Annotated[Ints, "veh", "path"]  # drivables of all lane paths, one path after the other
    first_visit: Annotated[Ints, "veh", "path"]  # by index in path: that of its lane at the road's first visit, -1: only one
    next_visit: Annotated[Ints, "veh", "path"]  # likewise: at the next visit, -1: none
    route_position: Annotated[Ints, "veh", "path"]  # by index in path: position of its road in the route
    route_road: Annotated[Ints, "veh", "routes"]  # first anchor's road
    route_first: Annotated[Ints, "veh", "routes"]  # into candidate
    route_count: Annotated[Ints, "veh", "routes"]  # 0: invalid
    candidate: Annotated[Ints, "veh", "candidates"]  # index in path where the lane path from each entry lane starts
    kinds: Annotated[Floats, "veh", "kinds"]


class _Field(NamedTuple):
    name: str
    block: str  # net_i, net_f, veh_i or veh_f
    size: str
    holds_slots: bool


def _fields() -> tuple[_Field, ...]:
    hints: dict[str, Any] = get_type_hints(State, include_extras=True)
    fields = []
    for name in State._fields:
        block, size, *meaning = hints[name].__metadata__
        suffix = "i" if hints[name].__origin__ == Ints else "f"
        fields.append(_Field(name, f"{block}_{suffix}", size, SLOT in meaning))
    return tuple(fields)


FIELDS = _fields()
SLOT_LISTS = ("free_slots", "freed_slots", "pending", "mover", "mover_path_index", "mover_from", "mover_to")
"""Fields of one entry per slot that aren't indexed by slot."""
_BLOCKS = ("net_i", "net_f", "veh_i", "veh_f")


def _make_unpack() -> Any:
    """Build ``unpack(net_i, net_f, veh_i, veh_f, offsets) -> State``: one column per field of `State`."""
    columns = (f"column({field.block}, offsets[{2 * k}], offsets[{2 * k + 1}])" for k, field in enumerate(FIELDS))
    source = f"def unpack({', '.join(_BLOCKS)}, offsets):\n    return State({', '.join(columns)})\n"
    names: dict[str, Any] = {"State": State, "column": column}
    exec(source, names)  # the field table is the only input
    return helper(names["unpack"])


unpack = _make_unpack()


def state_views(blocks: Sequence[NDArray[Any]], offsets: NDArray[np.int64]) -> State:
    """A `State` of numpy views of the four blocks."""
    by_name = dict(zip(_BLOCKS, blocks, strict=True))
    ranges = zip(offsets[::2].tolist(), offsets[1::2].tolist(), strict=True)
    return State(*(by_name[field.block][start:end] for field, (start, end) in zip(FIELDS, ranges, strict=True)))


class Tables:
    """The four memory blocks, their offsets, and a `State` of numpy views for use from Python."""

    def __init__(self, sizes: Mapping[str, int]) -> None:
        """sizes: element count for each size name of `State`."""
        self.sizes = dict(sizes)
        self.offsets = np.zeros(2 * len(FIELDS), np.int64)
        self.blocks: tuple[NDArray[Any], ...] = ()
        self.state = self._allocate()

    def _allocate(self) -> State:
        used = dict.fromkeys(_BLOCKS, 0)
        self.offsets = np.zeros_like(self.offsets)
        for k, field in enumerate(FIELDS):
            start = used[field.block]
            self.offsets[2 * k : 2 * k + 2] = start, start + self.sizes[field.size]
            padded = -(-self.sizes[field.size] // 16) * 16
            used[field.block] = start + padded
        blocks: dict[str, NDArray[Any]] = {
            name: np.zeros(size, np.int32 if name.endswith("i") else np.float64) for name, size in used.items()
        }
        if self.blocks:  # growing: the net blocks keep their place, so that views of them stay valid
            blocks["net_i"], blocks["net_f"] = self.blocks[0], self.blocks[1]
        self.blocks = tuple(blocks[name] for name in _BLOCKS)
        return state_views(self.blocks, self.offsets)

    @property
    def arguments(self) -> tuple[Any, ...]:
        """The first arguments of every entry point."""
        return (*self.blocks, self.offsets)

    def grow(self, name: str, least: int) -> bool:
        """Make room for ``least`` elements of a size of the veh blocks; content stays. True if memory moved."""
        return self.grow_all({name: least})

    def grow_all(self, least: Mapping[str, int]) -> bool:
        """`grow` for several sizes, by their names, in one move."""
        larger = {name: max(n, 2 * self.sizes[name]) for name, n in least.items() if n > self.sizes[name]}
        if not larger:
            return False
        self.sizes |= larger
        old = self.state
        self.state = self._allocate()
        for field in FIELDS:
            if field.block.startswith("veh"):
                before = getattr(old, field.name)
                getattr(self.state, field.name)[: before.size] = before
        return True
