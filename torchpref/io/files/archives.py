"""Members of zip archives, read with bounds.

Python 3.11 does not know method 93 (Zstandard), which Inspect uses, so such members are taken out as they are and
decompressed with ``zstandard``. A member or an archive that says it is larger than the limits is refused before it is read,
and one that turns out larger than it says is refused while it is read.
"""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from pathlib import Path
from types import TracebackType

from torchpref.errors import DataError, MissingExtraError

MAX_MEMBER = 1 << 29
"""The largest member that is read, decompressed, in bytes."""
MAX_ARCHIVE = 16 << 30
"""The largest archive that is read, all members decompressed, in bytes."""
MAX_MEMBERS = 1_000_000
MAX_RATIO = 300
"""How many times larger than packed a member of more than ``SMALL`` bytes may be."""
SMALL = 32 << 20
ZSTANDARD = 93


def first_member(head: bytes) -> str:
    """The name of the first member of a zip archive, from its first bytes; empty where it is none."""
    if not head.startswith(b"PK\x03\x04") or len(head) < 30:
        return ""
    size = int.from_bytes(head[26:28], "little")
    return head[30 : 30 + size].decode("utf-8", errors="replace")


class Archive:
    """A zip archive open for reading; used as a context manager.

    Raises:
        DataError: it is damaged or cut short, holds too much, or a member uses a method that is not known.
        MissingExtraError: a member is packed with Zstandard and ``zstandard`` is not installed.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._file = path.open("rb")
        except OSError as error:
            raise DataError(f"{path}: cannot be read ({error.strerror or error})") from error
        try:
            self._zip = zipfile.ZipFile(self._file)
            infos = self._zip.infolist()
        except (
            zipfile.BadZipFile,
            zipfile.LargeZipFile,
            NotImplementedError,
            ValueError,
            OSError,
            struct.error,
            EOFError,
        ) as error:
            self._file.close()
            raise DataError(
                f"{path}: not a whole zip archive ({error}); was it cut short while being written?"
            ) from error
        self.infos: dict[str, zipfile.ZipInfo] = {}
        for info in infos:  # of a name that is there twice the last counts, as zip itself has it
            self.infos[info.filename] = info
        whole = sum(info.file_size for info in infos)
        if whole > MAX_ARCHIVE or len(infos) > MAX_MEMBERS:
            self._file.close()
            raise DataError(
                f"{path}: {len(infos):,} members of {whole:,} bytes in all, more than an archive may hold ({MAX_ARCHIVE:,})"
            )

    def __enter__(self) -> Archive:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._zip.close()
        self._file.close()

    def read(self, name: str) -> bytes:
        """The content of a member."""
        info = self.infos[name]
        where = f"{self.path}: {name}"
        if info.file_size > MAX_MEMBER or (
            info.file_size > SMALL and info.file_size > MAX_RATIO * max(info.compress_size, 1)
        ):
            raise DataError(
                f"{where}: {info.file_size:,} bytes packed into {info.compress_size:,}; refused, it may be an archive bomb"
            )
        if info.flag_bits & 1:
            raise DataError(f"{where}: encrypted; decrypt the archive first")
        try:
            if info.compress_type == ZSTANDARD:
                data = self._zstandard(info, where)
            else:
                with self._zip.open(info) as member:
                    data = member.read(info.file_size + 1)
        except (
            zipfile.BadZipFile,
            zlib.error,
            NotImplementedError,
            ValueError,
            OSError,
            struct.error,
            EOFError,
            RuntimeError,
        ) as error:
            if isinstance(error, DataError):
                raise
            raise DataError(f"{where}: cannot be unpacked ({error}); is the archive damaged?") from error
        if len(data) != info.file_size:
            raise DataError(f"{where}: {len(data):,} bytes where the archive says {info.file_size:,}; is it damaged?")
        return data

    def _zstandard(self, info: zipfile.ZipInfo, where: str) -> bytes:
        try:
            import zstandard
        except ImportError as error:
            raise MissingExtraError("zstandard", "inspect") from error
        self._file.seek(info.header_offset)
        header = self._file.read(30)
        if len(header) < 30 or header[:4] != b"PK\x03\x04":
            raise DataError(f"{where}: cannot be unpacked (no member where the archive says); is the archive damaged?")
        name_size, extra_size = struct.unpack("<HH", header[26:30])
        self._file.seek(info.header_offset + 30 + name_size + extra_size)
        packed = self._file.read(info.compress_size)
        try:
            with zstandard.ZstdDecompressor(max_window_size=1 << 27).stream_reader(io.BytesIO(packed)) as stream:
                data: bytes = stream.read(info.file_size + 1)
        except (zstandard.ZstdError, MemoryError) as error:
            raise DataError(f"{where}: cannot be unpacked ({error}); is the archive damaged?") from error
        if zlib.crc32(data) != info.CRC and len(data) == info.file_size:
            raise DataError(f"{where}: its checksum is wrong; the archive is damaged")
        return data
