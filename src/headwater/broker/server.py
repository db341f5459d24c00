"""The broker as a whole: its parts are made, started and stopped here, and nowhere else.

Start: the listeners take their addresses first, so that an occupied port is told at once; requests
that come before the broker is ready wait, and `/ready` says what for. Then come the metadata store,
the log directories and the logs (which may mean recovery). Only then does the broker register, so
that nobody makes it a leader of what it has not loaded, and waits for the controller to tell it
which partitions it has. Stopping goes the other way: leaderships are handed over, no more requests,
answers to those under way, background tasks, logs, store; what is left behind is clean.

What can keep a broker from starting is raised with one sentence: OSError for an address,
`SettingError` for settings, `StartError` for directories and stores.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from typing import TYPE_CHECKING

from headwater import __version__
from headwater.base.background_tasks import BackgroundTasks
from headwater.base.checks import require
from headwater.base.counted import counted
from headwater.base.errors import KafkaError
from headwater.base.log_origin import LogOrigin
from headwater.base.loop_timer import LoopTimer
from headwater.base.settings import SettingError, SettingValues
from headwater.base.threads import RunInThread
from headwater.broker.access.broker_proof import BrokerProof
from headwater.broker.context import BrokerContext
from headwater.broker.environment import BrokerEnvironment
from headwater.broker.fetch.sessions import FetchSessions
from headwater.broker.metrics.broker_metrics import BrokerMetrics
from headwater.broker.metrics.health import BrokerHealth
from headwater.broker.metrics.load_meter import LoadMeter
from headwater.broker.peers.controlled_shutdown import hand_over_leaderships
from headwater.broker.peers.departed_brokers import DepartedBrokers
from headwater.broker.peers.leader_rebalancing import LeaderRebalancing, make_rebalancing
from headwater.broker.requests.api_table import API_TABLE
from headwater.broker.requests.dispatcher import Dispatcher
from headwater.broker.requests.listeners import Listeners
from headwater.broker.requests.tasks import RequestTasks
from headwater.broker.settings.broker_settings import BrokerSettings
from headwater.broker.start.cluster_entry import enter_cluster
from headwater.broker.start.descriptor_shares import share_descriptors
from headwater.broker.start.faults import START_FAULTS, StartError
from headwater.broker.start.log_loading import OnProgress, load_logs
from headwater.broker.start.options import (
    broker_info,
    controller_options,
    log_environment,
    old_session_s,
    partition_rules,
)
from headwater.broker.transactions.producer_ids import ProducerIds, allocate_block
from headwater.broker.wiring.audit import make_audit_publisher
from headwater.broker.wiring.coordinators import Coordinators
from headwater.broker.wiring.dead_letter_moves import BrokerMoves
from headwater.broker.wiring.image_follower import ImageFollower
from headwater.broker.wiring.log_upkeep import LogUpkeep
from headwater.broker.wiring.replication import Replication
from headwater.broker.wiring.telemetry import (
    TELEMETRY_APIS,
    make_client_telemetry,
    takes_client_metrics,
)
from headwater.broker.worker_pool import WorkerPool
from headwater.cluster.member import ClusterMember
from headwater.cluster.store.errors import StoreError
from headwater.cluster.store.metadata_store import StoreConnector
from headwater.net.endpoint import join_address, split_address
from headwater.replication.partition.partitions import Partitions
from headwater.replication.waiting.parked_requests import ParkedRequests
from headwater.storage.directories.directory_ownership import make_durable_dir
from headwater.storage.directories.log_directories import LogDirectories
from headwater.storage.directories.log_directory import LoadProgress
from headwater.storage.log_settings import log_directory_paths

if TYPE_CHECKING:
    from headwater.broker.metrics.metrics_endpoint import MetricsEndpoint

_logger = logging.getLogger(__name__)

#: A thread that computes may hold the interpreter for so long while the event loop waits for it.
_SWITCH_INTERVAL_S = 0.0005
_ANSWER_GRACE_S = 5.0


class BrokerServer:
    """One broker: `start`, then it serves until `stop`. Its owner is the event loop."""

    def __init__(
        self, settings: SettingValues, environment: BrokerEnvironment | None = None
    ) -> None:
        self.settings = BrokerSettings(settings)
        self.listeners = Listeners(self.settings)
        self._environment = environment or BrokerEnvironment()
        self._handles_max = self.settings.integer("log.handles.max")
        if self._environment.descriptors_max is not None:
            shares = share_descriptors(self._environment.descriptors_max, self._handles_max)
            self._handles_max = shares.handles_max
            self.listeners.limits.descriptor_connections_max = shares.connections_max
        # One thread, because each that once held a large batch keeps memory back.
        self._large_batch_pool = WorkerPool("large-batches", 1)
        self._request_pool = WorkerPool("io", self.settings.integer("num.io.threads"))
        self._background_pool = WorkerPool(
            "background", self.settings.integer("background.threads")
        )
        self._background = BackgroundTasks()
        self._connector: StoreConnector | None = None
        self._directories: LogDirectories | None = None
        self._upkeep: LogUpkeep | None = None
        self._context: BrokerContext | None = None
        self._coordinators: Coordinators | None = None
        self._replication: Replication | None = None
        self._rebalancing: LeaderRebalancing | None = None
        self._load = LoadMeter(self._request_pool)
        self._origin = LogOrigin()
        self.health = BrokerHealth(self._background)
        self._metrics_endpoint: MetricsEndpoint | None = None

    @property
    def context(self) -> BrokerContext:
        """The parts of the broker, once it has started."""
        return require(self._context, "the broker has not started")

    @property
    def addresses(self) -> list[str]:
        """Where it listens, as host:port with the real ports."""
        return [address for _, address in self.addresses_by_name()]

    def addresses_by_name(self) -> list[tuple[str, str]]:
        """The same with the names of the listeners."""
        return [
            (each.listener_name, join_address(each.host, each.port))
            for each in self.listeners.endpoints
        ]

    @property
    def metrics_address(self) -> str | None:
        """Where /metrics is served, if anywhere."""
        if self._metrics_endpoint is None:
            return None
        host, _ = split_address(self.settings.text("metrics.listen"))
        return join_address(host or "localhost", self._metrics_endpoint.port)

    async def wait_failed(self) -> Exception:
        """Return when the broker cannot go on, with the reason."""
        return await self._background.wait_failed()

    # -- starting --------------------------------------------------------------------------------

    async def start(self, on_progress: OnProgress | None = None) -> None:
        """Return when the broker serves; nothing is left behind if it cannot."""
        sys.setswitchinterval(_SWITCH_INTERVAL_S)
        self._origin.enter()
        clock = self._environment.clock
        begun_ms = clock.monotonic_ms()
        try:
            await self.listeners.start(self._run_for_requests)
            await self._start_metrics()
            await self._background.unless_failed(self._start(on_progress))
            _logger.info(
                "Broker %d is ready, with %s, after %d ms.",
                self.context.node_id,
                counted(len(self.context.partitions), "partition"),
                clock.monotonic_ms() - begun_ms,
            )
        except BaseException as error:
            await self._abandon()
            if isinstance(error, START_FAULTS) and not isinstance(error, SettingError):
                raise StartError(str(error)) from error
            raise

    async def _start(self, on_progress: OnProgress | None) -> None:
        environment, settings = self._environment, self.settings
        loop = asyncio.get_running_loop()
        paths = log_directory_paths(settings.values)
        await self._make_first_directory(paths[0])
        self.health.connects()
        connector = self._connector = await environment.open_store(
            settings, paths[0], environment.clock, self._run_in_background
        )
        entry = await enter_cluster(connector, settings, environment, paths)
        cluster_id, node_id, random = entry.cluster_id, entry.node_id, environment.random
        settings.identify(node_id)
        self._origin.broker_id = node_id
        directories = self._directories = LogDirectories.open(
            paths,
            log_environment(
                settings, environment.files, random.child("logs").generator, self._handles_max
            ),
            cluster_id=cluster_id,
            node_id=node_id,
        )
        # Not before: what keeps a broker from starting is one sentence, and no more.
        _logger.info(
            "Broker %d of cluster %s starts, with Headwater %s, at %s.",
            node_id,
            cluster_id,
            __version__,
            ", ".join(self._urls()),
        )
        settings.take_image(entry.image)

        def tell(progress: LoadProgress) -> None:
            self.health.loads(progress)
            if on_progress is not None:
                on_progress(progress)

        await load_logs(directories, environment.clock, self._run_in_background, tell)
        self.health.joins()
        timer = LoopTimer(loop)
        parked = ParkedRequests(timer)
        upkeep = self._upkeep = LogUpkeep(
            directories,
            settings,
            environment.clock,
            self._run_in_background,
            self._background,
            environment.run_compaction,
        )
        replication = self._replication = Replication(
            node_id,
            settings,
            environment.clock,
            parked,
            upkeep.cleaner,
            self._background,
            self._run_for_requests,
            BrokerMoves(
                lambda: self.context, lambda: self.addresses[0], environment.open_move_session
            ),
            lambda: self.context,
        )
        partitions = Partitions(
            directories,
            node_id=node_id,
            options_of=lambda topic: partition_rules(settings, topic),
            events=replication.events,
            isr_changes=replication.isr_changes,
            clock=environment.clock,
            run_in_thread=self._run_for_requests,
            run_in_one_thread=environment.run_in_thread or self._large_batch_pool.run,
            tasks=self._background,
            throttles=replication.throttles,
        )
        member = ClusterMember(
            connector,
            broker_info(settings, node_id, self.listeners.endpoints),
            controller_options(settings),
            environment.clock,
            random.child("member"),
            lambda broker, request: self.context.channels.send_update(broker, request),
            self._background,
            old_session_s=old_session_s(settings),
        )
        member.subscribe(ImageFollower(settings, partitions, directories, replication.delays))
        departed = DepartedBrokers(environment.clock)
        member.subscribe(departed)
        takes_metrics = takes_client_metrics(settings)
        context = self._context = BrokerContext(
            node_id=node_id,
            cluster_id=cluster_id,
            proof=BrokerProof(entry.secret, cluster_id, node_id, environment.draw_secret_bytes),
            settings=settings,
            member=member,
            departed=departed,
            partitions=partitions,
            parked=parked,
            directories=directories,
            replication=replication,
            fetch_sessions=FetchSessions(
                lambda: settings.integer("max.incremental.fetch.session.cache.slots"),
                random.child("fetch-sessions").generator,
                parked.watches,
            ),
            producer_ids=ProducerIds(lambda: allocate_block(self.context)),
            metrics=BrokerMetrics(),
            tasks=RequestTasks(loop),
            background=self._background,
            timer=timer,
            clock=environment.clock,
            random=random.child("handlers").generator,
            run_in_thread=self._run_for_requests,
            loop_time=loop.time,
            api_table=API_TABLE if takes_metrics else API_TABLE.without(TELEMETRY_APIS),
        )
        context.delays = replication.delays
        context.audit_publisher = make_audit_publisher(context)
        if takes_metrics:
            context.telemetry = make_client_telemetry(context)
        self._coordinators = Coordinators(context, random.child("coordinators").generator)
        self._coordinators.start()
        dispatch = Dispatcher(context)
        self.listeners.admit_controller(dispatch)
        boot_id = environment.boot_id
        await member.start(
            entry.session,
            is_unclean=directories.may_lack_records(boot_id),
            is_restarted=not all(each.was_clean for each in directories.directories),
        )
        await self._run_in_background(lambda: directories.note_boot(boot_id))
        replication.start(partitions)
        self._rebalancing = make_rebalancing(context)
        self._rebalancing.start()
        context.audit_publisher.start()
        self._follow_pool_sizes()
        self._load.start()
        self._show_metrics(context)
        upkeep.start()
        self.listeners.open_gate(dispatch)
        self.health.serves(member, directories)

    async def _start_metrics(self) -> None:
        """What it serves first is what the broker is waiting for."""
        address = self.settings.text("metrics.listen")
        if address:
            from headwater.broker.metrics.metrics_endpoint import MetricsEndpoint

            self._metrics_endpoint = await MetricsEndpoint.start(address, self.health)

    def _show_metrics(self, context: BrokerContext) -> None:
        if self._metrics_endpoint is not None:
            from headwater.broker.metrics.report import MetricsReport

            report = MetricsReport(context, self.listeners.limits, self._load)
            self._metrics_endpoint.pieces = report.pieces

    def _urls(self) -> list[str]:
        """All that it listens on, for people."""
        urls = [f"{name}://{address}" for name, address in self.addresses_by_name()]
        metrics = self.metrics_address
        return urls if metrics is None else [*urls, f"http://{metrics}"]

    async def _make_first_directory(self, path: str) -> None:
        """The metadata store's file is there before the log directories are opened."""
        try:
            files = self._environment.files
            await self._run_in_background(lambda: make_durable_dir(files, path))
        except OSError as error:
            raise StartError(
                f"The data directory {path} cannot be used: {error.strerror}."
            ) from error

    # -- threads ---------------------------------------------------------------------------------

    @property
    def _run_for_requests(self) -> RunInThread:
        return self._environment.run_in_thread or self._request_pool.run

    @property
    def _run_in_background(self) -> RunInThread:
        return self._environment.run_in_thread or self._background_pool.run

    def _follow_pool_sizes(self) -> None:
        def follow(name: str, pool: WorkerPool) -> None:
            self.settings.subscribe([name], lambda _: pool.resize(self.settings.integer(name)))

        follow("num.io.threads", self._request_pool)
        follow("background.threads", self._background_pool)

    # -- stopping --------------------------------------------------------------------------------

    async def stop(self) -> None:
        """Answer what is under way, leave everything durable, and let go of it."""
        self._origin.enter()
        self.health.stops()
        begun_ms = self._environment.clock.monotonic_ms()
        _logger.info("The broker stops.")
        context, upkeep, directories = self._context, self._upkeep, self._directories
        if context is not None:
            await hand_over_leaderships(context)
        await self._leave_cluster()
        self.listeners.stop_accepting()
        if context is not None:
            context.parked.fetch.complete_all()
            context.parked.follower_fetch.complete_all()
            if self._coordinators is not None:
                await self._coordinators.close()
            await context.tasks.finish()
        await self.listeners.close(_ANSWER_GRACE_S)
        if context is not None:
            context.parked.complete_all()
            await context.partitions.settle()
            for partition in context.partitions:
                await partition.close()
            context.timer.close()
        if upkeep is not None:
            await upkeep.stop()
        if directories is not None and context is not None:
            epoch = context.member.broker.broker_epoch
            self._directories = None
            await self._run_in_background(lambda: directories.shutdown(epoch))
        await self._abandon()
        elapsed_ms = self._environment.clock.monotonic_ms() - begun_ms
        _logger.info("The broker has stopped, in %d ms.", elapsed_ms)

    async def _leave_cluster(self) -> None:
        """Rule no more, follow no more; requests are still answered."""
        if self._rebalancing is not None:
            await self._rebalancing.close()
        if self._context is not None:
            await self._context.audit_publisher.close()
            if self._context.telemetry is not None:
                self._context.telemetry.close()
            await self._context.member.close()
        if self._replication is not None:
            await self._replication.close()

    async def _abandon(self) -> None:
        """Let go of everything, in whatever state it is."""
        await self._leave_cluster()
        self._load.stop()
        if self._metrics_endpoint is not None:
            self._metrics_endpoint.close()
        await self.listeners.close(0)
        if self._upkeep is not None:
            await self._upkeep.stop()
        if self._directories is not None:
            for directory in self._directories.directories:
                directory.ownership.release()
        connector, self._connector = self._connector, None
        if connector is not None:
            try:
                await connector.close()
            except (StoreError, KafkaError) as error:
                _logger.error("the metadata store could not be closed: %s", error)
        for pool in (self._request_pool, self._background_pool, self._large_batch_pool):
            pool.close()
