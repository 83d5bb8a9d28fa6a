"""Apache Hudi's operation `bootstrap` by its options: in place, by copying, or by a pattern for each folder."""

import pytest

import hoodie
from hoodie.errors import OptionError, TableExistsError
from hoodie.migration import bootstrap as bootstraps
from hoodie.migration.bootstrap import bootstrap, is_bootstrap
from tests.migrated_sources import ROWS, parquet_folder, rows_of

SELECTOR = "hoodie.bootstrap.mode.selector"
SELECTORS = f"org.apache.hudi.client.{SELECTOR.split('.')[1]}.selector."
OPTIONS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.operation": "bootstrap",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "day",
    "hoodie.bootstrap.keygen.class": "org.apache.hudi.keygen.ComplexKeyGenerator",
    "hoodie.bootstrap.full.input.provider": "org.apache.hudi.bootstrap.SparkParquetBootstrapDataProvider",
    "hoodie.bootstrap.parallelism": "4",
}
BY_PATTERN = {
    SELECTOR: f"{SELECTORS}BootstrapRegexModeSelector",
    f"{SELECTOR}.regex": "day=mon",
    f"{SELECTOR}.regex.mode": "FULL_RECORD",
}


def run(target, options):
    return bootstrap(str(target), options, lambda address: None, defaults={})


def sources(table):
    """The partitions whose rows come from the files of the source."""
    slices = table._context.snapshot().view.latest_slices(table.partitions())
    return {each.group.partition_path for each in slices if each.base.source}


@pytest.mark.parametrize(("chosen", "stay"), [
    ({}, {"day=mon", "day=tue wed", "day=__HIVE_DEFAULT_PARTITION__"}),
    ({SELECTOR: f"{SELECTORS}FullRecordBootstrapModeSelector"}, set()),
    (BY_PATTERN, {"day=tue wed", "day=__HIVE_DEFAULT_PARTITION__"}),
    ({**BY_PATTERN, f"{SELECTOR}.regex": "day=.*"}, set()),
    ({**BY_PATTERN, f"{SELECTOR}.regex.mode": "METADATA_ONLY"}, {"day=mon"}),
])  # fmt: skip
def test_a_folder_is_taken_over_as_its_selector_says(tmp_path, chosen, stay):
    options = {**OPTIONS, **chosen, "hoodie.bootstrap.base.path": str(parquet_folder(tmp_path / "s"))}
    assert run(tmp_path / "t", options).operation.value in ("BOOTSTRAP", "BULK_INSERT", "CLUSTER")
    table = hoodie.open_table(tmp_path / "t")
    assert rows_of(table.scan().to_arrow()) == rows_of(ROWS)
    assert (sources(table), table.config.keygen.value) == (stay, "COMPLEX")
    with pytest.raises(TableExistsError, match="operation bootstrap makes one"):
        run(tmp_path / "t", options)
    assert table.upsert(ROWS.slice(0, 3)).updated == 3
    assert rows_of(table.scan().to_arrow()) == rows_of(ROWS)


def test_one_that_died_before_files_were_copied_goes_on(tmp_path, monkeypatch):
    options = {**OPTIONS, **BY_PATTERN, "hoodie.bootstrap.base.path": str(parquet_folder(tmp_path / "s"))}
    with monkeypatch.context() as dying:
        dying.setattr(bootstraps, "_copy", lambda table, folders: 1 // 0)
        with pytest.raises(ZeroDivisionError):
            run(tmp_path / "t", options)
    assert "day=mon" in sources(hoodie.open_table(tmp_path / "t"))
    run(tmp_path / "t", options)
    assert sources(hoodie.open_table(tmp_path / "t")) == {"day=tue wed", "day=__HIVE_DEFAULT_PARTITION__"}


def test_what_is_missing_or_not_done_is_one_sentence(tmp_path):
    (tmp_path / "d/_delta_log").mkdir(parents=True)
    source = {"hoodie.bootstrap.base.path": str(tmp_path)}
    translators = "org.apache.hudi.client.bootstrap.translator."
    for options, why in (
        (OPTIONS, r"needs hoodie\.bootstrap\.base\.path"),
        ({**source, "hoodie.datasource.write.operation": "bootstrap"}, r"needs hoodie\.datasource\.write\.recordkey"),
        ({**OPTIONS, **source, SELECTOR: "a.B"}, "is not one of"),
        ({**OPTIONS, "hoodie.bootstrap.base.path": str(tmp_path / "d")}, "whose log says which of its files count"),
        (
            {**OPTIONS, **source, "hoodie.bootstrap.partitionpath.translator.class":
             f"{translators}DecodedBootstrapPartitionPathTranslator"},
            "is not supported",
        ),
    ):  # fmt: skip
        with pytest.raises(OptionError, match=why):
            run(tmp_path / "t", options)
    assert is_bootstrap({"hoodie.datasource.write.OPERATION": "Bootstrap"})
    assert not is_bootstrap({"hoodie.datasource.write.operation": "upsert"})


def test_other_operations_take_no_notice_of_the_options(tmp_path):
    table = hoodie.create_table(tmp_path / "t", record_key="id", partition_by="day")
    table.upsert(ROWS, options={"hoodie.bootstrap.base.path": "/nowhere", **BY_PATTERN})
    assert rows_of(table.scan().to_arrow()) == rows_of(ROWS)
