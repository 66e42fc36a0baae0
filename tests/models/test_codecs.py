"""Codecs that nobody knows, and those that the program registers later."""

from __future__ import annotations

import codecs

import pytest

import stator


def encoded() -> bytes:
    return "text".encode("tests_nowhere")


def test_a_codec_that_is_registered_after_the_trace():
    traced = stator.compile(encoded, backend="eager")
    for _ in range(2):
        with pytest.raises(LookupError, match="unknown encoding: tests_nowhere"):
            traced()
    own = codecs.CodecInfo(lambda text, errors="strict": (text.upper().encode(), len(text)), codecs.ascii_decode)

    def search(name: str) -> codecs.CodecInfo | None:
        return own if name == "tests_nowhere" else None

    codecs.register(search)
    try:
        assert traced() == b"TEXT"
    finally:
        codecs.unregister(search)
    with pytest.raises(LookupError, match="unknown encoding: tests_nowhere"):
        traced()
