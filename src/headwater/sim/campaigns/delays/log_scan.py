"""What waits in a log, read anew: from its start, or from what a checkpoint says."""

from __future__ import annotations

from headwater.delay.delay_state import DelayState
from headwater.delay.index.index import DelayIndex
from headwater.sim.clock import SimulatedClock
from headwater.sim.disk.faulty_disk import FaultyDisk
from headwater.storage.partition_log import PartitionLog


def scan_log(
    log: PartitionLog, disk: FaultyDisk, clock: SimulatedClock, *, from_checkpoint: bool
) -> DelayState:
    """What a broker finds out that has kept nothing, or a checkpoint."""
    files = FaultyDisk(0, clock=clock, directories=["/scan"])
    if from_checkpoint:
        for path, content in disk.contents().items():
            if "delay" in path.rpartition("/")[2]:
                files.open("/scan/" + path.rpartition("/")[2], create=True).write_at(0, content)
    index, checkpoint = DelayIndex.open(files, "/scan", clock.wall_ms())
    state = DelayState(log, index, lambda _key, _message: None, lambda _offset: None)
    if checkpoint is not None and state.is_of_this_log(checkpoint.state, checkpoint.offset):
        state.load_json(dict(checkpoint.state), checkpoint.offset)
    else:
        index.reset()
        state.restart(log.log_start_offset)
    state.follow_at_once()
    return state
