# needs: torch
"""Functions written in C: of the standard library and of others."""

from __future__ import annotations

import array
import base64
import ctypes
import hashlib
import json
import os
import pickle
import re
import sqlite3
import struct
import time
import unicodedata
import uuid
import zlib
from typing import Any

import torch
from torch import nn

from tests.breaks.registry import Calls, program


@program()
def checksum_of_a_prompt() -> tuple[Any, Calls]:
    embed = nn.Embedding(16, 4)

    def encode(prompt, x):
        seed = zlib.crc32(prompt) % 16
        return embed(torch.tensor(seed)) + x

    return encode, [(b"hello", torch.ones(4))]


@checksum_of_a_prompt.fix
def _() -> tuple[Any, Calls]:
    embed = nn.Embedding(16, 4)

    def encode(seed, x):
        return embed(torch.tensor(seed)) + x

    return encode, [(zlib.crc32(b"hello") % 16, torch.ones(4))]


@program()
def process_in_the_name() -> tuple[Any, Calls]:
    model = nn.Linear(2, 2)
    names = []

    def step(x):
        names.append(f"worker-{os.getpid()}")  # SB0101
        return model(x)

    return step, [(torch.ones(1, 2),)]


@process_in_the_name.fix
def _() -> tuple[Any, Calls]:
    model = nn.Linear(2, 2)
    names = []
    pid = os.getpid()

    def step(x):
        names.append(f"worker-{pid}")
        return model(x)

    return step, [(torch.ones(1, 2),)]


@program()
def hash_of_the_settings() -> tuple[Any, Calls]:
    settings = {"width": 4, "depth": 2}
    cache = {}

    def build(x):
        key = hashlib.sha256(json.dumps(settings).encode()).hexdigest()  # SB0101
        cache[key] = settings["depth"]
        return x * cache[key]

    return build, [(torch.ones(2),)]


@hash_of_the_settings.fix
def _() -> tuple[Any, Calls]:
    settings = {"width": 4, "depth": 2}
    cache = {}
    key = hashlib.sha256(json.dumps(settings).encode()).hexdigest()

    def build(x):
        cache[key] = settings["depth"]
        return x * cache[key]

    return build, [(torch.ones(2),)]


@program()
def settings_from_text() -> tuple[Any, Calls]:
    def scaled(x, text):
        settings = json.loads(text)
        return x * settings["scale"] + len(settings["layers"])

    return scaled, [(torch.ones(2), '{"scale": 2.5, "layers": [1, 2]}')]


@settings_from_text.fix
def _() -> tuple[Any, Calls]:
    def scaled(x, settings):
        return x * settings["scale"] + len(settings["layers"])

    return scaled, [(torch.ones(2), {"scale": 2.5, "layers": [1, 2]})]


@program()
def layer_number_by_pattern() -> tuple[Any, Calls]:
    def decay(name, grad):
        number = int(re.match(r"layers\.(\d+)", name).group(1))
        return grad * 0.5**number

    return decay, [("layers.2.weight", torch.ones(2))]


@layer_number_by_pattern.fix
def _() -> tuple[Any, Calls]:
    def decay(number, grad):
        return grad * 0.5**number

    return decay, [(2, torch.ones(2))]


@program()
def weights_from_a_database() -> tuple[Any, Calls]:
    db = sqlite3.connect(":memory:")
    db.execute("create table scale (name text, value real)")
    db.execute("insert into scale values ('head', 0.5)")

    def forward(x):
        (value,) = db.execute("select value from scale where name = 'head'").fetchone()  # SB0101
        return torch.relu(x) * value

    return forward, [(torch.ones(2),)]


@weights_from_a_database.fix
def _() -> tuple[Any, Calls]:
    db = sqlite3.connect(":memory:")
    db.execute("create table scale (name text, value real)")
    db.execute("insert into scale values ('head', 0.5)")
    (value,) = db.execute("select value from scale where name = 'head'").fetchone()

    def forward(x):
        return torch.relu(x) * value

    return forward, [(torch.ones(2),)]


@program()
def header_of_a_record() -> tuple[Any, Calls]:
    def decode(record, x):
        scale, offset = struct.unpack("<if", record)
        return x * scale + offset

    return decode, [(struct.pack("<if", 3, 0.5), torch.ones(2))]


@header_of_a_record.fix
def _() -> tuple[Any, Calls]:
    def decode(scale, offset, x):
        return x * scale + offset

    return decode, [(3, 0.5, torch.ones(2))]


@program()
def call_into_a_library() -> tuple[Any, Calls]:
    libm = ctypes.CDLL("libm.so.6")
    libm.cbrt.restype = ctypes.c_double
    libm.cbrt.argtypes = [ctypes.c_double]

    def scale(x, volume):
        return x / libm.cbrt(volume)  # SB0101

    return scale, [(torch.ones(2), 27.0)]


@call_into_a_library.fix
def _() -> tuple[Any, Calls]:
    def scale(x, volume):
        return x / volume ** (1 / 3)

    return scale, [(torch.ones(2), 27.0)]


@program()
def deep_copy_by_pickle() -> tuple[Any, Calls]:
    def fork(x, state):
        saved = pickle.loads(pickle.dumps(state))
        state["step"] += 1
        return x * saved["step"], saved

    return fork, [(torch.ones(2), {"step": 3})]


@deep_copy_by_pickle.fix
def _() -> tuple[Any, Calls]:
    def fork(x, state):
        saved = dict(state)
        state["step"] += 1
        return x * saved["step"], saved

    return fork, [(torch.ones(2), {"step": 3})]


@program(same=False)
def request_with_an_id() -> tuple[Any, Calls]:
    requests = []

    def serve(x):
        requests.append(len(uuid.uuid4().hex))  # SB0122
        return x.softmax(-1)

    return serve, [(torch.ones(2),)]


@request_with_an_id.fix
def _() -> tuple[Any, Calls]:
    requests = []

    def serve(x, name):
        requests.append(len(name))
        return x.softmax(-1)

    return serve, [(torch.ones(2), uuid.UUID(int=7).hex)]


@program()
def buffer_of_floats() -> tuple[Any, Calls]:
    def push(x, values):
        window = array.array("d", values)  # SB0101
        return x + sum(window)  # SB0101

    return push, [(torch.ones(2), [1.0, 2.0])]


@buffer_of_floats.fix
def _() -> tuple[Any, Calls]:
    def push(x, values):
        window = list(values)
        return x + sum(window)

    return push, [(torch.ones(2), [1.0, 2.0])]


@program()
def normalised_tokens() -> tuple[Any, Calls]:
    embed = nn.Embedding(300, 2)

    def encode(text):
        plain = unicodedata.normalize("NFKD", text)
        return embed(torch.tensor([ord(c) % 300 for c in plain])).sum(0)

    return encode, [("äb",)]


@normalised_tokens.fix
def _() -> tuple[Any, Calls]:
    embed = nn.Embedding(300, 2)

    def encode(codes):
        return embed(torch.tensor(codes)).sum(0)

    return encode, [([ord(c) % 300 for c in unicodedata.normalize("NFKD", "äb")],)]


@program()
def image_in_base64() -> tuple[Any, Calls]:
    def load(text):
        data = base64.b64decode(text)
        return torch.tensor(list(data)) * 2

    return load, [(base64.b64encode(b"abc"),)]


@image_in_base64.fix
def _() -> tuple[Any, Calls]:
    def load(data):
        return torch.tensor(list(data)) * 2

    return load, [(b"abc",)]


@program()
def compressed_history() -> tuple[Any, Calls]:
    packer = zlib.compressobj()
    chunks = []

    def step(x, text):
        h = torch.relu(x)
        chunks.append(packer.compress(text))  # SB0101
        return h + 1

    return step, [(torch.ones(2), b"abc")]


@compressed_history.fix
def _() -> tuple[Any, Calls]:
    chunks = []

    def step(x, text):
        h = torch.relu(x)
        chunks.append(text)
        return h + 1

    return step, [(torch.ones(2), b"abc")]


@program()
def give_way_to_others() -> tuple[Any, Calls]:
    def poll(x):
        h = x * 2
        time.sleep(0)  # SB0101
        return h + 1

    return poll, [(torch.ones(2),)]


@give_way_to_others.fix
def _() -> tuple[Any, Calls]:
    def poll(x):
        h = x * 2
        return h + 1

    return poll, [(torch.ones(2),)]


@program()
def compile_a_formula() -> tuple[Any, Calls]:
    def apply(formula, x):
        return eval(compile(formula, "<formula>", "eval"), {"torch": torch, "x": x})

    return apply, [("torch.relu(x) * 2", torch.ones(2))]


@compile_a_formula.fix
def _() -> tuple[Any, Calls]:
    def apply(formula, x):
        return formula(x)

    return apply, [(lambda x: torch.relu(x) * 2, torch.ones(2))]
