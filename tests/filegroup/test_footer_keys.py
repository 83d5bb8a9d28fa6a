"""Filter and bounds of a file's keys, from rows that stream past: what a filter built at once would say, or a blunter one."""

import base64

import numpy as np
import pyarrow as pa
import pytest

from hoodie.errors import KeyFieldError
from hoodie.filegroup.footer_keys import FooterKeys, footer_chains
from hoodie.format.base_file import BLOOM, BaseFileFooter, entries_for, footer_metadata
from hoodie.format.bloom import DYNAMIC_V0, SIMPLE, BloomBuilder, parse_bloom
from hoodie.model.plans import FileOptions


def options(bloom_type=DYNAMIC_V0, entries=None):
    return FileOptions("zstd", bloom_type, 1e-6, entries, 100_000, 1 << 20)


def keys(start, count):
    return pa.chunked_array([pa.array([f"key-{n:06}" for n in range(start, start + count)], pa.string())])


def at_once(whole, asked):
    return footer_metadata(
        whole,
        bloom_type=asked.bloom_type,
        fpp=asked.bloom_fpp,
        num_entries=asked.bloom_num_entries,
        max_entries=asked.bloom_max_entries,
        avro_schema_json="{}",
    )


def footer_of(found, rows):
    return BaseFileFooter(
        "f",
        rows,
        found["hoodie_min_record_key"],
        found["hoodie_max_record_key"],
        found.get("hoodie_bloom_filter_type_code", SIMPLE),
        None,
        found[BLOOM].encode(),
    )


def filter_of(found):
    return footer_of(found, 1).bloom()


@pytest.mark.parametrize("asked", [options(), options(SIMPLE), options(entries=100), options(SIMPLE, 500)])
def test_parts_give_what_the_whole_gives(asked):
    made = FooterKeys(asked)
    for start in (0, 300, 600):
        made.add(keys(start, 300), new=True)
    assert made.metadata("{}") == at_once(keys(0, 900), asked)


@pytest.mark.parametrize("bloom_type", [SIMPLE, DYNAMIC_V0])
def test_a_merge_goes_on_with_the_filter_of_the_file_before(bloom_type):
    asked = options(bloom_type)
    old = at_once(keys(0, 5000), asked)
    made = FooterKeys(asked, before=footer_of(old, 5000))
    made.add(keys(1000, 4000), new=False)
    made.add(keys(5000, 100), new=True)
    made.add(keys(0, 1000), new=False)
    found = made.metadata("{}")
    assert (found["hoodie_min_record_key"], found["hoodie_max_record_key"]) == ("key-000000", "key-005099")
    assert len(found[BLOOM]) == len(old[BLOOM])
    carried = filter_of(found)
    assert carried.might_contain(keys(0, 5100).chunk(0)).all()
    assert carried.might_contain(keys(5100, 20_000).chunk(0)).sum() < 5
    assert carried.rate < 8e-6


@pytest.mark.parametrize("bloom_type", [SIMPLE, DYNAMIC_V0])
@pytest.mark.parametrize("held_bytes", [1 << 20, 1000])
def test_of_rows_that_are_gone_neither_filter_nor_bounds_speak(bloom_type, held_bytes):
    asked = options(bloom_type)
    old = footer_of(at_once(keys(0, 5000), asked), 5000)
    made = FooterKeys(asked, before=old, at_most=5100, sheds=True, held_bytes=held_bytes)
    made.add(keys(1000, 3000), new=False)  # the first and the last thousand were deleted
    made.add(keys(5000, 100), new=True)
    found = made.metadata("{}")
    assert (found["hoodie_min_record_key"], found["hoodie_max_record_key"]) == ("key-001000", "key-005099")
    filtered = filter_of(found)
    assert filtered.might_contain(keys(1000, 3000).chunk(0)).all()
    assert filtered.might_contain(keys(5000, 100).chunk(0)).all()
    assert not filtered.might_contain(keys(0, 1000).chunk(0)).any()
    assert not filtered.might_contain(keys(4000, 1000).chunk(0)).any()
    if held_bytes > 1000:
        assert made.metadata("{}") == at_once(
            pa.chunked_array([*keys(1000, 3000).chunks, *keys(5000, 100).chunks]), asked
        )


def test_where_few_of_many_rows_stay_the_filter_is_as_small_as_theirs():
    asked = options()
    made = FooterKeys(asked, before=footer_of(at_once(keys(0, 50_000), asked), 50_000), at_most=50_000, sheds=True)
    made.add(keys(0, 10), new=False)
    assert made.metadata("{}") == at_once(keys(0, 10), asked)


def test_a_filter_that_would_get_blunt_is_built_anew():
    asked = options()
    made = FooterKeys(asked, before=footer_of(at_once(keys(0, 1000), asked), 1000))
    made.add(keys(0, 1000), new=False)
    made.add(keys(1000, 4000), new=True)
    assert made.metadata("{}") == at_once(keys(0, 5000), asked)


@pytest.mark.parametrize(
    "before", [options(SIMPLE), options(entries=100), FileOptions("zstd", DYNAMIC_V0, 1e-9, None, 100_000, 1 << 20)]
)
def test_a_filter_of_another_kind_is_not_carried_on(before):
    asked = options()
    made = FooterKeys(asked, before=footer_of(at_once(keys(0, 3000), before), 3000))
    made.add(keys(0, 3000), new=False)
    assert made.metadata("{}") == at_once(keys(0, 3000), asked)


def test_a_damaged_filter_is_built_anew():
    asked = options()
    damaged = BaseFileFooter("f", 3000, "a", "b", DYNAMIC_V0, None, b"AAAA")
    made = FooterKeys(asked, before=damaged)
    made.add(keys(0, 3000), new=False)
    assert made.metadata("{}") == at_once(keys(0, 3000), asked)


def test_keys_of_a_large_file_are_not_kept():
    asked = options()
    made = FooterKeys(asked, at_most=1000, held_bytes=1000)
    for start in range(0, 900, 100):
        made.add(keys(start, 100), new=True)
    assert made._keys is None
    found = made.metadata("{}")
    assert filter_of(found).row_entries == entries_for(1000, 1e-6)
    assert filter_of(found).newest_count == 900
    assert filter_of(found).might_contain(keys(0, 900).chunk(0)).all()
    assert (found["hoodie_min_record_key"], found["hoodie_max_record_key"]) == ("key-000000", "key-000899")


def test_bounds_are_those_of_java_strings_over_all_parts():
    made = FooterKeys(options())
    for text in ("\U0001f600", "\ue000", "b"):
        made.add(pa.chunked_array([pa.array([text])]), new=True)
    found = made.metadata("{}")
    assert (found["hoodie_min_record_key"], found["hoodie_max_record_key"]) == ("b", "\ue000")


@pytest.mark.parametrize("bad", [None, ""])
def test_a_key_that_is_none_is_refused(bad):
    made = FooterKeys(options())
    keys_with_it = pa.chunked_array([pa.array(["a", bad], pa.string())])
    with pytest.raises(KeyFieldError):
        _finish(made, keys_with_it)


def _finish(made, last):
    made.add(last, new=True)
    made.metadata("{}")


def test_a_filter_too_large_for_a_byte_a_bit_is_the_same():
    whole = at_once(keys(0, 900), options(SIMPLE))
    builder = BloomBuilder.of(SIMPLE, entries_for(900, 1e-6), 1e-6, flag_bits=1)
    for start in range(0, 900, 100):
        builder.add(keys(start, 100).chunk(0))
    made = builder.finished()
    assert made.rows.tobytes() == parse_bloom(SIMPLE, base64.b64decode(whole[BLOOM])).rows.tobytes()
    assert np.isfinite(made.rate)


@pytest.mark.parametrize("kind", [SIMPLE, DYNAMIC_V0])
@pytest.mark.parametrize("entries", [None, 3, 50])
def test_filters_of_many_files_that_are_hashed_together_are_those_of_each(kind, entries):
    asked = options(kind, entries)
    together = pa.array([f"{n}" * (n % 5 + 1) + "é" * (n % 2) for n in range(60)])
    chains = footer_chains(together, asked)
    for start, count in ((0, 1), (1, 20), (21, 39)):
        keys = pa.chunked_array([together.slice(start, count)])
        found = []
        for given in (None, chains[:, start : start + count]):
            footer = FooterKeys(asked, at_most=count)
            footer.add(keys, new=True, chains=given)
            found.append(footer.metadata("{}"))
        assert found[0] == found[1]
    assert footer_chains(pa.array(["a", ""]), asked) is None
    assert footer_chains(together, options("OURS")) is None
