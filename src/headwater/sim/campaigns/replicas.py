"""Random histories of one replicated partition: what was acknowledged must outlive them.

One seed decides everything: who writes, who fetches when, whose answers are late or lost, which
broker ends, with or without what it had not synced, who is elected and who hears of it when. What
the faults may do is what the durability promise allows: at most one replica loses unsynced data at
a time, and it is out of the ISR before anything else happens. Old leaders live on until they hear
of the election, and are written to.

Checked on the way: the elected leader has everything that any leader has acknowledged. Checked in
the end, when everybody has heard everything: all replicas hold the same.
"""

from __future__ import annotations

from random import Random

from headwater.base.errors import KafkaError
from headwater.replication.following.options import FetcherOptions
from headwater.replication.following.plan import FetchPlan
from headwater.replication.leading.isr_state import IsrProposal
from headwater.replication.partition.options import AcksAllFlush, PartitionOptions
from headwater.sim.campaigns.logs import batch_of, read_records
from headwater.sim.campaigns.replica_set import Replica, ReplicaSet
from headwater.sim.disk.trace import note_contents, note_operations
from headwater.sim.trace import Trace
from headwater.storage.log_config import LogConfig
from headwater.wire.messages.fetch import FetchResponse
from headwater.wire.records import iter_batch_headers

BROKERS = (0, 1, 2)
LAG_MAX_MS = 10_000
RULES = PartitionOptions(2, AcksAllFlush.OFF, LAG_MAX_MS)
CONFIG = LogConfig(segment_bytes=700, index_interval_bytes=200)
#: Answers end somewhere within the third or fourth batch.
OPTIONS = FetcherOptions(max_wait_ms=0, max_partition_bytes=300, max_bytes=300)


class ReplicaCampaign:
    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.rng = Random(seed)
        self.replicas = ReplicaSet(BROKERS, CONFIG, RULES, seed)
        self.replicas.elect(0, BROKERS)
        self.trace = Trace(lambda: self.replicas.clock.monotonic_ms() / 1000)
        self.step_count = 0
        self.acknowledged: dict[int, bytes] = {}
        #: What leaders have taken and not acknowledged: (leader, its epoch) -> offset -> value.
        self.waiting: dict[tuple[int, int], dict[int, bytes]] = {}
        #: Answers under way, and the plans that asked.
        self.late: dict[int, tuple[FetchPlan, FetchResponse]] = {}
        self.written = 0
        self.steps = [
            (self.write, 12),
            (self.fetch, 40),
            (self.lose_answer, 2),
            (self.delay_answer, 4),
            (self.restart_cleanly, 1),
            (self.end_process, 1),
            (self.lose_power, 1),
            (self.move_leadership, 1),
            (self.hear, 6),
            (self.decide, 6),
            (self.lag, 1),
            (self.flush, 1),
            (self.delete_records, 1),
        ]

    def run(self, step_count: int) -> str:
        """Raises AssertionError, its first line the seed; returns the hash of the trace."""
        try:
            self._run(step_count)
        except Exception as error:
            raise AssertionError(
                f"seed {self.seed}, after {self.step_count} steps\n{error!r}\n{self.trace.latest()}"
            ) from error
        for broker in self.replicas.replicas.values():
            note_contents(self.trace, broker.disk, f"disk of {broker.node_id}")
        return self.trace.hash

    def _run(self, step_count: int) -> None:
        kinds = [step for step, weight in self.steps for _ in range(weight)]
        for _ in range(step_count):
            step = self.rng.choice(kinds)
            self.trace.note("step", step.__name__)
            step()
            self.take_note()
            if self.step_count % 10 == 0:
                self.check_acknowledged()
            self.step_count += 1
        self.heal()
        self.check_acknowledged()
        self.check_equal()

    # -- steps -----------------------------------------------------------------------------------

    def any_broker(self) -> Replica:
        return self.replicas[self.rng.choice(BROKERS)]

    def write(self) -> None:
        """To somebody who believes to be the leader."""
        leaders = [each for each in self.replicas.replicas.values() if each.partition.is_leader]
        if not leaders:
            return
        partition = self.rng.choice(leaders).partition
        values = [b"%d-%d" % (self.written, each) for each in range(self.rng.randint(1, 3))]
        self.written += 1
        try:
            result = partition.append(
                batch_of(*values), acks=-1, now_ms=self.replicas.clock.wall_ms()
            )
        except KafkaError:
            return  # Too few are in sync.
        key = (partition._environment.node_id, partition.leader_epoch)
        waiting = self.waiting.setdefault(key, {})
        waiting.update(enumerate(values, result.base_offset))

    def fetch(self) -> None:
        follower = self.any_broker()
        plan, late = self.late.pop(follower.node_id, (None, None))
        if late is not None and plan is follower.plan:
            self.replicas.take(follower.node_id, late, OPTIONS)
        self.replicas.clock.advance(self.rng.choice([1, 100]))
        response = self._ask(follower)
        if response is not None:
            self.replicas.take(follower.node_id, response, OPTIONS)

    def _ask(self, follower: Replica) -> FetchResponse | None:
        if follower.partition.is_leader or follower.plan.leader < 0:
            return None
        request = follower.plan.request(self.replicas.clock.monotonic_ms(), OPTIONS)
        if request is None:
            return None
        return self.replicas[follower.plan.leader].answer(request)

    def lose_answer(self) -> None:
        follower = self.any_broker()
        if follower.node_id not in self.late and self._ask(follower) is not None:
            follower.plan.failed()

    def delay_answer(self) -> None:
        follower = self.any_broker()
        if follower.node_id not in self.late:
            response = self._ask(follower)
            if response is not None:
                self.late[follower.node_id] = (follower.plan, response)

    def restart_cleanly(self) -> None:
        """It stays in sync: nothing is lost, but perhaps what it knew of the high watermark."""
        broker = self.any_broker()
        self.late.pop(broker.node_id, None)
        broker.log.flush()
        broker.stop(knows_high_watermark=self.rng.random() < 0.5)
        self._came_back(broker, is_clean=True)

    def end_process(self) -> None:
        broker = self.any_broker()
        self.late.pop(broker.node_id, None)
        broker.stop(knows_high_watermark=self.rng.random() < 0.5)
        self._came_back(broker, is_clean=False)

    def lose_power(self) -> None:
        broker = self.any_broker()
        self.late.pop(broker.node_id, None)
        broker.lose_power(self.rng, knows_high_watermark=self.rng.random() < 0.5)
        self._came_back(broker, is_clean=False)

    def _came_back(self, broker: Replica, *, is_clean: bool) -> None:
        """As the controller sees it: who may have lost something leaves the ISR, if it can."""
        replicas, node_id = self.replicas, broker.node_id
        isr = replicas.isr
        if not is_clean and len(isr) > 1:
            isr = tuple(each for each in isr if each != node_id)
        leader = self.rng.choice(isr) if replicas.leader == node_id else replicas.leader
        if leader != replicas.leader or isr != replicas.isr or replicas.leader == node_id:
            self._elect(leader, isr)
        for each in (node_id, leader):
            replicas.tell(each)

    def _elect(self, leader: int, isr: tuple[int, ...]) -> None:
        self._guard_the_last(isr)
        heard = [each for each in BROKERS if self.rng.random() < 0.6]
        self.replicas.elect(leader, isr, tell=heard)

    def _guard_the_last(self, isr: tuple[int, ...]) -> None:
        """Who is alone in sync has all on its disk before it is alone."""
        if len(isr) == 1:
            self.replicas[isr[0]].log.flush()

    def move_leadership(self) -> None:
        self._elect(self.rng.choice(self.replicas.isr), self.replicas.isr)

    def hear(self) -> None:
        self.replicas.tell(self.any_broker().node_id)

    def decide(self) -> None:
        """The controller looks at what leaders propose."""
        replicas = self.replicas
        for broker in replicas.replicas.values():
            proposals = list(broker.proposals.submitted)
            broker.proposals.submitted.clear()
            for proposal in proposals:
                if self._is_acceptable(proposal):
                    self._guard_the_last(proposal.isr)
                    replicas.change_isr(proposal.isr)
                elif broker.partition.is_leader and broker.node_id == replicas.leader:
                    replicas.change_isr(replicas.isr)  # Refused: what was before holds.

    def _is_acceptable(self, proposal: IsrProposal) -> bool:
        replicas = self.replicas
        lives = [replicas[each].broker_epoch for each in proposal.isr]
        return (
            proposal.leader_epoch == replicas.leader_epoch
            and proposal.partition_epoch == replicas.partition_epoch
            and list(proposal.broker_epochs) == lives
        )

    def lag(self) -> None:
        """Time passes without a fetch of some, who then fall behind."""
        self.replicas.clock.advance(LAG_MAX_MS + 1)
        leader = self.replicas[self.replicas.leader].partition
        if leader.leadership is not None:
            leader.leadership.check_isr()

    def flush(self) -> None:
        self.any_broker().log.flush()

    def delete_records(self) -> None:
        leader = self.replicas[self.replicas.leader].partition
        if leader.is_leader and self.rng.random() < 0.3:
            leader.delete_records(self.rng.randint(leader.log_start_offset, leader.high_watermark))

    # -- checks ----------------------------------------------------------------------------------

    def take_note(self) -> None:
        """What leaders' high watermarks have passed is acknowledged."""
        for broker in self.replicas.replicas.values():
            note_operations(self.trace, broker.disk, f"disk of {broker.node_id}")
        for (node_id, epoch), waiting in list(self.waiting.items()):
            partition = self.replicas[node_id].partition
            if not partition.is_leader or partition.leader_epoch != epoch:
                del self.waiting[node_id, epoch]  # Its producers are told that it is not known.
                continue
            for offset in [each for each in waiting if each < partition.high_watermark]:
                value = waiting.pop(offset)
                found = self.acknowledged.setdefault(offset, value)
                assert found == value, f"{offset} was acknowledged as {found!r} and as {value!r}"

    def check_acknowledged(self) -> None:
        log = self.replicas[self.replicas.leader].log
        found = {each.offset: each.value for each in read_records(log, log.log_start_offset)}
        for offset, value in self.acknowledged.items():
            if offset >= log.log_start_offset:
                assert found.get(offset) == value, (
                    f"{value!r} at {offset} was acknowledged, and leader {self.replicas.leader} "
                    f"has {found.get(offset)!r} there"
                )

    def heal(self) -> None:
        """Everybody hears everything, and followers catch up."""
        self.late.clear()
        for broker in self.replicas.replicas.values():
            broker.plan.failed()
        for _ in range(200):
            for node_id in BROKERS:
                self.replicas.tell(node_id)
                self.replicas.clock.advance(50)
                response = self._ask(self.replicas[node_id])
                if response is not None:
                    self.replicas.take(node_id, response, OPTIONS)
            self.decide()
            logs = [broker.log for broker in self.replicas.replicas.values()]
            ends = {each.log_end_offset for each in logs} | {each.high_watermark for each in logs}
            if len(self.replicas.isr) == len(BROKERS) and len(ends) == 1:
                break

    def check_equal(self) -> None:
        leader = self.replicas[self.replicas.leader].log
        assert len(self.replicas.isr) == len(BROKERS), f"only {self.replicas.isr} are in sync"
        for broker in self.replicas.replicas.values():
            log = broker.log
            start = max(log.log_start_offset, leader.log_start_offset)
            assert (log.log_end_offset, log.high_watermark) == (
                leader.log_end_offset,
                leader.log_end_offset,
            )
            assert _bytes_from(broker, start) == _bytes_from(
                self.replicas[self.replicas.leader], start
            )
            epochs = [each for each in log.leader_epochs.entries if each.start_offset > start]
            assert epochs == [
                each for each in leader.leader_epochs.entries if each.start_offset > start
            ]


def _bytes_from(broker: Replica, offset: int) -> bytes:
    """All batches from the one that holds `offset`."""
    log, found = broker.log, b""
    while (region := log.read(offset, 1 << 20, min_one_batch=True).region) is not None:
        data = region.read()
        found += data
        offset = [header.next_offset for _, header in iter_batch_headers(data)][-1]
    return found
