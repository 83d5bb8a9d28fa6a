"""What readers learn of cleans and clusterings."""

import pytest

from hoodie.errors import CorruptFileError
from hoodie.format.plan_avro import encode_plan
from hoodie.format.service_plans import earliest_kept, earliest_kept_by_plan, is_clustering_plan
from tests.golden_tables import FOLDER

CLEANS = FOLDER / "v6_archived/table/.hoodie"
REPLACES = FOLDER / "v6_replace/table/.hoodie"


def test_a_clean_says_from_which_commit_on_files_are_kept():
    name = "20261121075831046.clean"
    assert earliest_kept((CLEANS / name).read_bytes(), path=name) == "20261121075827110"
    requested = CLEANS / f"{name}.requested"
    assert earliest_kept_by_plan(requested.read_bytes(), path=name) == "20261121075827110"


def test_a_clean_by_numbers_of_versions_says_none():
    metadata = {"startCleanTime": "1", "timeTakenInMillis": 0, "totalFilesDeleted": 0, "partitionMetadata": {}}
    data = encode_plan("HoodieCleanMetadata", metadata | {"earliestCommitToRetain": ""})
    assert earliest_kept(data, path="x") is None
    plan = encode_plan("HoodieCleanerPlan", {"earliestInstantToRetain": None, "policy": "KEEP_LATEST_FILE_VERSIONS"})
    assert earliest_kept_by_plan(plan, path="x") is None


def test_a_clustering_is_told_from_other_replacecommits():
    found = {
        p.name: is_clustering_plan(p.read_bytes(), path=p.name) for p in REPLACES.glob("*.replacecommit.requested")
    }
    assert sorted(found.values()) == [False, False, True]


@pytest.mark.parametrize("decode", [earliest_kept, earliest_kept_by_plan, is_clustering_plan])
def test_bytes_that_are_no_plan_are_an_error_that_names_the_file(decode):
    with pytest.raises(CorruptFileError, match="the plan"):
        decode(b"Obj\x01", path="the plan")
