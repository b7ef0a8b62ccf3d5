"""Structures of XLA's foreign-function interface, versions 0.3 and 0.4, and what they hold.

They follow ``xla/ffi/api/c_api.h``. Nothing is compiled: `ctypes` reads them.
"""

from __future__ import annotations

import ctypes
from typing import Any

__all__ = [
    "Api",
    "CallFrame",
    "Extension",
    "CAPTURED",
    "HANDLER",
    "Metadata",
    "MetadataExtension",
    "Version",
    "answer_metadata",
    "attribute",
    "create_error",
    "is_execution",
    "length",
    "pointers",
    "stream",
]

#: The newest interface that the structures were compared with.
KNOWN_VERSION = (0, 4)

#: The trait of a handler that enqueues on the stream alone: XLA may record the calls in a command buffer.
CAPTURED = 1

_METADATA = 1  # the type of the extension by which XLA queries a handler
_EXECUTE = 3  # the stage in which buffers hold data
_STRING = 4  # the type of the attribute

_address, _size, _int64 = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int64

# these neither wait nor call Python, so they keep the interpreter's lock
_GETTER = ctypes.PYFUNCTYPE(_address, _address)
_PROCEDURE = ctypes.PYFUNCTYPE(None, _address)


class _Headed(ctypes.Structure):
    """The start of most structures: their size, as their maker knows it, and a chain of extensions."""

    _fields_ = [("struct_size", _size), ("extension_start", _address)]

    @classmethod
    def new(cls, **fields: Any) -> Any:
        return cls(struct_size=ctypes.sizeof(cls), **fields)


class Version(_Headed):
    _fields_ = [("major", ctypes.c_int), ("minor", ctypes.c_int)]


class Extension(ctypes.Structure):
    _fields_ = [("struct_size", _size), ("type", ctypes.c_int), ("next", _address)]


class Metadata(ctypes.Structure):
    _fields_ = [("struct_size", _size), ("api_version", Version), ("traits", ctypes.c_uint32)]


class MetadataExtension(ctypes.Structure):
    _fields_ = [("base", Extension), ("metadata", ctypes.POINTER(Metadata))]


class Api(_Headed):
    """XLA's functions. Each takes one structure; those that can fail return an error or NULL."""

    _fields_ = [
        ("version", Version),
        ("internal", _address),
        ("error_create", _GETTER),
        ("error_get_message", _PROCEDURE),  # 0.4: error_get_details, which writes a code as well
        ("error_destroy", _PROCEDURE),
        ("handler_register", _address),
        ("stream_get", _GETTER),
        ("type_register", _address),
        ("context_get", _address),
        ("state_set", _address),
        ("state_get", _address),
        ("memory_allocate", _address),
        ("memory_free", _address),
        ("thread_pool_schedule", _address),
        ("thread_pool_size", _address),
        ("future_create", _address),
        ("future_set_available", _address),
        ("future_set_error", _address),
        ("run_id_get", _address),
        ("device_ordinal_get", _GETTER),
    ]


class _ErrorCreate(_Headed):
    _fields_ = [("message", ctypes.c_char_p), ("code", ctypes.c_int)]


class _ErrorDetails(_Headed):
    _fields_ = [("error", _address), ("message", ctypes.c_char_p), ("code", ctypes.c_int)]


class _ErrorDestroy(_Headed):
    _fields_ = [("error", _address)]


class _StreamGet(_Headed):
    _fields_ = [("context", _address), ("stream", _address)]


class _DeviceOrdinalGet(_Headed):
    _fields_ = [("context", _address), ("ordinal", ctypes.c_int32)]


class _Buffer(_Headed):
    _fields_ = [("dtype", ctypes.c_int), ("data", _address), ("rank", _int64), ("dims", _address)]


class _Operands(_Headed):
    """Arguments or results."""

    _fields_ = [("size", _int64), ("types", _address), ("items", ctypes.POINTER(ctypes.POINTER(_Buffer)))]


class _ByteSpan(ctypes.Structure):
    _fields_ = [("start", _address), ("length", _size)]


class _Attributes(_Headed):
    _fields_ = [
        ("size", _int64),
        ("types", ctypes.POINTER(ctypes.c_int)),
        ("names", _address),
        ("items", ctypes.POINTER(ctypes.POINTER(_ByteSpan))),
    ]


class CallFrame(_Headed):
    _fields_ = [
        ("api", ctypes.POINTER(Api)),
        ("context", _address),
        ("stage", ctypes.c_int),
        ("arguments", _Operands),
        ("results", _Operands),
        ("attributes", _Attributes),
        ("future", _address),  # beyond struct_size; left NULL: the call is done when it returns
    ]


#: The type of a handler. It takes the interpreter's lock, whatever thread calls.
HANDLER = ctypes.CFUNCTYPE(_address, ctypes.POINTER(CallFrame))


def answer_metadata(frame: Any, traits: int) -> bool:
    """Answer XLA's query at registration, with the traits of the handler; False where the frame is none.

    Raises
    ------
    RuntimeError
        When the interface has another major version.
    """
    address = frame.extension_start
    while address:
        extension = Extension.from_address(address)
        if extension.type == _METADATA:
            version = frame.api.contents.version
            if version.major != KNOWN_VERSION[0]:
                known = ".".join(map(str, KNOWN_VERSION))
                raise RuntimeError(
                    f"XLA's foreign-function interface is {version.major}.{version.minor}; known is {known}"
                )
            metadata = MetadataExtension.from_address(address).metadata.contents
            answer = min(KNOWN_VERSION, (version.major, version.minor))
            metadata.api_version.major, metadata.api_version.minor = answer
            metadata.traits = traits
            return True
        address = extension.next
    return False


def is_execution(frame: Any) -> bool:
    """Whether buffers hold data."""
    return frame.stage == _EXECUTE


def attribute(frame: Any) -> bytes:
    """Return the text of the only attribute."""
    attributes = frame.attributes
    if attributes.size != 1 or attributes.types[0] != _STRING:
        raise TypeError("the call has other attributes than one string")
    span = attributes.items[0].contents
    return ctypes.string_at(span.start, span.length)


def pointers(operands: Any) -> list[int]:
    """Return the addresses of arguments or of results."""
    items = operands.items
    return [items[i].contents.data or 0 for i in range(operands.size)]


def length(operands: Any, place: int) -> int:
    """Return the elements of a vector among arguments or results."""
    return _int64.from_address(operands.items[place].contents.dims).value


def stream(frame: Any) -> tuple[int, int]:
    """Return the address of the CUDA stream of a call, and the ordinal of its device."""
    api = frame.api.contents
    question = _StreamGet.new(context=frame.context)
    _check(api, api.stream_get(ctypes.addressof(question)))
    ordinal = _DeviceOrdinalGet.new(context=frame.context)
    _check(api, api.device_ordinal_get(ctypes.addressof(ordinal)))
    return question.stream or 0, ordinal.ordinal


def _check(api: Any, error: int | None) -> None:
    """Raise what one of XLA's functions has returned; the caller destroys an error."""
    if error:
        details = _ErrorDetails.new(error=error)
        api.error_get_message(ctypes.addressof(details))
        message = (details.message or b"").decode(errors="replace")
        api.error_destroy(ctypes.addressof(_ErrorDestroy.new(error=error)))
        raise RuntimeError(message)


def create_error(frame: Any, message: str, code: int) -> int | None:
    """Return an error of XLA, which copies the message and owns the error."""
    text = message.replace("\0", " ").encode(errors="replace")
    create = _ErrorCreate.new(message=text, code=code)
    address: int | None = frame.api.contents.error_create(ctypes.addressof(create))
    return address
