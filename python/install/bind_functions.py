"""Binds a shared library's references to its own functions, as the linker's -Bsymbolic-functions would have.

XLA's library refers to its functions by name some 200,000 times outside its call stubs, and the loader looks each of
them up at every start of a process. Here each becomes a plain offset. Data is left alone: a variable that another
library defines too must stay one.
"""

from __future__ import annotations

import mmap
import struct
from pathlib import Path

# Of the ELF format (x86-64): section kinds, relocation kinds, the symbol kind of functions, reserved section numbers.
SHT_RELA, SHT_DYNSYM = 4, 11
R_64, R_GLOB_DAT, R_RELATIVE = 1, 6, 8
STT_FUNC = 2
SHN_LORESERVE = 0xFF00

SECTION = struct.Struct("<IIQQQQIIQQ")  # name kind flags address offset size link info alignment entry
SYMBOL = struct.Struct("<IBBHQQ")  # name kind other section value size
RELOCATION = struct.Struct("<QQq")  # where, symbol << 32 | kind, addend


def bind_functions(library: Path) -> int:
    """Rewrites the file in place; the number of references that were bound."""
    bound = 0
    with library.open("r+b") as file, mmap.mmap(file.fileno(), 0) as data:
        if data[:6] != b"\x7fELF\x02\x01" or struct.unpack_from("<H", data, 18) != (62,):
            raise OSError(f"{library} is not a shared library for x86-64")
        (table,) = struct.unpack_from("<Q", data, 40)
        size, count = struct.unpack_from("<HH", data, 58)
        sections = [SECTION.unpack_from(data, table + i * size) for i in range(count)]
        for section in sections:
            kind, offset, length, link = section[1], section[4], section[5], section[6]
            if kind != SHT_RELA or sections[link][1] != SHT_DYNSYM:
                continue
            symbols = sections[link][4]
            for place in range(offset, offset + length, RELOCATION.size):
                where, info, addend = RELOCATION.unpack_from(data, place)
                relocation = info & 0xFFFFFFFF
                if relocation not in (R_64, R_GLOB_DAT):
                    continue
                _, symbol, _, home, value, _ = SYMBOL.unpack_from(data, symbols + (info >> 32) * SYMBOL.size)
                if symbol & 15 == STT_FUNC and 0 < home < SHN_LORESERVE:
                    # GLOB_DAT has no addend.
                    target = value + (addend if relocation == R_64 else 0)
                    RELOCATION.pack_into(data, place, where, R_RELATIVE, target)
                    bound += 1
    return bound
