"""`CALL run_bootstrap`: its parameters become the options of a job."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hoodie.errors import OptionError
from pyspark_hoodie import bootstrap
from pyspark_hoodie.procedure_shows import Arguments, Row
from pyspark_hoodie.sql_table import settings_of_session

_OPTIONS = {
    "table_type": "hoodie.datasource.write.table.type",
    "bootstrap_path": "hoodie.bootstrap.base.path",
    "rowKey_field": "hoodie.datasource.write.recordkey.field",
    "partition_path_field": "hoodie.datasource.write.partitionpath.field",
    "selector_class": "hoodie.bootstrap.mode.selector",
    "full_bootstrap_input_provider": "hoodie.bootstrap.full.input.provider",
    "payload_class": "hoodie.datasource.write.payload.class",
}


def run_bootstrap(spark: Any, arguments: Arguments) -> Iterator[Row]:
    """Makes a table of a folder of Parquet files."""
    for name, why in (
        ("props_file_path", "give options => 'a=b,c=d'"),
        ("schema_provider_class", "files say their columns"),
    ):
        if arguments.text(name):
            raise OptionError(f"CALL run_bootstrap does not take {name}: {why}")
    if arguments.text("base_file_format").upper() != "PARQUET":
        raise OptionError("CALL run_bootstrap: base files are Parquet")
    options = {option: arguments.text(name) for name, option in _OPTIONS.items() if arguments.text(name)}
    if arguments.text("partition_path_field"):
        keygen = arguments.text("key_generator_class")
        options["hoodie.bootstrap.keygen." + ("class" if "." in keygen else "type")] = keygen
    options["hoodie.datasource.hive_sync.enable"] = str(arguments["enable_hive_sync"]).lower()
    options["hoodie.table.name"] = arguments.text("table").rpartition(".")[2]
    bootstrap.run(spark, arguments.text("base_path"), {**settings_of_session(spark), **options, **arguments.options()})
    yield (0,)
