"""An embedded key-value store in a folder of a disk, HDFS or an object store: state of a streaming job beside its data.

Modelled on HDHT of Apache Apex (Malhar): buckets with a write-ahead log, windows that are committed once, and sorted data files.
"""

from hoodie.kv.order import KeyOrder, register_order
from hoodie.kv.reader import BucketReader
from hoodie.kv.store import KeyValueStore, open_store
from hoodie.kv.writer import BucketWriter

__all__ = ["BucketReader", "BucketWriter", "KeyOrder", "KeyValueStore", "open_store", "register_order"]
