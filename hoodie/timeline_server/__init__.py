"""One server that knows the files of a table: over HTTP, with the answers of Apache Hudi's timeline server."""

from hoodie.timeline_server.server import TimelineServer, start

__all__ = ["TimelineServer", "start"]
