"""Small batches, and how a write prepares them."""

import pyarrow as pa

from hoodie.keygen.generator import KeyGenerator
from hoodie.options.values import KeyGeneratorType
from hoodie.write.prepare import Preparation

SCHEMA = pa.schema([pa.field("id", pa.string(), False), ("part", pa.string()), ("v", pa.int64())])


def preparation(schema=SCHEMA, *, delete=False, ordering=()):
    return Preparation(schema, KeyGenerator(KeyGeneratorType.SIMPLE, ("id",), ("part",)), delete, "t", ordering)


def rows(*values, names=("id", "part", "v")):
    return pa.table({name: pa.array(column) for name, column in zip(names, zip(*values))})
