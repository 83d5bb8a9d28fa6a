"""hoodie: read and write Apache Hudi tables from Python, over Arrow, with or without Spark."""

from hoodie.errors import (
    CommitConflictError,
    CommitOutcomeUnknownError,
    CorruptFileError,
    DuplicateKeyError,
    HoodieError,
    InstantNotFoundError,
    KeyFieldError,
    LockError,
    OptionError,
    SchemaError,
    TableExistsError,
    TableNotFoundError,
    UnsupportedTableError,
)
from hoodie.model.enums import MergeMode, QueryType, TableType, TableVersion, WriteOperation
from hoodie.model.files import FileSlice
from hoodie.model.instant import Instant, InstantRange
from hoodie.model.results import CommitResult
from hoodie.options.mergers import register_merger
from hoodie.options.read import ReadOptions
from hoodie.options.table import TableOptions
from hoodie.options.write import WriteOptions
from hoodie.table import HoodieTable, create_table, open_table
from hoodie.timeline.timeline import Timeline

__version__ = "0.1.0"

__all__ = [
    "CommitConflictError",
    "CommitOutcomeUnknownError",
    "CommitResult",
    "CorruptFileError",
    "DuplicateKeyError",
    "FileSlice",
    "HoodieError",
    "HoodieTable",
    "Instant",
    "InstantNotFoundError",
    "InstantRange",
    "KeyFieldError",
    "LockError",
    "MergeMode",
    "OptionError",
    "QueryType",
    "ReadOptions",
    "SchemaError",
    "TableExistsError",
    "TableNotFoundError",
    "TableOptions",
    "TableType",
    "TableVersion",
    "Timeline",
    "UnsupportedTableError",
    "WriteOperation",
    "WriteOptions",
    "__version__",
    "create_table",
    "open_table",
    "register_merger",
]
