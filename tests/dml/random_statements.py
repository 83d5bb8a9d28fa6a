"""Random statements over a table t and a source s, from a seed."""

import random

import pyarrow as pa

SCHEMA = pa.schema(
    [("id", pa.string()), ("part", pa.string()), ("n", pa.int64()), ("x", pa.float64()), ("note", pa.string())]
)


class Statements:
    """Texts for a table t with the columns of `SCHEMA`, beside a table s of the same columns."""

    def __init__(self, seed):
        self.chance = random.Random(seed)

    def statement(self):
        kind = self.chance.choice(["update", "update", "delete", "insert", "merge", "merge", "merge"])
        return getattr(self, kind)()

    def update(self):
        return f"UPDATE t SET {self.sets('t', ('t',))} WHERE {self.condition('t')}"

    def delete(self):
        return f"DELETE FROM t WHERE {self.condition('t')} AND {self.condition('t')}"

    def insert(self):
        return "INSERT INTO t SELECT id || '_' || part, part, n, x, note FROM s WHERE " + (
            "id || '_' || part NOT IN (SELECT id FROM t)"
        )

    def merge(self):
        whens = []
        if self.chance.random() < 0.5:
            whens.append(f"WHEN MATCHED AND {self.condition('s')} THEN DELETE")
        if self.chance.random() < 0.8:
            whens.append(f"WHEN MATCHED AND {self.condition('t')} THEN UPDATE SET {self.sets('t', ('t', 's'))}")
        if self.chance.random() < 0.4:
            whens.append(f"WHEN MATCHED THEN UPDATE SET {self.sets('t', ('s',))}")
        if self.chance.random() < 0.6:
            whens.append(
                f"WHEN NOT MATCHED AND {self.condition('s')} THEN INSERT (id, part, n, note) VALUES (s.id, s.part, s.n * 2, 'new')"
            )
        if self.chance.random() < 0.3:
            whens.append(f"WHEN NOT MATCHED BY SOURCE AND {self.condition('t')} THEN UPDATE SET n = t.n - 1")
        elif self.chance.random() < 0.3:
            whens.append(f"WHEN NOT MATCHED BY SOURCE AND {self.condition('t')} THEN DELETE")
        on = self.chance.choice(["t.id = s.id", "t.id = lower(s.id)", "t.id = s.id AND t.part = s.part"])
        if "part" in on:  # a key in another partition would be there twice, which the plain table does not mind
            whens = [when for when in whens if "INSERT" not in when]
        return f"MERGE INTO t USING s ON {on} " + " ".join(whens or ["WHEN MATCHED THEN DELETE"])

    def sets(self, row, rows):
        values = {
            "n": f"{self.chance.choice(rows)}.n" + self.chance.choice(["", f" + {self.chance.randint(-3, 3)}"]),
            "x": f"CASE WHEN {self.condition(row)} THEN {row}.x / 2 ELSE {self.chance.choice(rows)}.n END",
            "note": f"{self.chance.choice(rows)}.note" + self.chance.choice(["", " || ', it''s é; -- so'"]),
            "part": self.chance.choice(
                [f"CASE WHEN {row}.n % 2 = 0 THEN 'a' ELSE {row}.part END", f"{self.chance.choice(rows)}.id"]
            ),
        }
        chosen = self.chance.sample(sorted(values), self.chance.randint(1, 3))
        return ", ".join(f"{name} = {values[name]}" for name in chosen)

    def condition(self, row):
        return self.chance.choice(
            [
                f"{row}.n > {self.chance.randint(-5, 20)}",
                f"{row}.x IS NULL",
                f"({row}.x < {self.chance.randint(0, 20)} OR {row}.note LIKE '%o%')",
                f"{row}.part IN ('a', 'c')",
                f"{row}.id IN (SELECT id FROM u)",
                f"NOT coalesce({row}.n BETWEEN 2 AND {self.chance.randint(2, 9)}, false)",
                "true",
            ]
        )

    def rows(self):
        ids = self.chance.sample(range(25), self.chance.randint(1, 12))
        return pa.Table.from_pylist(
            [
                {
                    "id": f"k{n}",
                    "part": self.chance.choice("abc"),
                    "n": self.chance.choice([None, *range(10)]),
                    "x": self.chance.choice([None, 1.5, 3.0]),
                    "note": self.chance.choice([None, "foo", "bär"]),
                }
                for n in ids
            ],
            schema=SCHEMA,
        )
