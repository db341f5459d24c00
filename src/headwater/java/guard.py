"""Runs a command that must not outlive the process that asked for it.

`python guard.py PARENT_PID COMMAND...` becomes COMMAND, after it has asked the kernel to kill it
when its parent goes away. That holds however the parent ends, SIGKILL included, where no handler of
the parent's own could run. It is a program of its own, and not a function that runs between fork
and exec, because such a function may deadlock in a process that has threads.

Linux ties the request to the *thread* that forked; `processes.py` takes care of that.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def main(parent_pid: int, command: list[str]) -> None:
    if sys.platform == "linux":
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "prctl failed")
    # The parent may have gone before the request was made.
    if os.getppid() != parent_pid:
        sys.exit("the parent process is gone")
    os.execv(command[0], command)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
