"""A stand-in of BigQuery's REST interface: datasets, external tables, statements that make them."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import sqlglot
from google.auth.credentials import AnonymousCredentials
from google.cloud import bigquery
from sqlglot import exp

from hoodie.options.bigquery import BigQueryOptions


class Tables(dict[str, dict[str, Any]]):
    """Name -> what is registered; `statements` are those that were run. It answers nothing while `refuses` has a status."""

    def __init__(self) -> None:
        self.datasets = {"d"}
        self.statements: list[str] = []
        self.patched: list[list[str]] = []
        self.refuses = 0
        self.address = ""

    def connect(self, options: BigQueryOptions) -> bigquery.Client:
        return bigquery.Client(
            project=options.billing_project or options.project,
            credentials=AnonymousCredentials(),
            client_options={"api_endpoint": self.address},
        )

    def run(self, text: str) -> None:
        plain = re.sub(r" WITH (PARTITION COLUMNS|CONNECTION `[^`]+`)", "", text)  # which sqlglot does not know
        made = sqlglot.parse_one(plain, dialect="bigquery")
        assert isinstance(made, exp.Create)
        self.statements.append(text)
        name = re.findall(r"`([^`]+)`", text)[0].rpartition(".")[2]
        said = dict(re.findall(r'(\w+)=(\["[^"]*"\]|"[^"]*"|\w+)', text.rpartition(" OPTIONS(")[2]))
        external: dict[str, Any] = {"sourceUris": json.loads(said["uris"]), "sourceFormat": "PARQUET"}
        fields = [_field(each.name, each.args["kind"]) for each in made.this.expressions]
        if "hive_partition_uri_prefix" in said:
            external["hivePartitioningOptions"] = {
                "mode": "CUSTOM",
                "sourceUriPrefix": json.loads(said["hive_partition_uri_prefix"]),
                "requirePartitionFilter": said["require_hive_partition_filter"] == "true",
            }
            fields.append({"name": "city", "type": "STRING"})
        if "WITH CONNECTION" in text:
            external["connectionId"] = re.findall(r"WITH CONNECTION `([^`]+)`", text)[0]
        self[name] = {"type": "EXTERNAL", "externalDataConfiguration": external, "schema": {"fields": fields}}


def _field(name: str, kind: exp.DataType) -> dict[str, Any]:
    is_list = kind.this == exp.DataType.Type.ARRAY
    inner = kind.expressions[0] if is_list else kind
    of_sql = {"BIGINT": "INTEGER", "DOUBLE": "FLOAT", "TEXT": "STRING", "TIMESTAMPTZ": "TIMESTAMP"}
    kinds = {"BIGDECIMAL": "BIGNUMERIC", "DECIMAL": "NUMERIC", "VARBINARY": "BYTES", "BOOLEAN": "BOOLEAN"}
    text = inner.this.value
    field = {"name": name, "type": {**of_sql, **kinds, "STRUCT": "RECORD", "TIMESTAMP": "DATETIME"}.get(text, text)}
    if text == "STRUCT":
        field["fields"] = [_field(each.name, each.args["kind"]) for each in inner.expressions]
    return field | ({"mode": "REPEATED"} if is_list else {})


@contextmanager
def bigquery_server() -> Iterator[Tables]:
    tables = Tables()

    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length)) if length else {}
            status, answer = _answered(tables, self.command, self.path.partition("?")[0], body)
            data = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = do_PATCH = _answer

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    tables.address = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield tables
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _answered(tables: Tables, verb: str, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    parts = path.strip("/").split("/")[2:]
    match [verb, *parts]:
        case _ if tables.refuses:
            return tables.refuses, {"error": {"message": "no access", "errors": [{"reason": "accessDenied"}]}}
        case ["GET", "projects", "p", "datasets", dataset] if dataset in tables.datasets:
            return 200, {"datasetReference": {"projectId": "p", "datasetId": dataset}}
        case ["GET", "projects", "p", "datasets", "d", "tables", name] if name in tables:
            return 200, {"tableReference": {"projectId": "p", "datasetId": "d", "tableId": name}, **tables[name]}
        case ["PATCH", "projects", "p", "datasets", "d", "tables", name]:
            tables.patched.append([key for key in body if key not in ("etag", "tableReference", "labels")])
            external = body.get("externalDataConfiguration", {})
            tables[name]["schema"] = body.get("schema") or external["schema"]
            return 200, {"tableReference": {"projectId": "p", "datasetId": "d", "tableId": name}, **tables[name]}
        case ["POST", "projects", project, "queries" | "jobs"]:
            tables.run(body["query"] if "query" in body else body["configuration"]["query"]["query"])
            return 200, {
                "jobReference": {"projectId": project, "jobId": "j"},
                "jobComplete": True,
                "status": {"state": "DONE"},
                "configuration": {"query": {"query": ""}},
            }
        case ["GET", "projects", project, "queries" | "jobs", *_]:
            done = {
                "jobReference": {"projectId": project, "jobId": "j"},
                "jobComplete": True,
                "rows": [],
                "totalRows": "0",
            }
            return 200, {**done, "status": {"state": "DONE"}, "configuration": {"query": {"query": ""}}}
    return 404, {"error": {"message": f"Not found: {path}", "errors": [{"reason": "notFound"}]}}
