"""The in-sync replicas as a leader must reckon with them, while a change of them is under way.

The ISR belongs to the controller: a leader only proposes to take somebody in or out. Until it knows
how that ended it has to be right either way. So there are two sets:

isr       what the controller has said; min.insync.replicas is held against it
maximal   the ISR and whoever is to join: the high watermark waits for all of these

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
    """Its owner is the partition's `InSyncReplicas`; whoever else has it only reads."""

    __slots__ = ("is_alone", "isr", "maximal", "partition_epoch", "proposal")

    def __init__(self) -> None:
        self.isr: tuple[int, ...] = ()
        self.maximal: frozenset[int] = frozenset()
        self.partition_epoch = -1
        #: The change that the controller has not answered yet.
        self.proposal: IsrProposal | None = None
        #: Whether nobody else is in sync, or none will be if the proposal is taken.
        self.is_alone = True

    def commit(self, isr: tuple[int, ...], partition_epoch: int) -> None:
        """The controller says who is in sync; whatever was proposed is settled by that."""
        self.isr = isr
        self.maximal = frozenset(isr)
        self.partition_epoch = partition_epoch
        self.proposal = None
        self.is_alone = len(isr) <= 1

    def propose(self, proposal: IsrProposal) -> None:
        self.proposal = proposal
        self.maximal = frozenset((*self.isr, *proposal.isr))
        self.is_alone = len(self.isr) <= 1 or len(proposal.isr) <= 1

    def withdraw(self) -> None:
        """The controller has refused, and nothing has changed."""
        self.commit(self.isr, self.partition_epoch)
