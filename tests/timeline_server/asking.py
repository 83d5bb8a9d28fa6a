"""A small table, and a client of few words that asks for it."""

import json
import urllib.parse

import pyarrow as pa
import urllib3

import hoodie
from hoodie.timeline.timeline import completed_and_compactions, timeline_hash

SCHEMA = pa.schema([("id", pa.string()), ("part", pa.string()), ("val", pa.int64())])
QUIET = {"hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false"}


def rows(*ids, part="a", val=0):
    return pa.table({"id": list(ids), "part": [part] * len(ids), "val": [val] * len(ids)}, schema=SCHEMA)


def made(folder):
    """A table of two commits in two partitions."""
    table = hoodie.create_table(
        folder / "t", SCHEMA, record_key="id", partition_by="part", table_type="MERGE_ON_READ", options=QUIET
    )
    table.upsert(rows("k1", "k2"))
    table.upsert(rows("k3", part="b c%d"))
    return table


class Asking:
    """A client of few words."""

    def __init__(self, server, table):
        self.pool = urllib3.PoolManager()
        self.server, self.path = server, table._context.storage.uri

    def request(self, method, path, *, token=None, body=None, **fields):
        asked = urllib.parse.urlencode({"basepath": self.path, **fields})
        headers = {"authorization": f"Bearer {self.server.token if token is None else token}"}
        return self.pool.request(
            method, f"{self.server.address}{path}?{asked}", headers=headers, body=body, retries=False
        )

    def get(self, name, **fields):
        answer = self.request("GET", "/v1/hoodie/view/" + name, **fields)
        assert answer.status == 200, answer.data
        return json.loads(answer.data)

    def stands(self, table):
        """What a client of Apache Hudi tells of its timeline."""
        known = completed_and_compactions(table._context.active.load())
        return {"lastinstantts": known[-1].time, "timelinehash": timeline_hash(known)}
