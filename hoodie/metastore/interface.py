"""The part of the metastore's Thrift interface that is used here; names and numbers are Hive's, from 2.3 on.

A structure that is read and given back has every field that a metastore may fill: what the client does not know would be lost.
"""

from __future__ import annotations

import io
import os
import threading
from functools import cache
from typing import Any

from hoodie.errors import OptionError
from hoodie.options.hive import Servers

_LOCKS = """
enum LockState { ACQUIRED = 1, WAITING = 2, ABORT = 3, NOT_ACQUIRED = 4 }
enum LockLevel { DB = 1, TABLE = 2, PARTITION = 3 }
enum LockType { SHARED_READ = 1, SHARED_WRITE = 2, EXCLUSIVE = 3 }
enum DataOperationType { SELECT = 1, INSERT = 2, UPDATE = 3, DELETE = 4, UNSET = 5, NO_TXN = 6 }
struct LockComponent {
  1: required LockType type, 2: required LockLevel level, 3: required string dbname, 4: optional string tablename,
  6: optional DataOperationType operationType
}
struct LockRequest {
  1: required list<LockComponent> component, 3: required string user, 4: required string hostname, 5: optional string agentInfo
}
struct LockResponse { 1: required i64 lockid, 2: required LockState state }
struct CheckLockRequest { 1: required i64 lockid }
struct UnlockRequest { 1: required i64 lockid }
struct HeartbeatRequest { 1: optional i64 lockid }
exception NoSuchLockException { 1: string message }
exception NoSuchTxnException { 1: string message }
exception TxnAbortedException { 1: string message }
exception TxnOpenException { 1: string message }
struct ShowLocksRequest { 1: string dbname, 2: string tablename }
struct ShowLocksResponseElement {
  1: required i64 lockid, 5: required LockState state, 10: required string user, 11: required string hostname,
  13: optional string agentInfo
}
struct ShowLocksResponse { 1: list<ShowLocksResponseElement> locks }
"""
_TABLES = """
exception MetaException { 1: string message }
exception NoSuchObjectException { 1: string message }
exception AlreadyExistsException { 1: string message }
exception InvalidObjectException { 1: string message }
exception InvalidOperationException { 1: string message }
enum PrincipalType { USER = 1, ROLE = 2, GROUP = 3 }
struct FieldSchema { 1: string name, 2: string type, 3: string comment }
struct SerDeInfo {
  1: string name, 2: string serializationLib, 3: map<string, string> parameters, 4: optional string description,
  5: optional string serializerClass, 6: optional string deserializerClass, 7: optional i32 serdeType
}
struct Order { 1: string col, 2: i32 order }
struct StorageDescriptor {
  1: list<FieldSchema> cols, 2: string location, 3: string inputFormat, 4: string outputFormat, 5: bool compressed,
  6: i32 numBuckets, 7: SerDeInfo serdeInfo, 8: list<string> bucketCols, 9: list<Order> sortCols,
  10: map<string, string> parameters, 12: optional bool storedAsSubDirectories
}
struct Database {
  1: string name, 2: string description, 3: string locationUri, 4: map<string, string> parameters, 6: optional string ownerName,
  7: optional PrincipalType ownerType
}
struct Table {
  1: string tableName, 2: string dbName, 3: string owner, 4: i32 createTime, 5: i32 lastAccessTime, 6: i32 retention,
  7: StorageDescriptor sd, 8: list<FieldSchema> partitionKeys, 9: map<string, string> parameters, 10: string viewOriginalText,
  11: string viewExpandedText, 12: string tableType, 14: optional bool temporary, 15: optional bool rewriteEnabled,
  17: optional string catName, 18: optional PrincipalType ownerType
}
struct Partition {
  1: list<string> values, 2: string dbName, 3: string tableName, 4: i32 createTime, 5: i32 lastAccessTime,
  6: StorageDescriptor sd, 7: map<string, string> parameters, 9: optional string catName
}
struct EnvironmentContext { 1: map<string, string> properties }
struct GetTableRequest { 1: required string dbName, 2: required string tblName }
struct GetTableResult { 1: required Table table }
struct AddPartitionsRequest {
  1: required string dbName, 2: required string tblName, 3: required list<Partition> parts, 4: required bool ifNotExists,
  5: optional bool needResult
}
struct AddPartitionsResult { 1: optional list<Partition> partitions }
"""
_SERVICE = """
service ThriftHiveMetastore {
  ShowLocksResponse show_locks(1: ShowLocksRequest rqst)
  LockResponse lock(1: LockRequest rqst) throws (1: NoSuchTxnException o1, 2: TxnAbortedException o2)
  LockResponse check_lock(1: CheckLockRequest rqst)
    throws (1: NoSuchTxnException o1, 2: TxnAbortedException o2, 3: NoSuchLockException o3)
  void unlock(1: UnlockRequest rqst) throws (1: NoSuchLockException o1, 2: TxnOpenException o2)
  void heartbeat(1: HeartbeatRequest ids) throws (1: NoSuchLockException o1, 2: NoSuchTxnException o2, 3: TxnAbortedException o3)
  Database get_database(1: string name) throws (1: NoSuchObjectException o1, 2: MetaException o2)
  void create_database(1: Database database)
    throws (1: AlreadyExistsException o1, 2: InvalidObjectException o2, 3: MetaException o3)
  Table get_table(1: string dbname, 2: string tbl_name) throws (1: MetaException o1, 2: NoSuchObjectException o2)
  GetTableResult get_table_req(1: GetTableRequest req) throws (1: MetaException o1, 2: NoSuchObjectException o2)
  void create_table(1: Table tbl)
    throws (1: AlreadyExistsException o1, 2: InvalidObjectException o2, 3: MetaException o3, 4: NoSuchObjectException o4)
  void drop_table(1: string dbname, 2: string name, 3: bool deleteData)
    throws (1: NoSuchObjectException o1, 3: MetaException o3)
  void alter_table_with_environment_context(
    1: string dbname, 2: string tbl_name, 3: Table new_tbl, 4: EnvironmentContext environment_context
  ) throws (1: InvalidOperationException o1, 2: MetaException o2)
  list<Partition> get_partitions(1: string db_name, 2: string tbl_name, 3: i16 max_parts)
    throws (1: NoSuchObjectException o1, 2: MetaException o2)
  list<Partition> get_partitions_by_names(1: string db_name, 2: string tbl_name, 3: list<string> names)
    throws (1: MetaException o1, 2: NoSuchObjectException o2)
  AddPartitionsResult add_partitions_req(1: AddPartitionsRequest request)
    throws (1: InvalidObjectException o1, 2: AlreadyExistsException o2, 3: MetaException o3)
  void alter_partitions(1: string db_name, 2: string tbl_name, 3: list<Partition> new_parts)
    throws (1: InvalidOperationException o1, 2: MetaException o2)
  bool drop_partition(1: string db_name, 2: string tbl_name, 3: list<string> part_vals, 4: bool deleteData)
    throws (1: NoSuchObjectException o1, 2: MetaException o2)
}
"""


def interface() -> Any:
    """The metastore's structures and service.

    Raises:
        OptionError: thriftpy2 is not installed.
    """
    with _mutex:
        return compiled_interface()


@cache
def compiled_interface() -> Any:
    try:
        import thriftpy2  # noqa: PLC0415 - an optional extra
    except ModuleNotFoundError as exc:
        raise OptionError("the Hive metastore is reached by thriftpy2: install hoodie with the extra `hive`") from exc
    return thriftpy2.load_fp(io.StringIO(_LOCKS + _TABLES + _SERVICE), "hoodie_hive_thrift")


def failures() -> tuple[type[Exception], ...]:
    """What is raised where the metastore does not answer, or not as it should."""
    from thriftpy2.thrift import TException  # noqa: PLC0415 - an optional extra

    return (OSError, EOFError, TException)


_mutex = threading.Lock()
os.register_at_fork(before=_mutex.acquire, after_in_parent=_mutex.release)
os.register_at_fork(after_in_child=_mutex.release)


# -- A connection to a metastore.

_SOCKET = "hoodie_socket"
"""Of a client: what it reads from."""


def shown(servers: Servers) -> str:
    """For messages."""
    return ",".join(f"{host}:{port}" for host, port in servers)


def connected(servers: Servers, *, patience_s: float) -> Any:
    """A client of the first server that can be reached; each answer is waited for so long, and so is a connection."""
    from thriftpy2.protocol import TBinaryProtocolFactory  # noqa: PLC0415 - an optional extra
    from thriftpy2.thrift import TClient  # noqa: PLC0415 - an optional extra
    from thriftpy2.transport import TBufferedTransportFactory, TSocket  # noqa: PLC0415 - an optional extra

    protocols: Any = TBinaryProtocolFactory
    transports: Any = TBufferedTransportFactory
    sockets: Any = TSocket
    for number, (host, port) in enumerate(servers, 1):
        socket = sockets(host, port, socket_timeout=_milliseconds(patience_s))
        protocol = protocols().get_protocol(transports().get_transport(socket))
        try:
            protocol.trans.open()
        except failures():
            if number == len(servers):
                raise
            continue
        client = TClient(interface().ThriftHiveMetastore, protocol)
        setattr(client, _SOCKET, socket)
        return client
    raise AssertionError("unreachable")


def wait_for_answers(client: Any, patience_s: float) -> None:
    """Wait so long for each of the next answers, and no longer."""
    socket = getattr(client, _SOCKET, None)
    if socket is not None:
        socket.set_timeout(_milliseconds(patience_s))


def _milliseconds(seconds: float) -> int:
    return max(1, int(seconds * 1000))
