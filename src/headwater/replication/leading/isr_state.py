"""The in-sync replicas as a leader must reckon with them, while a change of them is under way.

The ISR belongs to the controller: a leader only proposes to take somebody in or out. Until it knows
how that ended it has to be right either way. So there are two sets:

committed   what the controller has said; min.insync.replicas is held against it
maximal     the committed set and whoever is to join: the high watermark waits for all of these

A follower that is to leave stays in both until the controller has agreed, for until then it may
still be elected. There is one proposal at a time; an answer, or a newer image, ends it.
"""

from __future__ import annotations

from typing import NamedTuple


class IsrProposal(NamedTuple):
    """A change that a leader asks for; as an object it stands for one attempt."""

    leader_epoch: int
    #: The state that it starts from: the controller refuses it if there is a newer one.
    partition_epoch: int
    isr: tuple[int, ...]
    #: The lives of the members, as the leader knows them; -1 where it does not.
    broker_epochs: tuple[int, ...]


class IsrState:
    """Committed and proposed members of one partition; its owner is the partition."""

    __slots__ = ("committed", "maximal", "proposal")

    def __init__(self, committed: tuple[int, ...]) -> None:
        self.committed = committed
        self.maximal = frozenset(committed)
        self.proposal: IsrProposal | None = None

    def commit(self, isr: tuple[int, ...]) -> None:
        """The controller says who is in sync; whatever was proposed is settled by that."""
        self.committed = isr
        self.maximal = frozenset(isr)
        self.proposal = None

    def propose(self, proposal: IsrProposal) -> None:
        self.proposal = proposal
        self.maximal = frozenset((*self.committed, *proposal.isr))

    def withdraw(self) -> None:
        """The controller has refused, and nothing has changed."""
        self.commit(self.committed)
