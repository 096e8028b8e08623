"""The text of a table's file as UTF-8 bytes: unpacked, decoded where its encoding is known, refused where it is not."""

from __future__ import annotations

import bz2
import io
import lzma
import zipfile
import zlib
from pathlib import Path
from typing import Any

from torchpref.errors import DataError, MissingExtraError, UsageError

GZIP = b"\x1f\x8b"
BZIP, XZ, ZSTD, ZIP = b"BZh", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd", b"PK\x03\x04"
#: Beginnings of compressed files that are unpacked, and the endings of their names.
PACKED = (GZIP, BZIP, XZ, ZSTD, ZIP)
PACKED_ENDINGS = (".gz", ".bz2", ".xz", ".zst", ".zip")
#: Text of more bytes than this is not unpacked into memory.
MOST_BYTES = 8 << 30
#: Unpacked text of more than ``BOMB_BYTES`` that grew more than this many times is taken for an archive bomb.
BOMB_RATIO = 200
BOMB_BYTES = 256 << 20
_CHUNK = 1 << 22
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
#: Beginnings of files that are no tables of text, and what to do about them.
_FOREIGN = {
    b"SQLite format 3": "an SQLite database; export the table: sqlite3 -header -csv {path} 'SELECT * FROM runs' > runs.csv",
    b"\x89HDF": "an HDF5 file; save the table as Parquet",
    b"%PDF": "a PDF document; give the table as CSV",
    b"\x80\x02": "a pickle, which runs code when it is loaded; save the table as Parquet",
    b"\x80\x03": "a pickle, which runs code when it is loaded; save the table as Parquet",
    b"\x80\x04": "a pickle, which runs code when it is loaded; save the table as Parquet",
    b"\x80\x05": "a pickle, which runs code when it is loaded; save the table as Parquet",
    b"\x93NUMPY": "a NumPy array; pass it to torchpref.Trajectories, or save a table",
    b"\xd0\xcf\x11\xe0": "a spreadsheet of the old kind; save the table as CSV or .xlsx",
}
_DUCKDB = "a DuckDB database; export the table: duckdb {path} \"COPY runs TO 'runs.parquet'\""


class NoTableError(DataError):
    """A file that holds no table, as opposed to a damaged one."""


def read_text(path: Path, encoding: str | None = None) -> bytes:
    """The whole of a text file as UTF-8 without a byte-order mark; gzip is unpacked.

    Args:
        path: the file.
        encoding: its encoding; by default UTF-8, or UTF-16 where a byte-order mark says so.

    Raises:
        DataError: it cannot be read or decoded, is empty, or is no text.
    """
    try:
        size = path.stat().st_size
        if size > MOST_BYTES:
            raise DataError(f"{path}: {size:,} bytes of text are too many; convert the table to Parquet, or split it")
        data = path.read_bytes()
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror or error})") from error
    if data.startswith(GZIP):
        data = _unpack(data, path)
    elif data.startswith(PACKED):
        data = unpacked(data, path)
    if not data or data.isspace():
        raise DataError(f"{path}: the file is empty")
    refuse_foreign(path, data[:16])
    return _utf8(data, path, encoding)


def refuse_foreign(path: Path, head: bytes) -> None:
    """Raise DataError for the beginning of a file that is known to be no table."""
    if head[8:12] == b"DUCK":
        raise NoTableError(f"{path}: not a table but {_DUCKDB.format(path=path)}")
    for magic, what in _FOREIGN.items():
        if head.startswith(magic):
            raise NoTableError(f"{path}: not a table but {what.format(path=path)}")


def _unpack(data: bytes, path: Path) -> bytes:
    parts: list[bytes] = []
    total = 0
    rest = data
    try:
        while rest.startswith(GZIP):
            stream = zlib.decompressobj(31)
            while not stream.eof:
                part = stream.decompress(rest, _CHUNK)
                rest = stream.unconsumed_tail
                parts.append(part)
                total += len(part)
                _refuse_bomb(total, len(data), path)
                if not part and not rest and not stream.eof:
                    raise DataError(f"{path}: the gzip file ends in the middle; was it cut short? Copy it again")
            rest = stream.unused_data
    except zlib.error as error:
        raise DataError(f"{path}: a damaged gzip file ({error}); copy it again") from error
    return b"".join(parts)


def unpacked(data: bytes, path: Path) -> bytes:
    """What a file packed with bzip2, xz or zstd holds, or the one table in a zip archive.

    Raises:
        DataError: it is damaged, an archive bomb, or an archive of several files.
        MissingExtraError: it is packed with zstd, and ``zstandard`` is not installed.
    """
    if data.startswith(ZIP):
        return _member(data, path)
    if data.startswith(ZSTD):
        return _zstandard(data, path)
    try:
        with bz2.BZ2File(io.BytesIO(data)) if data.startswith(BZIP) else lzma.LZMAFile(io.BytesIO(data)) as stream:
            return _bounded(stream, len(data), path)
    except (OSError, EOFError, ValueError, lzma.LZMAError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{path}: a damaged compressed file ({error}); was it cut short? Copy it again") from error


def _member(data: bytes, path: Path) -> bytes:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            names = [
                name for name in archive.namelist() if not name.endswith("/") and not name.startswith(("__MACOSX", "."))
            ]
            if len(names) != 1:
                raise NoTableError(
                    f"{path}: not a table but an archive of {len(names)} files; unpack it, and name the folder"
                )
            with archive.open(names[0]) as stream:
                return _bounded(stream, len(data), path)
    except DataError:
        raise
    except (OSError, EOFError, ValueError, zipfile.BadZipFile, RuntimeError, NotImplementedError, zlib.error) as error:
        raise DataError(f"{path}: a damaged zip archive ({error}); copy it again") from error


def _zstandard(data: bytes, path: Path) -> bytes:
    try:
        import zstandard
    except ImportError as error:
        raise MissingExtraError("zstandard", "inspect") from error
    parts: list[bytes] = []
    total, rest = 0, data
    try:
        while rest.startswith(ZSTD):
            stream = zstandard.ZstdDecompressor(max_window_size=1 << 27).decompressobj()
            at = 0
            while at < len(rest) and not stream.eof:  # in small pieces, so that a bomb is seen before it unfolds
                parts.append(stream.decompress(rest[at : at + 4096]))
                at += 4096
                total += len(parts[-1])
                _refuse_bomb(total, len(data), path)
            if not stream.eof:
                raise DataError(
                    f"{path}: a damaged compressed file, which ends in the middle; was it cut short? Copy it again"
                )
            rest = stream.unused_data + rest[at:]
    except (zstandard.ZstdError, MemoryError) as error:
        raise DataError(f"{path}: a damaged compressed file ({error}); copy it again") from error
    return b"".join(parts)


def _bounded(stream: Any, packed: int, path: Path) -> bytes:
    parts: list[bytes] = []
    total = 0
    while part := stream.read(_CHUNK):
        parts.append(part)
        total += len(part)
        _refuse_bomb(total, packed, path)
    return b"".join(parts)


def _refuse_bomb(total: int, packed: int, path: Path) -> None:
    if total > MOST_BYTES or (total > BOMB_BYTES and total > BOMB_RATIO * packed):
        raise DataError(
            f"{path}: {packed:,} bytes unpack to more than {total:,}, which is refused as an archive bomb; "
            "unpack the file yourself if it is what it seems"
        )


def is_workbook(path: Path) -> bool:
    """Whether a zip archive is an Excel workbook."""
    try:
        with zipfile.ZipFile(path) as archive:
            return "xl/workbook.xml" in archive.namelist()
    except (OSError, zipfile.BadZipFile, ValueError):
        return False


def _utf8(data: bytes, path: Path, encoding: str | None) -> bytes:
    if encoding is not None:
        try:
            return data.decode(encoding).removeprefix("\ufeff").encode()
        except LookupError as error:
            raise UsageError(f"no encoding is called {encoding!r}; try utf-8, utf-16 or latin-1") from error
        except UnicodeDecodeError as error:
            raise DataError(f"{path}: not {encoding} text at byte {error.start}; try another encoding") from error
    if data.startswith(_UTF16):
        try:
            return data.decode("utf-16").encode()
        except UnicodeError as error:
            raise DataError(f"{path}: damaged UTF-16 text ({error}); save the file as UTF-8") from error
    data = data.removeprefix(b"\xef\xbb\xbf")
    if data.isascii() and b"\0" not in data[:4096]:
        return data
    if b"\0" in data[:4096]:
        raise DataError(
            f"{path}: not text that can be read (it holds NUL bytes); if it is UTF-16, read with encoding='utf-16'"
        )
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        byte = data[error.start]
        raise DataError(
            f"{path}, line {line}: byte 0x{byte:02x} is not UTF-8 text (in Latin-1 it would be {chr(byte)!r}); save the file "
            "as UTF-8, or read with encoding='latin-1'"
        ) from error
    return data
