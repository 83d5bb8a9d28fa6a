"""One place that knows which files a table has, for everybody who asks: over HTTP, as Apache Hudi's timeline server answers."""

from hoodie.timeline_server.server import TimelineServer, start

__all__ = ["TimelineServer", "start"]
