import asyncio
import threading

from headwater.broker.worker_pool import WorkerPool

_COUNT = 4


def test_the_time_of_all_threads_is_counted() -> None:
    pool = WorkerPool("io", _COUNT)
    meeting = threading.Barrier(_COUNT)
    pause = threading.Event()

    def work() -> None:
        meeting.wait(10)
        pause.wait(0.02)

    async def run() -> None:
        await asyncio.gather(*(pool.run(work) for _ in range(_COUNT)))

    asyncio.run(run())
    pool.close()
    assert pool.busy_s >= _COUNT * 0.02, "those that work at the same time count one by one"


def test_a_pool_that_is_resized_finishes_what_it_has() -> None:
    pool = WorkerPool("io", 1)
    may_end = threading.Event()

    async def run() -> tuple[bool, int]:
        before = asyncio.ensure_future(pool.run(lambda: may_end.wait(10)))
        await asyncio.sleep(0)
        pool.resize(2)
        after = await pool.run(threading.get_ident)
        may_end.set()
        return await before, after

    was_finished, thread = asyncio.run(run())
    pool.close()
    assert was_finished and thread != threading.get_ident()
