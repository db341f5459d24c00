"""The trouble of a cluster with delays: besides, leaders go on alone, and clocks are set."""

from __future__ import annotations

from headwater.sim.broker_host import BrokerHost
from headwater.sim.campaigns.cluster_trouble import ClusterTrouble, Event


class DelayTrouble(ClusterTrouble):
    """Besides, leaders go on alone, the power goes in the middle of something, clocks are set."""

    #: How wrong the clock of a broker may be.
    clock_error_ms = 0

    def events(self) -> list[tuple[Event, int]]:
        return [
            *super().events(),
            (self.isolate, 8),
            (self.lose_power_midway, 4),
            (self.set_clock, 4 if self.clock_error_ms else 0),
        ]

    async def isolate(self, host: BrokerHost) -> None:
        """Nobody but clients reaches it: what it appends until it hears of another leader goes."""
        await self._cut_off(host, [*self._world.other_brokers(host), self._world.store_host])

    async def lose_power_midway(self, host: BrokerHost) -> None:
        host.cut_power_at(self._random.randrange(60))
        await host.wait_down(3.0)
        if not self.may_lose_power(host):
            host.kill()
        await self.lose_power(host)

    async def set_clock(self, host: BrokerHost) -> None:
        error_ms = self._world.clock.wall_ms() - host.clock.wall_ms()
        wrong_ms = self._random.randint(-self.clock_error_ms, self.clock_error_ms)
        host.clock.shift_wall(error_ms + wrong_ms)
