"""DynamoDB in memory, as far as the lock goes. The contract tests of locks run beside moto."""

from __future__ import annotations

import threading
from typing import Any

from hoodie.aws.client import CONDITION_FAILED, Address, Client, ServiceError
from hoodie.options.aws import AwsOptions

Item = dict[str, dict[str, str]]


class FakeDynamo(Client):
    """All clients of it are the same: `lambda *_: fake` makes one."""

    def __init__(self) -> None:
        super().__init__(Address("dynamodb", "here", None), AwsOptions(), "nothing")
        self.tables: dict[str, dict[str, Item]] = {}
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.lost: dict[str, int] = {}
        """Call -> how many of its answers get lost."""
        self.states = ["ACTIVE"]
        """Of a table, each until it was asked for; the last one stays."""
        self._turn = threading.Lock()

    def ask(self, call: str, **given: Any) -> dict[str, Any]:
        given = {name: value for name, value in given.items() if value is not None}
        with self._turn:
            self.calls.append((call, given))
            answer: dict[str, Any] = getattr(self, call)(**given)
        if self.lost.get(call, 0):
            self.lost[call] -= 1
            raise ServiceError("ReadTimeoutError", "no answer")
        return answer

    def create_table(self, *, TableName: str, **_: Any) -> dict[str, Any]:
        if TableName in self.tables:
            raise ServiceError("ResourceInUseException", TableName)
        self.tables[TableName] = {}
        return {}

    def describe_table(self, *, TableName: str) -> dict[str, Any]:
        state = self.states.pop(0) if len(self.states) > 1 else self.states[0]
        return {"Table": {"TableStatus": state}}

    def get_item(self, *, TableName: str, Key: Item, ConsistentRead: bool) -> dict[str, Any]:
        assert ConsistentRead
        item = self._items(TableName).get(Key["key"]["S"])
        return {} if item is None else {"Item": dict(item)}

    def put_item(self, *, TableName: str, Item: Item, **condition: Any) -> dict[str, Any]:
        self._check(TableName, Item["key"]["S"], **condition)
        self._items(TableName)[Item["key"]["S"]] = dict(Item)
        return {}

    def update_item(self, *, TableName: str, Key: Item, UpdateExpression: str, **condition: Any) -> dict[str, Any]:
        self._check(TableName, Key["key"]["S"], **condition)
        for each in UpdateExpression.removeprefix("SET ").split(", "):
            name, _, value = each.partition(" = ")
            field = condition["ExpressionAttributeNames"][name]
            self._items(TableName)[Key["key"]["S"]][field] = condition["ExpressionAttributeValues"][value]
        return {}

    def delete_item(self, *, TableName: str, Key: Item, **condition: Any) -> dict[str, Any]:
        self._check(TableName, Key["key"]["S"], **condition)
        del self._items(TableName)[Key["key"]["S"]]
        return {}

    def _items(self, table: str) -> dict[str, Item]:
        if table not in self.tables:
            raise ServiceError("ResourceNotFoundException", table)
        return self.tables[table]

    def _check(
        self,
        table: str,
        key: str,
        *,
        ConditionExpression: str,
        ExpressionAttributeNames: dict[str, str],
        ExpressionAttributeValues: Item | None = None,
    ) -> None:
        item = self._items(table).get(key)
        for each in ConditionExpression.split(" AND "):
            name, _, value = each.partition(" = ")
            if name.startswith("attribute_not_exists"):
                holds = item is None
            else:
                field = ExpressionAttributeNames[name]
                holds = item is not None and item.get(field) == (ExpressionAttributeValues or {})[value]
            if not holds:
                raise ServiceError(CONDITION_FAILED, each)
