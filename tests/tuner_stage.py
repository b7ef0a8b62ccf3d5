"""A tuning run on a device that is played by NumPy: routines, a clock that goes by the Config, a worker."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace

import fake_device
from fake_routines import elements, factor_launch_list
from fake_worker import Compilers, Sensor, Watcher

from pyblasgpu.cpu.scipy import level3 as cpu
from pyblasgpu.database import FAMILIES, RECURSION, TRSM_FUSED, TRSM_SMALL, sizes_of, tuned_at
from pyblasgpu.dispatch import choose as selecting
from pyblasgpu.dispatch import overrides, portfolio, throughput_model, tuned_files
from pyblasgpu.errors import PyblasgpuError
from pyblasgpu.gpu.device import known, stand_ins
from pyblasgpu.tuning import arenas, factor_workload, measure, routine_search, session, verify, worker_bench
from pyblasgpu.tuning import candidate_list as planning
from pyblasgpu.tuning import search_problem as tasks
from pyblasgpu.tuning.clock_monitor import ClockMonitor
from pyblasgpu.tuning.sweep_log import SweepLog
from pyblasgpu.tuning.worker import DONE, DeviceLost, Lost
from pyblasgpu.types import Trans

H200 = known("h200")


class Memory(fake_device.HostMemory):
    """Memory of a context that may be lost."""

    def __init__(self):
        super().__init__()
        self.alive = True

    def synchronize(self, stream):
        if not self.alive:
            raise PyblasgpuError("the context is gone")


class Inline:
    """Stands for `Worker`: the body runs in this process."""

    def __init__(self, make):
        self.make, self.body, self.busy, self.replaced = make, None, False, 0

    def send(self, job, patience=None):
        self.body = self.body or self.make()
        self.answers, self.busy = self.body(job), True

    def receive(self, timeout):
        try:
            return next(self.answers)
        except StopIteration:
            self.busy = False
            return DONE
        except DeviceLost:
            self.busy, self.body, self.replaced = False, None, self.replaced + 1
            return Lost("crash", "the process ended with code 0")


def every_class():
    return [(stem, size) for stem in FAMILIES for size in sizes_of(stem)]


class Stage:
    """The stand-ins of a run: routines that compute with NumPy, and a clock that goes by the Config."""

    def __init__(self, monkeypatch):
        self.memory, self.chosen, self.broken, self.calls = Memory(), None, {}, Counter()
        for module in (verify, measure, arenas, factor_workload, worker_bench):
            monkeypatch.setattr(module, "memory", self.memory)
        monkeypatch.setattr(worker_bench, "Timer", lambda device, stream: self.time)
        monkeypatch.setitem(stand_ins, 0, H200)
        every = planning.candidates
        monkeypatch.setattr(planning, "candidates", lambda *key: SimpleNamespace(left=every(*key).left[::16]))
        self.filed = {}  # what files name, by search
        monkeypatch.setattr(tuned_files, "current_configs", lambda *key: self.filed.get(key[:3], {}))
        # operands of the real sizes would take long to fill
        small = {key: [tuple(max(x // 32, 1) for x in tuned_at(*key)[-1])] for key in every_class()}
        for module in (routine_search, throughput_model, portfolio, session):
            monkeypatch.setattr(module, "tuned_at", lambda stem, size: small[stem, size])
        monkeypatch.setattr(
            tasks,
            "tuned_points",
            lambda stem, only: tuple((size, at) for size in sizes_of(stem, only) for at in small[stem, size]),
        )
        monkeypatch.setattr(routine_search, "CURVE", (32, 64))
        monkeypatch.setattr(arenas, "MOST_CALLS", 2)

    def time(self, work, best=float("inf")):
        work.restore(1)
        work.calls[-1]()
        self.calls[self.chosen] += 1
        return 4e-3 / self.rate(self.chosen)

    @staticmethod
    def rate(chosen):
        if isinstance(chosen, int):
            return chosen
        if hasattr(chosen, "WARP_N"):  # a leaf of TRSM
            return chosen.ORDER * chosen.WARPS / (1 + chosen.BLK)
        return chosen.BLK_M * chosen.BLK_N / (1 + getattr(chosen, "BLK_K", 0))

    def routine(self, name):
        return getattr(self, name)

    def gemm(self, alpha, a, b, beta, c, stream):
        layout = ("n" if a.row_stride == 1 else "t") + ("n" if b.row_stride == 1 else "t")
        extents = (c.rows, c.cols, a.cols)
        self.chosen = selecting.select("gemm_simt", c.dtype, layout, extents, H200).config
        left, right, out = map(elements, (a, b, c))
        cpu.gemm(alpha, left, right, beta, out, Trans.NO, Trans.NO)
        self.spoil(c.rows % 2, out)

    def gemv(self, alpha, a, x, beta, y, stream):
        layout = "n" if a.row_stride == 1 else "t"
        self.chosen = selecting.select("gemv", y.dtype, layout, (a.rows, a.cols, 1), H200).config
        out = elements(y)
        out[...] = alpha * (elements(a) @ elements(x)) + (beta * out if beta else 0)
        self.spoil(False, out)

    def ger(self, alpha, x, y, a, stream):
        self.chosen = selecting.select("ger", a.dtype, "", (a.rows, a.cols, 1), H200).config
        out = elements(a)
        out += alpha * elements(x) * elements(y).swapaxes(1, 2)
        self.spoil(False, out)

    def trmm(self, alpha, t, b, stream, **flags):
        self.triangular("trmm", alpha, t, b, **flags)

    def trsm(self, alpha, t, b, stream, **flags):
        self.triangular("trsm", alpha, t, b, **flags)

    def triangular(self, name, alpha, t, b, *, side, uplo, diag):
        leaf = selecting.select(name, b.dtype, "", (b.rows, b.cols), H200)
        self.chosen = leaf.config
        algorithm = overrides.get_override("trsm_algorithm")
        if algorithm is not None:
            best = TRSM_FUSED if b.cols > 32 else RECURSION
            if t.batch == 3:
                best = TRSM_SMALL
            self.chosen = 2 if algorithm == best else 1
        getattr(cpu, name)(alpha, elements(t), elements(b), side, uplo, Trans.NO, diag)
        self.spoil(False, elements(b))

    def getrf(self, piv, info, a, stream):
        self.factors("getrf", piv, info, a)

    def potrf(self, info, a, stream, **flags):
        self.factors("potrf", info, a, **flags)

    def getrs(self, piv, lu, b, stream, **flags):
        self.factors("getrs", piv, lu, b, **flags)

    def geqrf(self, tau, a, stream):
        self.factors("geqrf", tau, a)

    def factors(self, name, *operands, **flags):
        run = factor_launch_list(name)(*operands, **flags).run
        run([operand.pointer for operand in operands], stream=0)
        self.spoil(False, elements(operands[-1]))

    def spoil(self, odd, out):
        for config, how in self.broken.items():
            if self.chosen == config:
                how(odd, out)


STEMS = {"gemm": "gemm_simt", "trmm": "trmm_leaf", "trsm": "trsm_fma", "gemv": "gemv", "ger": "ger"}


def tune(make, routines=("gemm",), dtypes=("s",), layouts=("nn", "tn"), **options):
    """Run a tuner whose body is ``make()``; returns it and what it found."""
    searches = [
        (STEMS[name], dtype, layout)
        for name in routines
        for dtype in dtypes
        for layout in FAMILIES[STEMS[name]].layouts
        if layout in (*layouts, "any")
    ]
    resume = options.pop("resume", False)
    worker = options.pop("worker", None) or Inline(make)
    compilers = options.pop("compilers", None) or Compilers()
    monitor = options.pop("monitor", None) or ClockMonitor(Sensor())
    candidates = planning.CandidateOptions("quick", options.pop("sizes", ()))
    made = session.Tuner(
        H200, compilers, worker, Watcher(), SweepLog(H200, "quick", resume), monitor, candidates, **options
    )
    return made, made.run(searches)


def on(stage):
    return lambda: worker_bench.Bench(stage.routine, 0)


def rate(entry):
    """By which a candidate wins; several may have the same."""
    return Stage.rate(SimpleNamespace(**entry.parameters))


def planned(key):
    """The candidates in the order in which a quick run comes to them."""
    return planning.candidate_list(key, H200, "quick", None).configs


def best_of(key):
    return max(planned(key), key=Stage.rate)


def outcomes(made, config):
    parameters = FAMILIES["gemm_simt"].parameters_of(config)
    return {record.outcome for record in made.log.records if record.parameters == parameters}


FASTEST = {"512x32": RECURSION, "256x256": TRSM_FUSED, "64x64x100": TRSM_SMALL}


def flip_one(odd, out):
    out[0, -1, -1] += 1


def read_back(document):
    """The entries as a file keeps them, rates rounded."""
    from pyblasgpu.database import dumps, parse

    return parse(dumps(document).encode()).entries
