"""CSV of other separators, quotes, escapes and encodings, and without names."""

from __future__ import annotations

import gzip
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hoodie
from hoodie.cli.__main__ import main
from hoodie.errors import OptionError
from hoodie.ingestion.csv_settings import CsvSettings, parse_csv_settings
from hoodie.ingestion.formats import decode_csv


def csv(**options: str) -> dict[str, str]:
    return {f"hoodie.streamer.csv.{name}": value for name, value in options.items()}


@pytest.mark.parametrize(
    ("options", "content"),
    [
        (csv(sep=";"), "id;name\n1;a,b\n2;\n"),
        (csv(delimiter="\\t"), "id\tname\n1\ta,b\n2\t\n"),
        (csv(sep="\\u0001"), "id\1name\n1\1a,b\n2\1\n"),
        (csv(quote="'"), "id,name\n1,'a,b'\n2,\n"),
        (csv(escape="\\"), "id,name\n1,a\\,b\n2,\n"),
        (csv(quote="", sep="|"), "id|name\n1|a,b\n2|\n"),
        (csv(nullValue="NA"), 'id,name\n1,"a,b"\n2,NA\n'),
        (csv(escape='"', mode="PERMISSIVE", inferSchema="true", comment=""), 'id,name\n1,"a,b"\n2,\n'),
        ({"hoodie.deltastreamer.csv.sep": "|"}, "id|name\n1|a,b\n2|\n"),
    ],
    ids=str,
)
@pytest.mark.parametrize("known", [None, pa.schema([("id", pa.int64()), ("name", pa.string())])])
def test_files_are_read_as_the_options_say(options: dict[str, str], content: str, known: pa.Schema | None) -> None:
    settings, rest = parse_csv_settings({**options, "aws_region": "r"})
    assert rest == {"aws_region": "r"}
    rows, bad = decode_csv("a.csv", content.encode(), known, settings)
    assert (rows.to_pylist(), bad) == ([{"id": 1, "name": "a,b"}, {"id": 2, "name": None}], ())


@pytest.mark.parametrize("encoding", ["ISO-8859-1", "UTF-16", "windows-1252", "utf8"])
def test_any_encoding_of_text_is_read_and_other_text_is_set_apart(encoding: str) -> None:
    settings, _ = parse_csv_settings(csv(encoding=encoding))
    assert decode_csv("a", "id,n\n1,é\n".encode(encoding), None, settings).rows.to_pylist() == [{"id": 1, "n": "é"}]
    settings, _ = parse_csv_settings(csv(charset="US-ASCII"))
    (bad,) = decode_csv("a", "id,n\n1,é\n".encode("latin-1"), None, settings).bad
    assert "it is not US-ASCII text" in bad.reason


@pytest.mark.parametrize("sign", [";", ","])
@pytest.mark.parametrize("escape", ["", "\\"])
def test_an_open_quote_of_any_sign_is_found(sign: str, escape: str) -> None:
    how = CsvSettings(separator=sign, quote="'", escape=escape)
    content = f"id{sign}n\n1{sign}'a{escape and escape + chr(39)}'\n2{sign}'b\n3{sign}c\n"
    rows, (bad,) = decode_csv("a.csv", content.encode(), None, how)
    assert rows.column("id").to_pylist() == [1]
    assert bad.reason.startswith("a quote does not end")


def test_without_names_columns_are_those_of_the_table_or_numbered() -> None:
    how = CsvSettings(has_names=False)
    known = pa.schema([("n", pa.string()), ("id", pa.int64())])
    rows, bad = decode_csv("a", b"007,1\nx,y\nz\n", known, how)
    assert rows.to_pylist() == [{"n": "007", "id": 1}]
    assert sorted(each.reason for each in bad) == ["1 fields, not 2", "a value is not of its column's type"]
    rows, _ = decode_csv("a", b"007,,1\n", None, how)
    assert rows.to_pylist() == [{"_c0": "007", "_c1": None, "_c2": 1}]
    rows, _ = decode_csv("a", b"007,,1\n", pa.schema([("_c2", pa.string())]), how)
    assert rows.to_pylist() == [{"_c0": "007", "_c1": None, "_c2": "1"}]


@pytest.mark.parametrize(
    "options",
    [
        *(csv(sep=";;"), csv(sep=""), csv(sep="§"), csv(quote="\n"), csv(sep='"'), csv(comment="#")),
        *(csv(encoding="hex"), csv(encoding="none such"), csv(header="maybe"), csv(dateFormat="dd.MM"), csv(other="")),
        csv(mode="FAILFAST"),
    ],
    ids=str,
)
def test_what_is_not_read_is_said(options: dict[str, str]) -> None:
    with pytest.raises(OptionError, match=r"hoodie\.streamer\.csv\."):
        parse_csv_settings(options)


def test_a_folder_of_tsv_and_the_command_read_them(tmp_path: Path) -> None:
    folder = tmp_path / "landing"
    folder.mkdir()
    (folder / "a.tsv").write_text("id\tn\n1\ta,b\n")
    (folder / "b.csv").write_text("id,n\n2,c\n")
    (folder / "c.tsv.gz").write_bytes(gzip.compress(b"id\tn\n3\td\n"))
    for each in folder.iterdir():
        os.utime(each, (1000, 1000))
    assert hoodie.ingest(folder, tmp_path / "t", record_key="id").rows == 3
    assert rows_of(tmp_path / "t") == [(1, "a,b"), (2, "c"), (3, "d")]
    (folder / "d.csv").write_text("id;n\n4;e\n")
    sep = ["--source-option", "hoodie.streamer.csv.sep=;"]
    assert main(["ingest", str(folder), str(tmp_path / "t"), *sep]) == 0
    assert rows_of(tmp_path / "t")[3:] == [(4, "e")]


def rows_of(path: Path) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in hoodie.open_table(path).scan(["id", "n"]).to_arrow().to_pylist())


def test_a_job_of_hudis_streamer_reads_csv_without_names(tmp_path: Path) -> None:
    folder = tmp_path / "landing"
    folder.mkdir()
    (folder / "a.csv").write_text("1|a\n2|b\n")
    (tmp_path / "s.avsc").write_text(
        '{"type": "record", "name": "r", "fields": [{"name": "id", "type": ["null", "long"]}, '
        '{"name": "n", "type": ["null", "string"]}]}'
    )
    properties = {
        "hoodie.deltastreamer.source.dfs.root": folder,
        "hoodie.deltastreamer.csv.sep": "|",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.streamer.schemaprovider.source.schema.file": tmp_path / "s.avsc",
    }
    job = ["ingest", "--target-base-path", str(tmp_path / "t"), "--target-table", "t", "--source-class", "CsvDFSSource"]
    job += ["--schemaprovider-class", "FilebasedSchemaProvider"]
    job += [part for key, value in properties.items() for part in ("--hoodie-conf", f"{key}={value}")]
    assert main(job) == 0
    assert rows_of(tmp_path / "t") == [(1, "a"), (2, "b")]
