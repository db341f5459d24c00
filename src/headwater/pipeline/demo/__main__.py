"""`python -m headwater.pipeline.demo`: the same as `headwater demo`, which has its options."""

from __future__ import annotations

import os
import sys

if __name__ == "__main__":
    os.execv(sys.executable, [sys.executable, "-m", "headwater", "demo", *sys.argv[1:]])
