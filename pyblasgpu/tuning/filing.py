"""Places in a file for Configs of products that are kept and yet win no size class."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable

from ..database import FAMILIES, Document, Entry
from .results import Record, add_elsewhere, candidate_of, sound

__all__ = ["file_all"]


def file_all(document: Document, records: Iterable[Record]) -> None:
    """File each Config of a product among `records`.

    A file has one Config a class. Configs are kept for calls between the classes, too, and the choice goes
    by rates wherever it finds a Config. So one that wins no class takes one whose winner has others: that at
    which it is nearest to the winner. Those that were timed in few classes choose first.
    """
    records = sound(records)
    rates: dict[tuple, dict[tuple, dict[str, Record]]] = defaultdict(lambda: defaultdict(dict))
    for record in records:
        if record.stem in FAMILIES and FAMILIES[record.stem].is_product:
            place = record.stem, record.dtype, record.layout
            rates[place][record.candidate][record.size] = record
    for place, of_place in rates.items():
        filed = {
            size: candidate_of(*place, entry.parameters)
            for (*where, size), entry in document.entries.items()
            if tuple(where) == place
        }
        wins = Counter(filed.values())
        for candidate, at in sorted(of_place.items(), key=lambda each: len(each[1])):
            free = [size for size in at if size in filed and wins[filed[size]] > 1]
            if candidate in wins or not free:
                continue
            size = max(free, key=lambda size: at[size].tflops / of_place[filed[size]][size].tflops)
            wins[filed[size]] -= 1
            wins[candidate], filed[size] = 1, candidate
            document.entries[*place, size] = Entry(at[size].parameters, at[size].tflops)
    add_elsewhere(document, records)
