"""Who else reads and writes HFiles: Apache Hudi's own classes, and Apache HBase, each in a JVM behind py4j."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import py4j
from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

from tests.servers.java import SHORT_LIVED

Pairs = list[tuple[bytes, bytes]]
HBASE_JARS = Path(os.environ.get("HOODIE_HBASE_JARS", "build/jars/hbase"))
LATEST = (1 << 63) - 1
_CODECS = {"snappy": "Snappy", "lz4": "Lz4", "zstd": "Zstd"}
_OPEN = ("java.lang", "java.nio", "sun.nio.ch", "jdk.internal.misc")


@contextmanager
def jvm(classpath: Sequence[str], log: Path) -> Iterator[Any]:
    """A JVM with these jars, which ends with the block."""
    (py4j_jar,) = (Path(py4j.__file__).parents[4] / "share" / "py4j").glob("py4j*.jar")
    options = [f"--add-opens=java.base/{name}=ALL-UNNAMED" for name in _OPEN]
    with log.open("w", encoding="utf-8") as errors:
        port, process = launch_gateway(
            jarpath=str(py4j_jar),
            classpath=os.pathsep.join(classpath),
            javaopts=[*options, "--add-exports=java.base/jdk.internal.misc=ALL-UNNAMED", "-Xmx512m", *SHORT_LIVED],
            die_on_exit=True,
            redirect_stderr=errors,
            return_proc=True,
        )
        gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auto_convert=True))
        try:
            yield gateway.jvm
        finally:
            gateway.shutdown()
            process.stdin.close()
            process.wait(timeout=60)


class HudiHFiles:
    """`org.apache.hudi.io.hfile`."""

    def __init__(self, java: Any) -> None:
        self._java = java
        self._room = java.org.apache.hudi.io.hfile

    def _open(self, data: bytes) -> Any:
        io = self._java.org.apache.hudi.io
        stream = io.ByteBufferBackedInputStream(self._java.java.nio.ByteBuffer.wrap(data))
        reader = self._room.HFileReaderImpl(io.ByteArraySeekableDataInputStream(stream), len(data))
        reader.initializeMetadata()
        return reader

    def read(self, data: bytes) -> Pairs:
        """All keys with their values."""
        reader = self._open(data)
        assert reader.getNumKeyValueEntries() >= 0
        if not reader.seekTo():
            return []
        found = [self._pair(reader)]
        while reader.next():
            found.append(self._pair(reader))
        assert reader.getNumKeyValueEntries() == len(found)
        return found

    def seek(self, data: bytes, texts: Sequence[str]) -> list[tuple[int, tuple[bytes, bytes] | None]]:
        """What `seekTo` says of each text in their order, and the pair on which the reader stands then."""
        reader = self._open(data)
        reader.seekTo()
        found = []
        for text in texts:
            said = reader.seekTo(self._room.UTF8StringKey(text))
            found.append((said, self._pair(reader) if reader.getKeyValue().isPresent() else None))
        return found

    def meta(self, data: bytes, name: str) -> bytes | None:
        """A meta block."""
        found = self._open(data).getMetaBlock(name)
        if not found.isPresent():
            return None
        buffer = found.get()
        every = bytes(buffer.array())
        start = buffer.arrayOffset() + buffer.position()
        return every[start : start + buffer.remaining()]

    def info(self, data: bytes, name: str) -> bytes | None:
        """An entry of the file info."""
        found = self._open(data).getMetaInfo(self._room.UTF8StringKey(name))
        return bytes(found.get()) if found.isPresent() else None

    def bloom_lets_in(self, type_code: str, text: str, keys: Sequence[str]) -> list[bool]:
        """What Hudi's own filter, as it stands in a meta block, says of keys."""
        factory = self._java.org.apache.hudi.common.bloom.BloomFilterFactory
        bloom = factory.fromString(text, type_code)
        return [bloom.mightContain(key) for key in keys]

    def write(self, pairs: Sequence[tuple[str, bytes]], *, codec: str, block_bytes: int, meta: bytes) -> bytes:
        """A file of Hudi's writer, with one meta block and one entry of the file info."""
        out = self._java.java.io.ByteArrayOutputStream()
        chosen = getattr(self._java.org.apache.hudi.io.compress.CompressionCodec, codec)
        context = self._room.HFileContext.builder().blockSize(block_bytes).compressionCodec(chosen).build()
        writer = self._room.HFileWriterImpl(context, out)
        for key, value in pairs:
            writer.append(key, value)
        writer.appendMetaInfo("bloomFilter", meta)
        writer.appendFileInfo("schema", b"{}")
        writer.close()
        return bytes(out.toByteArray())

    @staticmethod
    def _pair(reader: Any) -> tuple[bytes, bytes]:
        cell = reader.getKeyValue().get()
        every, key = bytes(cell.getBytes()), cell.getKey()
        key_at, value_at = key.getContentOffset(), cell.getValueOffset()
        return (
            every[key_at : key_at + key.getContentLength()],
            every[value_at : value_at + cell.getValueLength()],
        )


class HBaseAnswer(NamedTuple):
    pairs: Pairs
    found: list[bool]
    """Of the keys that were asked for: by the index."""
    let_in: list[bool]
    """By the bloom filter; empty where there is none."""
    middle: bytes | None


class HBaseHFiles:
    """`org.apache.hadoop.hbase.io.hfile`, with the codecs of HBase that need no native library."""

    def __init__(self, java: Any) -> None:
        self._java = java
        self._hbase = java.org.apache.hadoop.hbase
        self._conf = self._hbase.HBaseConfiguration.create()
        self._files = java.org.apache.hadoop.fs.FileSystem.getLocal(self._conf).getRawFileSystem()

    def read(self, path: Path, keys: Sequence[bytes]) -> HBaseAnswer:
        """All cells, and what is found of these keys."""
        room = self._hbase.io.hfile
        where = self._java.org.apache.hadoop.fs.Path(str(path))
        reader = room.HFile.createReader(self._files, where, room.CacheConfig(self._conf), True, self._conf)
        try:
            scanner = reader.getScanner(self._conf, False, True)
            pairs: Pairs = []
            more = reader.getEntries() > 0 and scanner.seekTo()
            while more:
                cell, util = scanner.getCell(), self._hbase.CellUtil
                pairs.append((bytes(util.cloneRow(cell)), bytes(util.cloneValue(cell))))
                more = scanner.next()
            found = [
                bool(pairs)
                and scanner.seekTo(self._hbase.KeyValue(key, bytearray(), bytearray(), LATEST, bytearray())) == 0
                for key in keys
            ]
            meta = reader.getGeneralBloomFilterMetadata()
            let_in = []
            if meta is not None:
                bloom = self._hbase.util.BloomFilterFactory.createFromMeta(meta, reader)
                let_in = [bloom.contains(key, 0, len(key), None) for key in keys]
            middle = reader.midKey() if pairs else None  # it refuses an empty file
            row = None if middle is None else bytes(self._hbase.CellUtil.cloneRow(middle.get()))
            return HBaseAnswer(pairs, found, let_in, row)
        finally:
            reader.close()

    def write(
        self, path: Path, pairs: Pairs, *, codec: str, checksum: str, block_bytes: int, index_bytes: int, bloom: bool
    ) -> None:
        """A file of HBase's writer."""
        room, enum = self._hbase.io.hfile, self._java.java.lang.Enum.valueOf
        conf = self._java.org.apache.hadoop.conf.Configuration(self._conf)
        conf.setInt("hfile.index.block.max.size", index_bytes)
        conf.setInt("hfile.index.block.min.entries", 2)
        conf.setInt("io.storefile.bloom.block.size", 4096)
        context = (
            room.HFileContextBuilder()
            .withBlockSize(block_bytes)
            .withCompression(enum(self._class("io.compress.Compression$Algorithm"), codec))
            .withChecksumType(enum(self._class("util.ChecksumType"), checksum))
            .withIncludesMvcc(True)
            .withHBaseCheckSum(True)
            .build()
        )
        where = self._java.org.apache.hadoop.fs.Path(str(path))
        if bloom:
            kind = enum(self._class("regionserver.BloomType"), "ROW")
            cache = room.CacheConfig(conf)
            builder = self._hbase.regionserver.StoreFileWriter.Builder
            writer = (
                builder(conf, cache, self._files)
                .withFilePath(where)
                .withFileContext(context)
                .withBloomType(kind)
                .withMaxKeyCount(len(pairs))
                .build()
            )
        else:
            writer = (
                room.HFile.getWriterFactoryNoCache(conf).withPath(self._files, where).withFileContext(context).create()
            )
        for key, value in pairs:
            writer.append(self._hbase.KeyValue(key, bytearray(), bytearray(), LATEST, value))
        writer.close()

    def _class(self, name: str) -> Any:
        return self._java.java.lang.Class.forName(f"org.apache.hadoop.hbase.{name}")


def hbase_settings(folder: Path) -> str:
    """A folder for the class path: which codecs HBase takes is read from there alone."""
    rows = (
        f"<property><name>hbase.io.compress.{name}.codec</name>"
        f"<value>org.apache.hadoop.hbase.io.compress.aircompressor.{codec}Codec</value></property>"
        for name, codec in _CODECS.items()
    )
    (folder / "hbase-site.xml").write_text(f"<configuration>{''.join(rows)}</configuration>", encoding="utf-8")
    (folder / "log4j.properties").write_text("log4j.rootLogger=OFF\n", encoding="utf-8")
    return str(folder)
