"""Ctrl-C where nothing is half done."""

import signal
import threading

import pytest

from pyblasgpu.tuning.signals import Interrupts

pytestmark = pytest.mark.usefixtures("default_sigint")


def press():
    signal.raise_signal(signal.SIGINT)


def test_ctrl_c_is_raised_where_it_is_heeded():
    done = []
    with pytest.raises(KeyboardInterrupt), Interrupts() as interrupts:
        interrupts.check()
        press()
        done.append("not cut off")
        interrupts.check()
        done.append("never")
    assert done == ["not cut off"]


def test_once_heeded_it_is_over():
    with Interrupts() as interrupts:
        press()
        with pytest.raises(KeyboardInterrupt):
            interrupts.check()
        interrupts.check()
        press()  # noted again, not raised


def test_pressed_twice_it_is_raised_at_once():
    with Interrupts():
        press()
        with pytest.raises(KeyboardInterrupt):
            press()


def test_who_ignores_it_goes_on_ignoring_it():
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with Interrupts() as interrupts:
        press()
        interrupts.check()
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    signal.signal(signal.SIGINT, signal.default_int_handler)


def test_beside_the_main_thread_nothing_changes():
    kept = []

    def one():
        with Interrupts():
            kept.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=one)
    thread.start()
    thread.join()
    assert kept == [signal.default_int_handler]
