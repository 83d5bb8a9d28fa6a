"""The public names, which `hoodie` hands on."""

from typing import TYPE_CHECKING

from hoodie.consumers import Consumer
from hoodie.errors import (
    AccessDeniedError,
    CommitConflictError,
    CommitOutcomeUnknownError,
    CommitRefusedError,
    CorruptFileError,
    DuplicateKeyError,
    HiveSyncError,
    HoodieError,
    InstantNotFoundError,
    KeyFieldError,
    KeyIndexError,
    LockError,
    MissingFileError,
    OptionError,
    SchemaError,
    StorageError,
    StorageFullError,
    TableChangedError,
    TableExistsError,
    TableNotFoundError,
    UnsupportedTableError,
)
from hoodie.maintenance.indexes import TableIndex
from hoodie.maintenance.repairs import repair_properties
from hoodie.model.enums import MergeMode, QueryType, TableType, TableVersion, WriteOperation
from hoodie.model.files import FileSlice
from hoodie.model.findings import Diagnosis, Finding, PropertiesRepair, RepairResult, ValidationResult
from hoodie.model.hive_results import HiveSyncResult, RegisteredTable
from hoodie.model.instant import Instant, InstantRange
from hoodie.model.key_index import KeyIndex
from hoodie.model.late import late
from hoodie.model.payloads import ClusteredSlice, ClusteringGroup, ClusteringPlan, CompactionCandidate
from hoodie.model.results import (
    ArchiveResult,
    CleanResult,
    CommitResult,
    EraseResult,
    History,
    RestoreResult,
    Savepoint,
)
from hoodie.model.service_results import (
    ConsumerInfo,
    ConsumerLag,
    ExpiryResult,
    ServiceRound,
    ServiceRun,
    UpgradeResult,
)
from hoodie.options.indexes import register_index
from hoodie.options.mergers import register_merger
from hoodie.options.moments import Moment
from hoodie.options.read import ReadOptions
from hoodie.options.table_options import TableOptions
from hoodie.options.write import WriteOptions
from hoodie.table import HoodieTable, create_table, is_table, open_table
from hoodie.timeline.timeline import Timeline

if TYPE_CHECKING:
    from hoodie.ingestion.ingest import ingest
    from hoodie.maintenance.alter import TableAlteration
    from hoodie.migration.migrate import migrate
    from hoodie.model.index_results import IndexCheck, IndexInfo
    from hoodie.model.ingest_results import IngestResult, IngestRound
    from hoodie.model.migration_results import ColumnCheck, MigrationResult, MigrationStep
    from hoodie.query import sql
    from hoodie.read.scan import Scan
    from hoodie.read.where import Where
    from hoodie.services.job import ServicesJob
    from hoodie.write.inputs import ArrowArrayExportable, ArrowStreamExportable, Rows
    from hoodie.write.schema_input import ArrowSchemaExportable, SchemaLike
else:
    __getattr__ = late(
        __name__,
        {
            **dict.fromkeys(("IndexCheck", "IndexInfo"), "hoodie.model.index_results"),
            **dict.fromkeys(("IngestResult", "IngestRound"), "hoodie.model.ingest_results"),
            **dict.fromkeys(("ColumnCheck", "MigrationResult", "MigrationStep"), "hoodie.model.migration_results"),
            "ingest": "hoodie.ingestion.ingest",
            "migrate": "hoodie.migration.migrate",
            "Scan": "hoodie.read.scan",
            "sql": "hoodie.query",
            "ServicesJob": "hoodie.services.job",
            "TableAlteration": "hoodie.maintenance.alter",
            "Where": "hoodie.read.where",
            **dict.fromkeys(("ArrowSchemaExportable", "SchemaLike"), "hoodie.write.schema_input"),
            **dict.fromkeys(("ArrowArrayExportable", "ArrowStreamExportable", "Rows"), "hoodie.write.inputs"),
        },
    )

__all__ = [
    "AccessDeniedError",
    "ArchiveResult",
    "ArrowArrayExportable",
    "ArrowSchemaExportable",
    "ArrowStreamExportable",
    "CleanResult",
    "ClusteredSlice",
    "ClusteringGroup",
    "ClusteringPlan",
    "ColumnCheck",
    "CommitConflictError",
    "CommitOutcomeUnknownError",
    "CommitRefusedError",
    "CommitResult",
    "CompactionCandidate",
    "Consumer",
    "ConsumerInfo",
    "ConsumerLag",
    "CorruptFileError",
    "Diagnosis",
    "DuplicateKeyError",
    "EraseResult",
    "ExpiryResult",
    "FileSlice",
    "Finding",
    "History",
    "HiveSyncError",
    "HiveSyncResult",
    "HoodieError",
    "HoodieTable",
    "IndexCheck",
    "IndexInfo",
    "IngestResult",
    "IngestRound",
    "Instant",
    "InstantNotFoundError",
    "InstantRange",
    "KeyFieldError",
    "KeyIndex",
    "KeyIndexError",
    "LockError",
    "MergeMode",
    "MigrationResult",
    "MigrationStep",
    "MissingFileError",
    "Moment",
    "OptionError",
    "PropertiesRepair",
    "QueryType",
    "ReadOptions",
    "RegisteredTable",
    "RepairResult",
    "RestoreResult",
    "Rows",
    "Savepoint",
    "Scan",
    "SchemaError",
    "SchemaLike",
    "ServiceRound",
    "ServiceRun",
    "ServicesJob",
    "StorageError",
    "StorageFullError",
    "TableAlteration",
    "TableChangedError",
    "TableExistsError",
    "TableIndex",
    "TableNotFoundError",
    "TableOptions",
    "TableType",
    "TableVersion",
    "Timeline",
    "UnsupportedTableError",
    "UpgradeResult",
    "ValidationResult",
    "Where",
    "WriteOperation",
    "WriteOptions",
    "create_table",
    "ingest",
    "is_table",
    "migrate",
    "open_table",
    "register_index",
    "register_merger",
    "repair_properties",
    "sql",
]
