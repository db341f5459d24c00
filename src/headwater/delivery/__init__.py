"""What brings records to where they belong, on the client alone: works with any Kafka.

`from headwater.delivery import Worker` and the others: each is loaded when it is first asked for.
"""

# The name that type checkers take for true; `typing` itself takes longer to load than all of this.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from headwater.client.failures.verdicts import DeadLetter, Retry
    from headwater.delivery.audit.audit_stage import AuditStage
    from headwater.delivery.redrive.async_redrives import AsyncRedrives
    from headwater.delivery.redrive.letters.letter import Letter
    from headwater.delivery.redrive.letters.letter_filter import LetterFilter
    from headwater.delivery.redrive.redrives import Redrives
    from headwater.delivery.redrive.tasks.plan import Edits, RedrivePlan, To
    from headwater.delivery.worker.app import App
    from headwater.delivery.worker.async_worker import AsyncWorker
    from headwater.delivery.worker.policy import RetryPolicy
    from headwater.delivery.worker.worker import Worker

_MODULES = {
    "App": "delivery.worker.app",
    "AsyncRedrives": "delivery.redrive.async_redrives",
    "AsyncWorker": "delivery.worker.async_worker",
    "AuditStage": "delivery.audit.audit_stage",
    "DeadLetter": "client.failures.verdicts",
    "Edits": "delivery.redrive.tasks.plan",
    "Letter": "delivery.redrive.letters.letter",
    "LetterFilter": "delivery.redrive.letters.letter_filter",
    "RedrivePlan": "delivery.redrive.tasks.plan",
    "Redrives": "delivery.redrive.redrives",
    "Retry": "client.failures.verdicts",
    "RetryPolicy": "delivery.worker.policy",
    "To": "delivery.redrive.tasks.plan",
    "Worker": "delivery.worker.worker",
}

__all__ = [
    "App",
    "AsyncRedrives",
    "AsyncWorker",
    "AuditStage",
    "DeadLetter",
    "Edits",
    "Letter",
    "LetterFilter",
    "RedrivePlan",
    "Redrives",
    "Retry",
    "RetryPolicy",
    "To",
    "Worker",
]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


# Not for type checkers, which would take any name for one that exists.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        from importlib import import_module

        module = _MODULES.get(name)
        if module is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = globals()[name] = getattr(import_module(f"headwater.{module}"), name)
        return value
