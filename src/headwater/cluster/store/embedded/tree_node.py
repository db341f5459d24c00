"""One node as the tree keeps it."""

from __future__ import annotations

from headwater.cluster.store.embedded.journal import NodeRow
from headwater.cluster.store.metadata_store import Node


class TreeNode:
    """A node with its children; only a transaction of the tree changes it."""

    __slots__ = (
        "children",
        "created_ms",
        "creation_id",
        "data",
        "modified_ms",
        "owner",
        "sequence",
        "version",
    )

    def __init__(
        self,
        data: bytes,
        version: int,
        created_ms: int,
        modified_ms: int,
        creation_id: int = 0,
        sequence: int = 0,
    ) -> None:
        self.data = data
        self.version = version
        self.created_ms = created_ms
        self.modified_ms = modified_ms
        self.creation_id = creation_id
        #: How many children were ever created below this node: the next sequence number.
        self.sequence = sequence
        #: The session that an ephemeral node goes with, else 0.
        self.owner = 0
        #: None as long as there is no child: most nodes are leaves, and a dict is not small.
        self.children: dict[str, TreeNode] | None = None

    def snapshot(self) -> Node:
        return Node(
            self.data,
            self.version,
            self.created_ms,
            self.modified_ms,
            self.owner,
            self.creation_id,
        )

    @property
    def is_implied(self) -> bool:
        """Whether the row of the only child tells all about this node, so that it needs none.

        That is so as long as both are as one transaction made them: see `journal`.
        """
        if self.data or self.version or self.sequence != 1 or not self.children:
            return False
        (child,) = self.children.values()
        return not child.owner and child.creation_id == self.creation_id

    def row(self, path: str) -> NodeRow:
        return NodeRow(
            path,
            self.data,
            self.version,
            self.created_ms,
            self.modified_ms,
            self.creation_id,
            self.sequence,
        )
