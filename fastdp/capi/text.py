"""The texts that are made of the table: the header, the declarations for cffi, the C fronts of the functions.

The raw kernels come from `kernels/function_pointers.py`, whose signatures and docstrings are the header's.
"""

from __future__ import annotations

import hashlib
import re
from functools import cache
from inspect import cleandoc, signature
from textwrap import indent, wrap
from typing import Any

from .table import CONSTANTS, FUNCTIONS, STATUS, STRUCTS, VERSION, Argument, Function

_DERIVATIVE = "fastdp_derivative"
_KERNEL_TYPES = {"derivative": _DERIVATIVE}  # of parameters whose C type numba does not know


def declared(function: Function, prefix: str = "fastdp_") -> str:
    """A function as C declares it."""
    return f"int {prefix}{function.name}({', '.join(a.declared for a in function.arguments)})"


# --- types


def status_lines() -> list[str]:
    return [f"FASTDP_{name} = {value}" for value, name in enumerate(STATUS)]


@cache
def types_text() -> str:
    """Everything but functions, in C that cffi reads, too."""
    enums = [f"enum {{ {', '.join(status_lines())} }};"]
    for values in CONSTANTS.values():
        enums.append(f"enum {{ {', '.join(f'FASTDP_{name} = {value}' for name, value in values.items())} }};")
    structs = [f"typedef struct {{ double {', '.join(fields)}; }} fastdp_{name};" for name, fields in STRUCTS.items()]
    derivative = f"typedef double (*{_DERIVATIVE})(double score, double label);"
    kernels = "\n".join(f"    {member};" for member in members().values())
    table = f"typedef struct {{\n    uint32_t version;\n    uint32_t size;\n{kernels}\n}} fastdp_kernel_table;"
    return "\n".join([*enums, derivative, *structs, table])


@cache
def members() -> dict[str, str]:
    """Each raw kernel as a member of the table of pointers."""
    from ..kernels.function_pointers import TABLE, WRITTEN

    found = {}
    for name, callback in TABLE.items():
        arguments, result = callback.signature
        declarations = []
        for parameter, kind in zip(signature(callback.function).parameters, arguments, strict=True):
            declarations.append(_of_kernel(parameter, kind, parameter in WRITTEN))
        found[name] = f"{_plain(result)} (*{name})({', '.join(declarations)})"
    return found


def _of_kernel(name: str, kind: Any, written: bool) -> str:
    plain = name.removesuffix("_")
    if name in STRUCTS:
        return f"const fastdp_{name} *plan"
    if name in _KERNEL_TYPES:
        return f"{_KERNEL_TYPES[name]} {plain}"
    if hasattr(kind, "dtype"):
        return f"{'' if written else 'const '}{_plain(kind.dtype)} *{plain}"
    return f"{_plain(kind)} {plain}"


def _plain(kind: Any) -> str:
    """numba's name of a scalar type in C."""
    name = str(kind)
    return {"none": "void", "float64": "double"}.get(name) or f"{name}_t"


@cache
def cdef() -> str:
    """What cffi must know of types and functions. Its digest is what a library and an installed fastdp must share."""
    functions = "\n".join(f"{declared(function)};" for function in FUNCTIONS)
    return f"{types_text()}\n{functions}\n"


def digest() -> str:
    return hashlib.sha256(f"{VERSION}\n{cdef()}".encode()).hexdigest()


# --- the header


def header() -> str:
    """fastdp.h."""
    from ..kernels.function_pointers import TABLE

    statuses = ",\n".join(
        f"    {line} /* {about} */" for line, about in zip(status_lines(), STATUS.values(), strict=True)
    )
    functions = "\n\n".join(
        f"{_comment(_sentence(function.about))}\nFASTDP_API FASTDP_CHECKED\n{_folded(declared(function))};"
        for function in FUNCTIONS
    )
    kernels = "\n\n".join(
        indent(f"{_comment(cleandoc(TABLE[name].function.__doc__ or ''))}\n{_folded(member)};", "    ")
        for name, member in members().items()
    )
    constants = "\n".join(
        f"/* {what} */\nenum {{\n"
        + ",\n".join(f"    FASTDP_{name} = {value}" for name, value in values.items())
        + "\n};"
        for what, values in CONSTANTS.items()
    )
    structs = "\n".join(
        f"typedef struct {{ double {', '.join(fields)}; }} fastdp_{name};" for name, fields in STRUCTS.items()
    )
    return _HEADER.format(
        version=VERSION, statuses=statuses, constants=constants, structs=structs, functions=functions, kernels=kernels
    )


def _sentence(text: str) -> str:
    return re.sub(r"\s+", " ", text)


def _comment(text: str) -> str:
    lines = text.splitlines()
    if len(lines) == 1:
        lines = wrap(lines[0], 112)
    return "/* " + "\n * ".join(lines).replace(" \n", "\n") + (" */" if len(lines) == 1 else "\n */")


def _folded(declaration: str) -> str:
    """In lines that end between two arguments."""
    tied = declaration.replace(" ", "\0").replace(",\0", ", ")
    lines = wrap(tied, 116, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False)
    return "\n".join(lines).replace("\0", " ")


_HEADER = """\
/* fastdp: differential privacy, exact and fast, for C and C++ programs. Made by `python -m fastdp.capi`.
 *
 * Functions return FASTDP_OK (0) or another status; fastdp_last_error() then says what was wrong, in the calling
 * thread. None aborts, and none prints. Check the status: after an error `out` may still hold the values, without
 * noise.
 *
 * All may be called from several threads at once. The first call starts Python, which takes about a second; a host
 * that forks must do so before. Arrays are contiguous and aligned, lengths at most 2^48; a pointer may be NULL where
 * its length is 0. `sensitivity` bounds how much one record changes the values, for the neighbours that you mean.
 */
#ifndef FASTDP_H
#define FASTDP_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {{
#endif

#define FASTDP_VERSION {version}

#ifndef FASTDP_API
#define FASTDP_API
#endif
#if defined(__GNUC__)
#define FASTDP_CHECKED __attribute__((warn_unused_result))
#else
#define FASTDP_CHECKED
#endif

enum {{
{statuses}
}};

{constants}

typedef double (*fastdp_derivative)(double score, double label);

/* The message of the last call of this thread that failed; "" before that. Valid until the next call. */
FASTDP_API const char *fastdp_last_error(void);

{structs}

{functions}

/* Pointers to compiled kernels, for hosts that want no Python on a call. They check nothing, charge nothing and may be
 * called from any thread: the caller must see to what each requires. Later versions add members at the end: ask
 * FASTDP_HAS(table, name) where you may meet an older library. The table belongs to the library.
 */
typedef struct {{
    uint32_t version; /* FASTDP_VERSION of the library */
    uint32_t size;    /* of its table, in bytes */

{kernels}
}} fastdp_kernel_table;

#define FASTDP_HAS(table, name) \\
    (offsetof(fastdp_kernel_table, name) + sizeof(void (*)(void)) <= (table)->size)

/* The table; NULL if it cannot be had (fastdp_last_error). The first call compiles, or loads what was compiled. */
FASTDP_API const fastdp_kernel_table *fastdp_kernels(void);

#ifdef __cplusplus
}}
#endif
#endif
"""


# --- the library


def inner_cdef() -> str:
    """What the Python side of the library sees: types, the functions that it fills in, what start.c offers."""
    functions = "\n".join(f"{declared(function, 'inner_')};" for function in FUNCTIONS)
    return f"""{types_text()}
extern "Python" {{
{functions}
int inner_kernels(fastdp_kernel_table *table);
}}
void fastdp_set_error(const char *text);
void fastdp_refuse(const char *text);
int fastdp_started_python(void);
"""


def fronts() -> str:
    """The exported functions: each sees to it that Python runs, then calls its inner one."""
    inner = "\n".join(f"static {declared(function, 'inner_')};" for function in FUNCTIONS)
    outer = "\n".join(
        f"{declared(function)} {{\n    int status = fastdp_begin();\n"
        f"    return status ? status : inner_{function.name}({_names(function.arguments)});\n}}"
        for function in FUNCTIONS
    )
    return f"{inner}\nstatic int inner_kernels(fastdp_kernel_table *table);\n{outer}\n"


def _names(arguments: tuple[Argument, ...]) -> str:
    return ", ".join(argument.name for argument in arguments)
