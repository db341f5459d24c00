"""One broker's part in its cluster: its session, its registration, its image, and perhaps the seat.

A broker registers in the metadata store (`/brokers/ids/<id>`), watches `/controller`, and stands
for election whenever there is none. Whoever is elected takes the *seat*: a `Controller` and the
`ImageDistribution` that brings its image to all brokers. Everyone else, and the controller's own
broker too, only receives: `receive` takes the controller's message, checks that no later controller
has been heard of, lets the subscribers follow, and replaces the image.

When the store ends the session (the broker was cut off, or stood still for too long), the seat is
lost, and a new session begins with a new registration. Partitions stay as they are until the
controller says otherwise: their leader epochs and the ISR keep a leader that was replaced from
acknowledging anything.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import Final, NamedTuple

from headwater.base.background_tasks import BackgroundTasks
from headwater.base.clocks import Clock
from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.randomness import SeededRandom
from headwater.cluster.brokers.registration import register_broker
from headwater.cluster.controller.controller import Controller
from headwater.cluster.controller.election import (
    Election,
    controller_named,
    elect_controller,
)
from headwater.cluster.image.distribution import ImageDistribution, SendUpdate
from headwater.cluster.image.image import NO_CONTROLLER, BrokerInfo, ClusterImage
from headwater.cluster.image.publisher import ImagePublisher, Subscriber
from headwater.cluster.image.reception import InvalidImageError, fits, updated
from headwater.cluster.node_documents import CorruptNodeError
from headwater.cluster.node_locations import CONTROLLER, broker_path
from headwater.cluster.session_lease import SessionLease
from headwater.cluster.store.errors import (
    BadVersionError,
    NoNodeError,
    SessionExpiredError,
    StoreError,
)
from headwater.cluster.store.metadata_store import MetadataStore, Node, StoreConnector
from headwater.cluster.topics.new_topic import ControllerOptions
from headwater.wire.cluster_messages.update_image import UpdateImageRequest, UpdateImageResponse

_logger = logging.getLogger(__name__)

#: Before trying again what the store, or a broker that took the seat at the same time, refused.
_PAUSE_S: Final = 0.1
#: A store that cannot be reached must not keep a broker from stopping.
_SIGN_OFF_LIMIT_S: Final = 2.0


class _Seat(NamedTuple):
    """What an elected broker has and others have not."""

    controller: Controller
    distribution: ImageDistribution

    async def leave(self) -> None:
        await self.distribution.close()
        await self.controller.close()


class ClusterMember:
    """Use: `subscribe` those who follow the image, `start`, `close`."""

    def __init__(
        self,
        connector: StoreConnector,
        broker: BrokerInfo,
        options: ControllerOptions,
        clock: Clock,
        random: SeededRandom,
        send: SendUpdate,
        tasks: BackgroundTasks,
        *,
        old_session_s: float = 0.0,
    ) -> None:
        """`old_session_s`: how long a session of this broker's last life may outlive it."""
        #: This broker; with its epoch once it is registered.
        self.broker = broker
        #: The broker that `/controller` names, or `NO_CONTROLLER`.
        self.controller_id = NO_CONTROLLER
        self._connector = connector
        self._options = options
        self._clock = clock
        self._random = random
        self._send = send
        self._tasks = tasks
        self._old_session_s = old_session_s
        self._publisher = ImagePublisher()
        self._receiving = asyncio.Lock()
        self._controller_epoch = 0
        self._has_image = False
        self._last_refusal = ""
        #: Set when it has an image and knows the controller.
        self._is_ready = asyncio.Event()
        self._seat: _Seat | None = None
        self._is_deposed = False
        self._session: MetadataStore | None = None
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._lease = SessionLease(asyncio.get_running_loop().time)
        self._lease_task: asyncio.Task[None] | None = None

    @property
    def image(self) -> ClusterImage:
        """The cluster as this broker knows it."""
        return self._publisher.image

    @property
    def is_up_to_date(self) -> bool:
        """Whether nobody can have taken over what this broker has, without its knowledge.

        It is registered for certain, and has heard from the controller since it registered. (A
        leader that is moved elsewhere, while the controller cannot reach it, does not know that.)
        """
        return self._is_addressed(self.image) and self._lease.holds

    @property
    def has_session(self) -> bool:
        """Whether its session with the metadata store, and so its registration, lasts for sure."""
        return self._lease.holds

    @property
    def is_controller(self) -> bool:
        return self._seat is not None

    @property
    def controller(self) -> Controller:
        """The controller if this broker is it; KafkaError NOT_CONTROLLER if another one is."""
        if self._seat is None:
            raise KafkaError(
                ErrorCode.NOT_CONTROLLER,
                f"The controller is broker {self.controller_id}, not this one."
                if self.controller_id != NO_CONTROLLER
                else "A controller is being elected.",
            )
        return self._seat.controller

    def subscribe(self, subscriber: Subscriber) -> None:
        """Have `subscriber` called with every change, and awaited before it counts as followed."""
        self._publisher.subscribe(subscriber)

    # -- the life of a member --------------------------------------------------------------------

    async def start(
        self, session: MetadataStore, *, is_unclean: bool, is_restarted: bool = False
    ) -> None:
        """Register, and return when the controller has told this broker its first image.

        That may be in another session, if the store ends this one meanwhile. `is_restarted`: the
        broker's last life did not end in order; `is_unclean`: and its logs may lack their ends.
        KafkaError if the broker's id is taken.
        """
        while True:
            try:
                await self._register(session, is_unclean=is_unclean, is_restarted=is_restarted)
                break
            except SessionExpiredError:
                _logger.warning("The session with the metadata store is over; another one begins.")
                session = await self._connector.connect()
        self._task = asyncio.get_running_loop().create_task(
            self._live(session), name="membership in the cluster"
        )
        arrival = asyncio.ensure_future(self._is_ready.wait())
        await asyncio.wait({self._task, arrival}, return_when=asyncio.FIRST_COMPLETED)
        arrival.cancel()
        if self._task.done():
            self._task.result()
        # Until here its failure was that of the start.
        self._tasks.watch(self._task, expected=(KafkaError, StoreError, CorruptNodeError))

    async def close(self) -> None:
        """Leave the cluster; the sessions are their owner's to close."""
        self._end_lease()
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})
        await self._leave_seat()
        session, self._session = self._session, None
        if session is not None:
            await self._sign_off(session)

    async def _sign_off(self, session: MetadataStore) -> None:
        """Take back what says that this broker is there, and is the controller.

        The session does that too, but it goes on until the logs are closed: leaders would wait for
        this broker meanwhile, and nobody would rule.
        """
        with contextlib.suppress(StoreError, KafkaError, TimeoutError):
            async with asyncio.timeout(_SIGN_OFF_LIMIT_S):
                for path in (CONTROLLER, broker_path(self.broker.broker_id)):
                    node = await session.exists(path)
                    if node is not None and node.ephemeral_owner == session.session_id:
                        await session.delete(path, node.version)

    async def _register(
        self, session: MetadataStore, *, is_unclean: bool = False, is_restarted: bool = False
    ) -> None:
        self._session = session
        session.on_expired(self._wake.set)
        self.broker = await register_broker(
            session,
            self.broker,
            self._clock.wall_ms(),
            is_unclean=is_unclean,
            is_restarted=is_restarted,
            wait_s=self._old_session_s,
        )
        _logger.info(
            "Broker %d is registered, with epoch %d.",
            self.broker.broker_id,
            self.broker.broker_epoch,
        )
        self._end_lease()
        self._lease_task = self._tasks.start("session lease", self._lease.keep(session))

    def _end_lease(self) -> None:
        self._lease.end()
        if self._lease_task is not None:
            self._lease_task.cancel()
            self._lease_task = None

    async def _live(self, session: MetadataStore) -> None:
        while True:
            try:
                await self._follow_controller(session)
            except SessionExpiredError:
                _logger.warning("The session with the metadata store is over; another one begins.")
            await self._leave_seat()
            session = await self._reconnect()

    async def _reconnect(self) -> MetadataStore:
        while True:
            session = await self._connector.connect()
            try:
                # Nothing was lost meanwhile: the process has been there all along.
                await self._register(session)
                return session
            except (StoreError, KafkaError) as error:
                _logger.warning("This broker could not register again: %s", error)
                with contextlib.suppress(StoreError, KafkaError):
                    await session.close()
                await asyncio.sleep(_PAUSE_S)

    async def _follow_controller(self, session: MetadataStore) -> None:
        """See to it that there is a controller, until the session is over."""
        while True:
            self._wake.clear()
            try:
                node = await session.exists(CONTROLLER, lambda _: self._wake.set())
                is_settled = await self._consider(session, node)
            except SessionExpiredError:
                raise
            except (StoreError, KafkaError, CorruptNodeError) as error:
                if isinstance(error, CorruptNodeError) and not self._has_image:
                    raise
                _logger.warning("The election of a controller is tried again: %s", error)
                await self._leave_seat()
                await asyncio.sleep(_PAUSE_S)
                continue
            if is_settled:
                await self._wake.wait()

    async def _consider(self, session: MetadataStore, node: Node | None) -> bool:
        """What follows from `/controller` as it is; whether there is nothing more to do."""
        if node is None:
            await self._leave_seat()
            election = await elect_controller(session, self.broker.broker_id, self._clock.wall_ms())
            if election.won:
                await self._take_seat(session, election)
            return False
        is_own = node.ephemeral_owner == session.session_id
        if self._is_deposed or not is_own:
            await self._leave_seat()
        controller_id = controller_named(node)
        if controller_id == NO_CONTROLLER or (is_own and self._seat is None):
            # It names nobody, or this broker, which does not rule: so let there be another one.
            with contextlib.suppress(NoNodeError, BadVersionError):
                await session.delete(CONTROLLER, node.version)
            return False
        self._know_controller(controller_id)
        return True

    # -- the seat --------------------------------------------------------------------------------

    async def _take_seat(self, session: MetadataStore, election: Election) -> None:
        self._is_deposed = False
        distribution = ImageDistribution(
            self.broker.broker_id, self._send, self._depose, self._tasks
        )
        controller = Controller(
            session,
            election,
            distribution,
            self._options,
            self._clock,
            self._random.child(f"controller {election.epoch}"),
            self._depose,
            self._tasks,
        )
        seat = _Seat(controller, distribution)
        try:
            await controller.start()
        except BaseException:
            await seat.leave()
            raise
        # Only now, because nobody may ask a controller that has not loaded its image.
        self._seat = seat
        self._know_controller(self.broker.broker_id)
        _logger.info("Broker %d is the controller, epoch %d.", self.controller_id, election.epoch)

    def _know_controller(self, controller_id: int) -> None:
        self.controller_id = controller_id
        if self._has_image and controller_id != NO_CONTROLLER:
            self._is_ready.set()

    async def _leave_seat(self) -> None:
        seat, self._seat = self._seat, None
        if seat is not None:
            _logger.info("Broker %d is not the controller any more.", self.broker.broker_id)
            self.controller_id = NO_CONTROLLER
            await seat.leave()

    def _depose(self) -> None:
        self._is_deposed = True
        self._wake.set()

    # -- receiving -------------------------------------------------------------------------------

    async def receive(self, request: UpdateImageRequest) -> UpdateImageResponse:
        """Follow the controller's message; the answer says what this broker has then."""
        async with self._receiving:
            if request.controller_epoch < self._controller_epoch:
                return UpdateImageResponse(error_code=ErrorCode.STALE_CONTROLLER_EPOCH)
            image = self.image
            is_late = (
                request.controller_epoch == image.controller_epoch
                and request.to_version < image.version
            )
            if is_late or not fits(image, request):
                return UpdateImageResponse(
                    error_code=ErrorCode.INVALID_UPDATE_VERSION, version=image.version
                )
            try:
                change = updated(image, request)
            except InvalidImageError as error:
                return self._refuse(error)
            if not self._is_addressed(change.image):
                return UpdateImageResponse(error_code=ErrorCode.STALE_BROKER_EPOCH)
            self._controller_epoch = request.controller_epoch
            await self._publisher.publish(change)
            self._has_image = True
            self._know_controller(self.controller_id)
            return UpdateImageResponse(version=request.to_version)

    def _refuse(self, error: InvalidImageError) -> UpdateImageResponse:
        if str(error) != self._last_refusal:
            # Once, however often the message is sent again.
            self._last_refusal = str(error)
            _logger.error("A message about the cluster is refused: %s", error)
        return UpdateImageResponse(error_code=error.code)

    def _is_addressed(self, image: ClusterImage) -> bool:
        """Whether the controller speaks to this life of the broker.

        What it decided for an earlier one, it may not let this one do: that one had the ends of its
        logs, and this one may have lost them.
        """
        told = image.brokers.get(self.broker.broker_id)
        return told is not None and told.broker_epoch == self.broker.broker_epoch
