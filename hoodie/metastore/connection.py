"""A connection to a metastore."""

from __future__ import annotations

from typing import Any

from hoodie.metastore.interface import failures, interface
from hoodie.options.hive import Servers

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
