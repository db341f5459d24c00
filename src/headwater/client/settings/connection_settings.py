"""Makes the connection to a cluster that a client's settings ask for."""

from __future__ import annotations

from headwater.base.settings import SettingValues
from headwater.client.connection.cluster_connection import ClusterConnection
from headwater.client.connection.retry import RetryPolicy
from headwater.client.environment import ClientEnvironment


def make_connection(
    values: SettingValues,
    environment: ClientEnvironment | None = None,
    *,
    timeout_s: float | None = None,
    fetches_in_thread: bool = False,
) -> ClusterConnection:
    """A connection that is not opened yet.

    `timeout_s` is the time for a whole operation with its retries: `default.api.timeout.ms` of an
    admin or a consumer. Without it an operation has the time of a single request.
    """
    environment = environment or ClientEnvironment()
    request_timeout_s = values.integer("request.timeout.ms") / 1000
    return ClusterConnection(
        ",".join(values.texts("bootstrap.servers")),
        client_id=values.text("client.id"),
        timeout_s=request_timeout_s if timeout_s is None else timeout_s,
        request_timeout_s=request_timeout_s,
        connect_timeout_s=values.integer("socket.connection.setup.timeout.ms") / 1000,
        policy=retry_policy(values),
        generator=environment.generator,
        connect=environment.connect,
        fetches_in_thread=fetches_in_thread,
    )


def retry_policy(values: SettingValues) -> RetryPolicy:
    return RetryPolicy(
        backoff_ms=values.integer("retry.backoff.ms"),
        backoff_max_ms=values.integer("retry.backoff.max.ms"),
    )
