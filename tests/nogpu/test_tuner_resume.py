"""Runs that end early, are interrupted or resumed; several at once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter

import fake_worker
import pytest
from threads import at_once
from tuner_stage import H200, Inline, Stage, flip_one, on, planned, rate, read_back, tune

from pyblasgpu.database import read, sizes_of
from pyblasgpu.dispatch import tuned_files
from pyblasgpu.tuning import candidate_list as planning
from pyblasgpu.tuning import sweep_file, sweep_log, worker_bench
from pyblasgpu.tuning.sweep_log import SweepLog
from pyblasgpu.tuning.worker import DONE

pytestmark = pytest.mark.usefixtures("home")


def test_the_budget_ends_a_run(stage):
    made, document = tune(on(stage), budget=1e-9)
    assert not document.entries and not made.log.records
    assert made.untried + made.unbegun > 0 and not tuned_files.user_file(H200.name).exists()


def interrupt(odd, out):
    raise KeyboardInterrupt


def test_an_interrupted_run_keeps_what_it_has_and_is_resumed(stage):
    order = planned(("gemm_simt", "s", "nn"))
    stage.broken = {order[2]: interrupt}
    made, document = tune(on(stage), layouts=("nn",))
    kept = max(order[:2], key=Stage.rate)
    entry = document.entries["gemm_simt", "s", "nn", "large"]
    assert rate(entry) == Stage.rate(kept)
    assert read(tuned_files.user_file(H200.name)).entries == read_back(document)
    assert made.watcher.messages == ["interrupted: what was measured so far decides"]

    stage.broken, before = {}, stage.calls.copy()
    again, all_found = tune(on(stage), layouts=("nn",), resume=True)
    assert stage.calls[order[0]] <= before[order[0]] + 1  # once as the reference
    assert stage.calls[order[1]] == before[order[1]] and stage.calls[order[2]] > 0
    best = all_found.entries["gemm_simt", "s", "nn", "large"]
    assert rate(best) == max(map(Stage.rate, order))
    assert again.log.records[: len(made.log.records)] == made.log.records


class Interrupted(Inline):
    """Ctrl-C is pressed at a moment of the third job."""

    def __init__(self, make, moment):
        super().__init__(make)
        self.moment, self.jobs, self.times = moment, 0, 0

    def press(self, moment):
        if (self.jobs, self.moment) == (3, moment):
            self.moment = None
            signal.raise_signal(signal.SIGINT)

    def send(self, job, patience=None):
        self.jobs += 1
        self.press("before it is sent")
        super().send(job, patience)

    def receive(self, timeout):
        answer = super().receive(timeout)
        self.times += isinstance(answer, worker_bench.Timing)
        self.press("at its end" if answer == DONE else "with an answer")
        return answer


@pytest.mark.usefixtures("default_sigint")
@pytest.mark.parametrize("moment", ["before it is sent", "with an answer", "at its end"])
def test_ctrl_c_loses_no_job_and_no_answer(stage, moment):
    """The worker would be waited for in vain had a job not been sent, or its end been lost."""
    worker = Interrupted(on(stage), moment)
    made, _ = tune(None, layouts=("nn",), worker=worker)
    timed = [record for record in made.log.records if record.outcome in ("ok", "reference")]
    assert worker.moment is None and not worker.busy
    assert made.watcher.messages == ["interrupted: what was measured so far decides"]
    assert len(timed) == worker.times and made.done + made.untried == len(planned(("gemm_simt", "s", "nn")))


def test_a_resumed_run_decides_of_its_own_searches(stage):
    """The winners of others were put into the file, and verified, by the run that made them."""
    _, first = tune(on(stage))
    again, document = tune(on(stage), layouts=("tn",), resume=True)
    assert {layout for _, _, layout, _ in document.entries} == {"tn"}
    assert {record.layout for record in again.log.records} == {"nn", "tn"}
    kept = read(tuned_files.user_file(H200.name)).entries
    assert {key for key in kept if key[2] == "nn"} == {key for key in first.entries if key[2] == "nn"}


def test_only_the_same_toolchain_and_effort_are_resumed(stage, monkeypatch):
    tune(on(stage), layouts=("nn",))
    assert SweepLog(H200, "quick", resume=True).records and not SweepLog(H200, "normal", resume=True).records
    assert not SweepLog(H200, "quick").records
    monkeypatch.setattr(sweep_log, "toolchain", lambda: "another")
    assert not SweepLog(H200, "quick", resume=True).records


def test_failures_are_resumed_too(stage):
    left = planning.candidates("gemm_simt", "s", "nn", H200, "quick").left
    stage.broken = {left[0]: flip_one}
    tune(on(stage), layouts=("nn",))
    calls = Counter()
    stage.broken = {left[0]: lambda odd, out: calls.update([odd])}
    again, _ = tune(on(stage), layouts=("nn",), resume=True)
    assert not calls and again.log.counts.total() == 0


def test_each_record_is_in_the_file_at_once(stage):
    def look(odd, out):
        path = sweep_file.sweep_file(H200.name)
        lines.append(len(path.read_bytes().splitlines()) if path.exists() else 0)

    lines = []
    order = planned(("gemm_simt", "s", "nn"))
    stage.broken = {order[1]: look}
    tune(on(stage), layouts=("nn",))
    # after the first candidate and the reference: verified in two calls, then timed, a line a class
    first = len(sizes_of("gemm_simt")) + 1
    assert sorted(set(lines))[:3] == [first, first + 1, first + 2]


def test_tuners_at_once_lose_nothing(home):
    """Records and winners of several runs on one device, as of several processes: the locks are of files."""

    def one(dtype):
        return tune(fake_worker.device, dtypes=(dtype,), layouts=("nn",))

    done = at_once(one, [*zip("scz")])
    recorded = sweep_file.read_sweep(sweep_file.sweep_file(H200.name))
    assert len(recorded) == sum(len(made.log.records) for made, _ in done)
    kept = read(tuned_files.user_file(H200.name))
    assert kept.entries == {key: entry for _, document in done for key, entry in read_back(document).items()}


INTERRUPTED = """
from fake_worker import Compilers, Sensor, Watcher, device
from pyblasgpu.gpu.device import known
from pyblasgpu.tuning.clock_monitor import ClockMonitor
from pyblasgpu.tuning.sweep_log import SweepLog
from pyblasgpu.tuning.session import Tuner
from pyblasgpu.tuning.worker import Worker
import sys
h200 = known("h200")
with Worker(device, ({}, float(sys.argv[1]))) as worker:
    log = SweepLog(h200, "quick", "resume" in sys.argv)
    tuner = Tuner(h200, Compilers(), worker, Watcher(), log, ClockMonitor(Sensor()))
    found = tuner.run([("gemm_simt", "s", "nn")])
print(len(found.entries), worker.replaced, tuner.untried, *tuner.watcher.messages)
"""


def restore_sigint():
    """What a shell runs in the background ignores them, and so would what that starts."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_ctrl_c_in_a_terminal_keeps_everything_and_the_run_goes_on(home):
    """The signal goes to every process of the group, as a terminal sends it."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    arguments = [sys.executable, "-c", INTERRUPTED]
    process = subprocess.Popen(  # so slow that it cannot have ended however late the signal comes
        [*arguments, "0.2"],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=restore_sigint,
    )
    path = sweep_file.sweep_file(H200.name)
    for _ in range(600):
        if path.exists() and len(path.read_bytes().splitlines()) > 2 * len(sizes_of("gemm_simt")):
            break
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGINT)
    output, complaints = process.communicate(timeout=60)
    entries, replaced, untried, *words = output.split()
    assert process.returncode == 0 and not complaints
    assert int(entries) == len(sizes_of("gemm_simt")) and int(replaced) == 0 and int(untried) > 0
    assert words[0] == "interrupted:" and read(tuned_files.user_file(H200.name)).entries
    before = sweep_file.read_sweep(path)
    done = subprocess.run(
        [*arguments, "0.02", "resume"], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.split()[2] == "0"
    after = [record for record in sweep_file.read_sweep(path) if record.outcome == "ok"]
    assert len(after) == len({(record.candidate, record.size) for record in after}) > len(before)
