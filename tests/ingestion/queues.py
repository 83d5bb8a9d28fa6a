"""A queue of moto's SQS that announces files of its S3."""

import json
import secrets
from urllib.parse import quote_plus

import boto3

import hoodie
from tests.servers.s3 import AWS, BUCKET, shared_moto


class Queue:
    """A folder of a bucket whose files are announced."""

    def __init__(self):
        self.server = shared_moto()
        keys = {"aws_access_key_id": AWS.access_key, "aws_secret_access_key": AWS.secret_key}
        reach = {"endpoint_url": self.server.endpoint, "region_name": "us-east-1", **keys}
        self.sqs, self.s3 = boto3.client("sqs", **reach), boto3.client("s3", **reach)
        name = self.sqs.create_queue(QueueName=f"q{secrets.token_hex(6)}")["QueueUrl"].rpartition("/")[2]
        self.url = f"{self.server.endpoint}/123456789012/{name}"
        self.folder = f"landing/{secrets.token_hex(6)}"
        self.sequence = 0
        self.options = {**self.server.options, "hoodie.streamer.s3.source.queue.long.poll.wait": "0"}

    def put(self, name, *rows):
        """Write a file, and announce it."""
        body = "".join(json.dumps(row) + "\n" for row in rows).encode()
        self.s3.put_object(Bucket=BUCKET, Key=f"{self.folder}/{name}", Body=body)
        return self.announce(name, len(body))

    def announce(self, name, size, kind="ObjectCreated:Put"):
        self.sequence += 1
        entry = {"key": quote_plus(f"{self.folder}/{name}"), "size": size, "sequencer": f"{self.sequence:X}"}
        record = {
            "eventName": kind,
            "eventTime": f"2026-01-31T12:00:{self.sequence % 60:02d}Z",
            "s3": {"bucket": {"name": BUCKET}, "object": entry},
        }
        return self.send(json.dumps({"Records": [record]}))

    def send(self, body):
        self.sqs.send_message(QueueUrl=self.url, MessageBody=body)
        return body

    def left(self):
        """Messages that are there, and those that somebody has received."""
        names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
        attributes = self.sqs.get_queue_attributes(QueueUrl=self.url, AttributeNames=names)["Attributes"]
        return tuple(int(attributes[name]) for name in names)

    def ingest(self, table, **arguments):
        arguments = {"record_key": "id", "source_options": self.options, **arguments}
        return hoodie.ingest(arguments.pop("source", self.url), table, **arguments)


def rows_of(table):
    return sorted((row["id"], row["n"]) for row in hoodie.open_table(table).to_arrow().to_pylist())
