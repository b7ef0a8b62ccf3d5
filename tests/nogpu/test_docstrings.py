"""Docstrings of all that is public: complete by numpydoc's rules, and their examples run."""

from __future__ import annotations

import doctest
import importlib
import inspect
import re
from collections.abc import Callable, Iterable
from importlib.util import find_spec

import pytest
from public import PUBLIC, UNSIGNED, failures_of_examples, signature_of

from pyblasgpu.api.docstrings import Shared, completed
from pyblasgpu.gpu import device

#: Functions of keyword style, and SciPy's and NumPy's names.
TAKING_ARRAYS = [
    name
    for name, value in PUBLIC.items()
    if "Array" in [each.annotation for each in signature_of(value).parameters.values()]
]
#: First words that leave open what a text is about.
HEADLESS = re.compile(r"(Of|Those|That|As|The same|What|Where)\b")


def sections(name: str) -> dict[str, str]:
    """The sections of a docstring by name, what is before them by ''."""
    first, *others = re.split(r"^(\w[\w ]*)\n-+\n", inspect.getdoc(PUBLIC[name]), flags=re.MULTILINE)
    return {"": first} | dict(zip(others[::2], others[1::2]))


def entries(text: str) -> dict[str, str]:
    """Headings of a section's entries, and what is said of each."""
    lines = [entry.partition("\n") for entry in re.split(r"\n(?=\S)", text.strip())]
    return {heading: inspect.cleandoc(description) for heading, _, description in lines}


def described(name: str) -> dict[str, str]:
    """What is said of each parameter; a class has parameters, attributes or both."""
    parts = [entries(sections(name).get(section, "")) for section in ("Attributes", "Parameters")]
    return {
        parameter.lstrip("*"): f"{heading}\n{text}"
        for part in parts
        for heading, text in part.items()
        for parameter in heading.partition(" : ")[0].split(", ")
    }


def names_without(holds: Callable[[str], object], names: Iterable[str] = PUBLIC) -> list[str]:
    """The names whose docstrings are not so, or lack a section or an entry for it."""

    def is_so(name: str) -> bool:
        try:
            return bool(holds(name))
        except KeyError:
            return False

    return [name for name in names if not is_so(name)]


def stands_by_itself(name: str) -> bool:
    doc, signature, texts = inspect.getdoc(PUBLIC[name]), signature_of(PUBLIC[name]), described(name)
    annotations = [signature.return_annotation, *[x.annotation for x in signature.parameters.values()]]
    return (
        re.match(r"[A-Z].*\.\n", doc + "\n") is not None
        and "%(" not in doc
        and all("\n" in texts[parameter] for parameter in signature.parameters)
        and (inspect.isclass(PUBLIC[name]) or inspect.Signature.empty not in annotations)
    )


def test_each_docstring_stands_by_itself():
    """It has a summary, every parameter is annotated and described, and nothing is left to be filled in."""
    assert names_without(stands_by_itself) == []


def describes_results(name: str) -> bool:
    texts, annotation = sections(name), signature_of(PUBLIC[name]).return_annotation
    listed = entries(texts.get("Returns") or texts.get("Yields") or "")
    return all(listed.values()) or annotation in ("None", None)


def test_results_are_described():
    """Each entry of Returns, or of Yields, says what it holds."""
    functions = [name for name, value in PUBLIC.items() if not inspect.isclass(value)]
    assert names_without(describes_results, functions) == []


def names_errors_of_shapes(name: str) -> bool:
    listed = entries(sections(name)["Raises"])
    return bool({"ValueError", "numpy.linalg.LinAlgError"} & set(listed)) and all(listed.values())


def test_errors_of_shapes_are_told():
    assert names_without(names_errors_of_shapes, TAKING_ARRAYS) == []


def has_an_example(name: str) -> bool:
    examples = doctest.DocTestParser().get_examples(sections(name)["Examples"])
    says = any(example.want or "assert " in example.source for example in examples)
    returns_none = getattr(signature_of(PUBLIC[name]), "return_annotation", None) in ("None", None)
    return says or (bool(examples) and (returns_none or inspect.isclass(PUBLIC[name])))


def test_each_has_an_example():
    """With output, where the function returns something."""
    assert names_without(has_an_example) == []


def begins_with_its_subject(name: str) -> bool:
    texts = sections(name)
    listed = [entries(texts.get(section, "")) for section in ("Parameters", "Returns", "Raises", "Warns")]
    descriptions = [description for part in listed for description in part.values()]
    others = [line.partition(" : ")[2] for line in texts.get("See Also", "").splitlines()]
    return not any(HEADLESS.match(text) for text in (texts[""], *descriptions, *others))


def test_texts_begin_with_their_subject():
    assert names_without(begins_with_its_subject) == []


@pytest.mark.parametrize("name", PUBLIC)
def test_examples_of_docstrings_give_what_they_say(name, monkeypatch):
    """On the CPU backend."""
    monkeypatch.setenv("PYBLASGPU_BACKEND", "cpu")
    assert not failures_of_examples(name, gpu=False)
    device.described_by_driver.cache_clear()  # `explain` has looked at a card that is not here


def names_defaults(name: str) -> bool:
    parameters, texts = signature_of(PUBLIC[name]).parameters.values(), described(name)
    defaults = [x.name for x in parameters if x.default not in (None, inspect.Parameter.empty)]
    return all("default" in texts[parameter] for parameter in defaults)


def test_each_default_is_told():
    """A parameter with a default other than None says which it is."""
    assert names_without(names_defaults) == []


#: What numpydoc asks for and docstrings here need not have: long summaries, bare types, and summaries without
#: a noun in the plural as their first word.
NOT_ASKED = {"ES01", "RT02", "SS05"}


@pytest.mark.skipif(not find_spec("numpydoc"), reason="needs numpydoc, which `make test-frameworks` installs")
def test_numpydoc_finds_nothing():
    validate = importlib.import_module("numpydoc.validate").validate
    found = {}
    for name in PUBLIC:
        not_asked = NOT_ASKED | ({"PR01"} if PUBLIC[name] in UNSIGNED else set())
        found[name] = [error for error in validate(name)["errors"] if error[0] not in not_asked]
    assert {name: errors for name, errors in found.items() if errors} == {}


SHARED = Shared(
    """
    A shared paragraph.

    Parameters
    ----------
    x, y : array
        Two vectors.
    x : array
        A vector.
    y : array
        Another vector.

    Returns
    -------
    array
        A shared result.
    """,
    Shared("""
    Parameters
    ----------
    y : array
        A vector that is never taken.

    Raises
    ------
    ValueError
        A shared error.
    TypeError
        Another one.

    See Also
    --------
    shared : A function.
    """),
)
OWN = """Summary.

Parameters
----------
x : array, shape (n,)

Raises
------
ValueError
    An own error.

Notes
-----
A note.
"""
COMPLETED = """Summary.

A shared paragraph.

Parameters
----------
x : array, shape (n,)
    A vector.
y : array
    Another vector.

Returns
-------
array
    A shared result.

Raises
------
ValueError
    An own error.
TypeError
    Another one.

See Also
--------
shared : A function.

Notes
-----
A note.
"""


def test_a_docstring_is_completed_from_what_it_shares():
    assert completed(OWN, SHARED, ["x", "y"]) == COMPLETED
    both = completed("Summary.", SHARED, ["x", "y"])
    assert "x, y : array\n    Two vectors." in both and "A vector." not in both
    assert "Two vectors" not in completed("Summary.", SHARED, ["y", "x"])
