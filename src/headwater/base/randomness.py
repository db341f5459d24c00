"""Randomness that one seed decides.

A program has one root, made from a seed at its edge. Each part that needs randomness gets a child
by name, and what a child yields depends on the seed and on the names down to it, not on who else
drew how much before. So adding a part, or a draw in one, leaves the others' sequences as they were,
and a failure found with a seed stays reproducible while the program around it changes.

None of this is fit for secrets.
"""

import hashlib
import random
import secrets
import uuid
from typing import Self

from headwater.base.checks import check


class SeededRandom:
    """A generator, and a source of generators that are independent of it and of each other."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.generator = random.Random(seed)
        self._child_names: set[str] = set()

    @classmethod
    def from_system(cls) -> Self:
        """A root whose seed the operating system chose."""
        return cls(secrets.randbits(64))

    def child(self, name: str) -> "SeededRandom":
        """The child called `name`; a second one of that name would repeat it, and is refused."""
        check(name not in self._child_names, "there is a child generator called %r already", name)
        self._child_names.add(name)
        digest = hashlib.sha256(f"{self.seed}/{name}".encode()).digest()
        return SeededRandom(int.from_bytes(digest[:8], "big"))

    def uuid(self) -> uuid.UUID:
        """A random (version 4) uuid."""
        return uuid.UUID(int=self.generator.getrandbits(128), version=4)
