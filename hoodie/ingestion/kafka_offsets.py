"""Up to where topics are read, in the text of Apache Hudi's Kafka source: `topic,0:123,1:456`.

It is about one topic. Several have their texts with semicolons between, which Apache Hudi refuses to read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from hoodie.errors import OptionError
from hoodie.model.results import format_count


class Partition(NamedTuple):
    topic: str
    number: int

    def __str__(self) -> str:
        return f"partition {self.number} of topic {self.topic}"


Offsets = Mapping[Partition, int]
"""The next one of each partition."""


class Range(NamedTuple):
    """What a broker has of a partition: from the first offset, up to before the second one."""

    first: int
    end: int


def parse_offsets(text: str, *, topics: Sequence[str]) -> Offsets:
    """Raises OptionError: it is not such a text, or is about another topic."""
    result: dict[Partition, int] = {}
    try:
        for part in text.split(";"):
            topic, *places = part.split(",")
            for place in places:
                number, offset = place.split(":")
                result[Partition(topic, int(number))] = int(offset)
    except ValueError:
        result = {}
    if not result:
        raise OptionError(
            f"the checkpoint {text!r} is not one of a topic (topic,0:123): another source has been written to this table under the "
            "same name; give name="
        )
    others = sorted({each.topic for each in result} - set(topics))
    if others:
        raise OptionError(
            f"the checkpoint is one of topic {', '.join(others)}, and {', '.join(topics)} is to be read: give each topic a name= of "
            "its own"
        )
    return result


def format_offsets(offsets: Offsets) -> str:
    by_topic: dict[str, list[str]] = {}
    for each in sorted(offsets):
        by_topic.setdefault(each.topic, []).append(f"{each.number}:{offsets[each]}")
    return ";".join(f"{topic},{','.join(places)}" for topic, places in by_topic.items())


def losses_since(after: Offsets, there: Mapping[Partition, Range], made_anew: Sequence[str]) -> Mapping[Partition, str]:
    """The partitions that lost records before these were read, with a sentence each."""
    result = {}
    for each, offset in after.items():
        if each.topic in made_anew:
            result[each] = f"topic {each.topic} was deleted and made anew since it was read up to offset {offset:,}"
        elif each not in there:
            result[each] = f"{each} is gone"
        elif offset < there[each].first:
            count = format_count(there[each].first - offset, "offset")
            result[each] = f"{each} begins at {there[each].first:,} by now: {count} from {offset:,} on are gone"
        elif offset > there[each].end:
            result[each] = f"{each} ends at {there[each].end:,}, and was read up to {offset:,}: the topic was made anew"
    return result


def shares(waiting: Mapping[Partition, int], most: int) -> Mapping[Partition, int]:
    """How many offsets a round takes of each partition: an equal share of `most`, or all if a partition has fewer."""
    shares_by_partition, remaining = {}, most
    for number, each in enumerate(sorted(waiting, key=lambda each: (waiting[each], each))):
        shares_by_partition[each] = min(waiting[each], remaining // (len(waiting) - number))
        remaining -= shares_by_partition[each]
    return shares_by_partition
