"""Random changes of columns between random writes and services, against a model that knows each column by itself."""

from random import Random

import pytest

from hoodie.model.tuning import TUNING
from tests.memory_tables import Input, batch, new_table, opened

SEEDS = 1


class Model:
    """Rows as dicts of column objects -> values; a dropped column takes its values with it."""

    def __init__(self):
        self.columns = [["val"], ["extra0"]]
        """Lists, for they are told apart by identity; each holds its name."""
        self.rows = {}

    def shown(self):
        return {
            key: {column[0]: values.get(id(column)) for column in self.columns} for key, values in self.rows.items()
        }


@pytest.mark.parametrize("seed", range(SEEDS))
@pytest.mark.parametrize("version", ["6", "9"])
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_rows_are_those_of_the_model(kind, version, seed):
    chance = Random(seed)
    storage, clock = new_table(table_type=kind, more={"hoodie.write.table.version": version})
    table = opened(storage, clock, tuning=TUNING)
    table.upsert(batch([Input("k0", "a", 0, 0)]))
    table.alter.add_column("extra0", "int64")
    model, fresh = Model(), 0
    model.rows["k0"] = {id(model.columns[0]): 0}
    past = {}
    for ts in range(1, 26):
        act = chance.choice(
            ["write"] * 4 + ["partial", "delete", "add", "rename", "drop", "move", "service", "service"]
        )
        columns = model.columns
        if act in ("write", "partial"):
            keys = sorted({f"k{chance.randrange(12)}" for _ in range(3)})
            keys = [key for key in keys if act == "write" or key in model.rows]
            chosen = columns if act == "write" else chance.sample(columns, chance.randrange(len(columns)))
            rows = []
            for key in keys:
                values = {id(column): chance.choice([None, chance.randrange(100)]) for column in chosen}
                kept = model.rows.get(key, {}) if act == "partial" else {}
                model.rows[key] = {**kept, **values}
                named = {column[0]: values[id(column)] for column in chosen}
                rows.append({"id": key, "part": "ab"[int(key[1:]) % 2], "ts": ts, **named})
            if rows:
                rows = [row if act == "partial" else {**row, "_hoodie_is_deleted": None} for row in rows]
                table.upsert(rows, partial=True if act == "partial" else None)
        elif act == "delete" and model.rows:
            key = chance.choice(sorted(model.rows))
            table.delete([{"id": key, "part": "ab"[int(key[1:]) % 2]}])
            del model.rows[key]
        elif act == "add" and len(columns) < 5:
            names = {column[0] for column in columns}
            name = chance.choice([n for n in ("val", "extra0", "extra1", "x", "y", "z") if n not in names])
            table.alter.add_column(name, "int64", after=chance.choice([None, columns[0][0]]) if columns else None)
            columns.append([name])
        elif act == "rename" and columns:
            fresh += 1
            names = {column[0] for column in columns}
            free = [n for n in ("val", "extra0", "x", f"new{fresh}") if n not in names]
            column, name = chance.choice(columns), chance.choice(free)
            table.alter.rename_column(column[0], name)
            column[0] = name
        elif act == "drop" and len(columns) > 1:
            column = columns.pop(chance.randrange(len(columns)))
            table.alter.drop_column(column[0])
        elif act == "move" and columns:
            table.alter.move_column(chance.choice(columns)[0], after="id")
        elif act == "service":
            _service(table, chance, kind)
        found = {row.pop("id"): row for row in table.scan().to_arrow().to_pylist()}
        for row in found.values():
            for name in ("part", "ts", "_hoodie_is_deleted"):
                row.pop(name)
        assert found == model.shown(), act
        past[table.timeline.commits[-1].time] = found
    for time, expected in past.items():
        names = ["id", *next(iter(expected.values()), {})]
        if time in {commit.time for commit in table.timeline.commits}:
            then = {row.pop("id"): row for row in table.scan(names, as_of=time).to_arrow().to_pylist()}
            assert then == expected


def _service(table, chance, kind):
    service = chance.choice(["compact", "log", "cluster", "archive"])
    if service == "compact" and kind == "MERGE_ON_READ":
        table.compact()
    elif service == "log" and kind == "MERGE_ON_READ":
        table.compact_logs(blocks=2)
    elif service == "cluster":
        table.cluster(sort_by=["ts"])
    elif service == "archive":
        table.archive(min_commits=4)
