"""The process that runs candidates: it may die, hang or lose its device; what it said before counts."""

from __future__ import annotations

import os
import signal
import time

import fake_worker
import pytest
from fake_worker import answers

from pyblasgpu.errors import PyblasgpuError
from pyblasgpu.tuning.compile_pool import Compilers
from pyblasgpu.tuning.worker import DONE, Lost, Worker
from pyblasgpu.tuning.worker_bench import Bench, Failed


@pytest.fixture(scope="module")
def worker():
    with Worker(fake_worker.commands, patience=20) as made:
        yield made


def test_answers_come_one_by_one(worker):
    assert answers(worker, [1, 2, 3]) == [1, 2, 3, DONE]
    assert answers(worker, []) == [DONE]


def test_a_crash_keeps_what_was_reported_before_and_the_worker_is_replaced(worker):
    before = worker.replaced
    assert answers(worker, [1, "exit", 2]) == [1, Lost("crash", "the process ended with code 3")]
    assert worker.replaced == before + 1
    assert answers(worker, [4]) == [4, DONE]


def test_a_hang_is_ended(worker):
    begin = time.monotonic()
    *answered, last = answers(worker, [1, "hang"], patience=0.7)
    assert answered == [1] and last.outcome == "hang" and "0.7 s" in last.detail
    assert time.monotonic() - begin < 10
    assert answers(worker, [5]) == [5, DONE]


def test_each_answer_renews_the_patience(worker):
    answers(worker, [])
    worker.send([1, "hang"], 5.0)
    assert worker.receive(5.0) == 1
    assert worker.receive(0.2) is None and worker.busy  # not yet
    worker.close()


def test_a_lost_device_is_reported_and_the_process_replaced(worker):
    assert answers(worker, ["lost"])[0] == Failed("crash", "illegal address")
    assert answers(worker, [6]) == [6, DONE]


def test_a_process_that_was_killed_between_two_jobs_is_noticed(worker):
    answers(worker, [])
    os.kill(worker.process.pid, signal.SIGKILL)
    worker.process.join()
    assert isinstance(answers(worker, [7])[-1], Lost)
    assert answers(worker, [7]) == [7, DONE]


def test_ctrl_c_is_not_for_the_worker(worker):
    answers(worker, [])
    worker.send([1, 2])
    os.kill(worker.process.pid, signal.SIGINT)
    assert [worker.receive(5.0) for _ in range(3)] == [1, 2, DONE]


@pytest.mark.parametrize(
    ("make", "reason"),
    [(fake_worker.no_device, "RuntimeError: no device here"), (fake_worker.dies, "it ended with code 7")],
)
def test_a_worker_that_cannot_start_says_why(make, reason):
    with Worker(make) as made, pytest.raises(PyblasgpuError, match=reason):
        made.send(["anything"])


def test_an_interrupted_start_leaves_no_half_ready_process(monkeypatch):
    with Worker(fake_worker.commands) as made:
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr("multiprocessing.connection.Connection.poll", interrupt)
            made.send([1])
        assert made.process is None and not made.busy
        assert answers(made, [1]) == [1, DONE]


def interrupt(*_):
    raise KeyboardInterrupt


def test_the_process_ends_when_the_worker_is_closed():
    made = Worker(fake_worker.commands)
    answers(made, [1])
    process = made.process
    made.close()
    assert not process.is_alive()
    made.close()  # twice is no error


def test_the_true_body_can_be_sent_to_its_process():
    """Everything that goes through the pipe is picklable; without a device the body says so."""
    from pyblasgpu.frontend.calls.call import routine
    from pyblasgpu.gpu import device

    if device.count():
        pytest.skip("there is a device")
    with Worker(Bench, (routine, 0)) as made, pytest.raises(PyblasgpuError, match="cannot start"):
        made.send(None)


class Deadly:
    """A Config that takes down the process which unpacks it."""

    def __reduce__(self):
        return os._exit, (3,)


def test_a_candidate_that_takes_a_compiler_down_is_out_and_the_others_are_compiled():
    deadly = Deadly()
    with Compilers((9, 0), workers=1) as compilers:
        compilers.submit("trsm_fma", deadly)
        compilers.submit("trsm_fma", "no Config")
        reports = {}
        while compilers.pending:
            reports.update(((stem, config), report) for (stem, config), report in compilers.finished())
    assert reports["trsm_fma", deadly] == "the compiler's process died"
    assert reports["trsm_fma", "no Config"].startswith("AttributeError")


def test_what_is_dropped_is_not_reported():
    with Compilers((9, 0), workers=1) as compilers:
        for n in range(5):
            compilers.submit("trsm_fma", f"no Config {n}")
        compilers.drop()
        compilers.submit("trsm_fma", "another")
        (((_, config), _),) = compilers.finished()
    assert config == "another" and compilers.pending == 0


def test_what_is_submitted_twice_is_reported_once():
    """Two winners may have the same kernel for unaligned operands; a run waited for ever for the other."""
    with Compilers((9, 0), workers=1) as compilers:
        for _ in range(2):
            compilers.submit("trsm_fma", "no Config")
        assert compilers.pending == 1
        finished = list(compilers.finished(60.0))
    assert [job for job, _ in finished] == [("trsm_fma", "no Config")] and compilers.pending == 0
