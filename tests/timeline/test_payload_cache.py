"""Parsed commits are kept within a bound of bytes; those of one slice name the same logs again and again."""

from hoodie.model.payloads import CommitMetadata, WriteStat
from hoodie.storage.base import FileInfo
from hoodie.storage.cache import Cache
from hoodie.storage.memory import MemoryStorage
from hoodie.timeline.cache import cached_commit

CAPACITY = 300_000
STORAGE = MemoryStorage()


def commit(number, logs):
    names = tuple(f".f_{at:017d}.log.1_0-0-0" for at in range(logs))
    return CommitMetadata(write_stats={"": (WriteStat("f", "", f"{number}", log_files=names),)})


def loads_of_a_second_round(commits, *, file_bytes, logs):
    """How many of the commits had to be loaded again after all were loaded once."""
    cache, loads = Cache(CAPACITY), []

    def get(number):
        def load():
            loads.append(number)
            return commit(number, logs)

        info = FileInfo(f"{number}.deltacommit", file_bytes, 0.0, is_folder=False, identity=0)
        return cached_commit(cache, STORAGE, info, load)

    for _ in range(2):
        for number in range(commits):
            assert next(get(number).stats()).path == str(number)
    return len(loads) - commits


def test_what_fits_is_loaded_once():
    assert loads_of_a_second_round(9, file_bytes=CAPACITY // 30, logs=0) == 0


def test_what_is_too_much_is_loaded_again():
    assert loads_of_a_second_round(11, file_bytes=CAPACITY // 30, logs=0) == 11


def test_names_of_logs_count_as_references():
    # 300 names of 31 characters are nearly all of each file; as references they are 2,400 bytes and the rest 700.
    assert loads_of_a_second_round(25, file_bytes=CAPACITY // 30, logs=300) == 0
    assert loads_of_a_second_round(40, file_bytes=CAPACITY // 30, logs=300) > 0
