"""All table services as methods of one class, which `HoodieTable` inherits, embedded and on Spark."""

from __future__ import annotations

from hoodie.maintenance.alter import Alterations
from hoodie.maintenance.cleaning import Archiving, Cleans, Expiry
from hoodie.maintenance.clustering import Clusterings
from hoodie.maintenance.compaction import Compactions, LogCompactions
from hoodie.maintenance.erasure import Erasure
from hoodie.maintenance.indexes import Indexes
from hoodie.maintenance.job import Job
from hoodie.maintenance.publishing import HiveRegistration, Publishing
from hoodie.maintenance.repairs import Repairs, Validation
from hoodie.maintenance.savepoints import Rollbacks, Savepoints
from hoodie.maintenance.upgrade import Upgrades


class TableServices(
    Alterations,
    Erasure,
    Compactions,
    LogCompactions,
    Clusterings,
    Cleans,
    Archiving,
    Expiry,
    HiveRegistration,
    Publishing,
    Indexes,
    Savepoints,
    Rollbacks,
    Upgrades,
    Job,
    Repairs,
    Validation,
):
    """The verbs of table services. The engine of the open table does the work: threads of this process, or executors."""
