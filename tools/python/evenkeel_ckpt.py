#!/usr/bin/env python3
"""Reads Evenkeel's checkpoints from Python: one file to copy, which needs numpy and zstandard.

    import evenkeel_ckpt
    state = evenkeel_ckpt.load("ckpts")                         # newest step: {name: array}
    heads = evenkeel_ckpt.load("ckpts@1200", only="head.*")     # a pattern, or a list of them
    ckpt = evenkeel_ckpt.open_checkpoint("ckpts/step-000001200")
    state = evenkeel_ckpt.load("s3://bucket/run@latest")        # where there is boto3
    print(ckpt.step, ckpt.metadata, ckpt.tensors["head.weight"].shape)
    weight = ckpt.read("head.weight")

Promises   every byte that is returned was checked against the digests of its frame, its tensor and
           its shard; a state is returned whole, or CheckpointError lists all that is wrong, each
           with its file and place; arrays are the caller's own and writable. Needs the memory of
           the arrays and some 32 MiB for each thread.
Does not   write; look at other attempts' files in the directory; know bf16 and f8 unless asked:
           numpy has no such types, so they come as uint16 and uint8 with the same bits. Take
           ml_dtypes=True for the types of the ml_dtypes package, or bf16_to_f32(array). What is
           in a bucket is read by boto3, which finds keys, region and AWS_ENDPOINT_URL itself.
Threads    a Checkpoint may be used from several threads.
Errors     CheckpointError for what a file says; OSError's text is in it. Python 3.9 or later.
Format     ckpt/FORMAT.md, version 1.
"""
from __future__ import annotations

import argparse
import bisect
import concurrent.futures
import difflib
import errno
import json
import os
import re
import struct
import sys
import threading
import typing

import numpy as np
import zstandard

FORMAT_VERSION = 1
HEADER_BYTES, TAIL_BYTES, INDEX_BYTES, FRAME_BYTES = 64, 64, 32, 40
ALIGNMENT, PAGE = 64, 4096
STORED_MORE_MAX = FRAME_BYTES + 32 + PAGE  # what a frame's stored bytes may have beyond its content
FRAME_BYTES_MAX = 16 << 20
PARTS_MAX, NAME_BYTES_MAX, DIMENSIONS_MAX = 9999, 4096, 64
STREAM_BYTES_MAX, STEP_LIMIT = 1 << 56, 10**18
JOB_BYTES = 4 << 20  # content that one thread reads and checks at a time
PROBLEMS_SHOWN = 20
BUCKET_SCHEME = "s3://"
BODY_TRIES = 3

# name: numpy's type, lane width. In the order of ckpt/FORMAT.md section 2.
DTYPES = {
    "f64": ("<f8", 8), "c128": ("<c16", 8), "f32": ("<f4", 4), "c64": ("<c8", 4),
    "f16": ("<f2", 2), "bf16": ("<u2", 2), "bool": ("?", 1), "u8": ("u1", 1), "i8": ("i1", 1),
    "u16": ("<u2", 1), "i16": ("<i2", 1), "u32": ("<u4", 1), "i32": ("<i4", 1),
    "u64": ("<u8", 1), "i64": ("<i8", 1), "f8_e4m3": ("u1", 1), "f8_e5m2": ("u1", 1)}
ML_DTYPES = {"bf16": "bfloat16", "f8_e4m3": "float8_e4m3fn", "f8_e5m2": "float8_e5m2"}


class CheckpointError(Exception):
    """A checkpoint that cannot be read. `problems` lists all that was found, one text each."""

    def __init__(self, where: str, problems: list[str] | str):
        self.problems = [problems] if isinstance(problems, str) else list(problems)
        lines = self.problems[:PROBLEMS_SHOWN]
        if len(self.problems) > len(lines):
            lines.append(f"... and {len(self.problems) - len(lines)} more")
        if len(lines) > 1:
            lines.insert(0, f"{len(self.problems)} errors:")
        super().__init__(f"{where}: " + "\n  ".join(lines))


# ---- XXH3-128, seed 0 --------------------------------------------------------------------------
# Python has no XXH3. Up to 240 bytes it is done in plain integers; what is longer is a sum over
# stripes of 64 bytes, which numpy does for many buffers at once.

M32, M64 = (1 << 32) - 1, (1 << 64) - 1
P32_1, P32_2, P32_3 = 0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D
P64_1, P64_2, P64_3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
P64_4, P64_5 = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5
MX_1, MX_2 = 0x165667919E3779F9, 0x9FB21C651E98DF25
BLOCK, STRIPE, STRIPES = 1024, 64, 16
SECRET = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671f"
    "cb79e64eccc0e578825ad07dccff7221b8084674f743248ee03590e6813a264c"
    "3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8"
    "a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364"
    "eac5ac8334d3ebc3c581a0fffa1363eb170ddd51b7f0da49d316552629d4689e"
    "2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e")


def _u32(data, at):
    return int.from_bytes(data[at:at + 4], "little")


def _u64(data, at):
    return int.from_bytes(data[at:at + 8], "little")


def _secret(*places):
    """The exclusive or of the secret's 64-bit words at these places."""
    word = 0
    for at in places:
        word ^= _u64(SECRET, at)
    return word


def _fold(a, b):
    product = a * b
    return (product & M64) ^ (product >> 64)


def _avalanche(h):
    h = ((h ^ (h >> 37)) * MX_1) & M64
    return h ^ (h >> 32)


def _avalanche64(h):
    h = ((h ^ (h >> 33)) * P64_2) & M64
    h = ((h ^ (h >> 29)) * P64_3) & M64
    return h ^ (h >> 32)


def _swap32(x):
    return int.from_bytes(x.to_bytes(4, "little"), "big")


def _digest_to_16(data, n):
    if n > 8:
        first, last = _u64(data, 0), _u64(data, n - 8)
        product = (first ^ last ^ _secret(32, 40)) * P64_1
        low, high = (product + ((n - 1) << 54)) & M64, product >> 64
        last ^= _secret(48, 56)
        high = (high + last + (last & M32) * (P32_2 - 1)) & M64
        low ^= int.from_bytes(high.to_bytes(8, "little"), "big")
        product = low * P64_2
        return _avalanche(product & M64), _avalanche(((product >> 64) + high * P64_2) & M64)
    if n > 3:
        product = ((_u32(data, 0) | _u32(data, n - 4) << 32) ^ _secret(16, 24)) * (P64_1 + (n << 2))
        low, high = product & M64, product >> 64
        high = (high + (low << 1)) & M64
        low ^= high >> 3
        low = ((low ^ (low >> 35)) * MX_2) & M64
        return low ^ (low >> 28), _avalanche(high)
    if n > 0:
        low = data[0] << 16 | data[n >> 1] << 24 | data[n - 1] | n << 8
        swapped = _swap32(low)
        high = (swapped << 13 | swapped >> 19) & M32
        keys = [_u32(SECRET, at) for at in (0, 4, 8, 12)]
        return _avalanche64(low ^ keys[0] ^ keys[1]), _avalanche64(high ^ keys[2] ^ keys[3])
    return _avalanche64(_secret(64, 72)), _avalanche64(_secret(80, 88))


def _mix32(low, high, data, one, two, key):
    """Takes 16 bytes at `one` and 16 at `two` into the state (low, high)."""
    a, b, c, d = (_u64(data, at) for at in (one, one + 8, two, two + 8))
    low = (low + _fold(a ^ _secret(key), b ^ _secret(key + 8))) & M64
    high = (high + _fold(c ^ _secret(key + 16), d ^ _secret(key + 24))) & M64
    return low ^ ((c + d) & M64), high ^ ((a + b) & M64)


def _digest_to_240(data, n):
    low, high = (n * P64_1) & M64, 0
    if n <= 128:
        for i in range((n - 1) // 32, -1, -1):
            low, high = _mix32(low, high, data, 16 * i, n - 16 * (i + 1), 32 * i)
    else:
        for i in range(4):
            low, high = _mix32(low, high, data, 32 * i, 32 * i + 16, 32 * i)
        low, high = _avalanche(low), _avalanche(high)
        for i in range(4, n // 32):
            low, high = _mix32(low, high, data, 32 * i, 32 * i + 16, 3 + 32 * (i - 4))
        low, high = _mix32(low, high, data, n - 16, n - 32, 103)
    return (_avalanche((low + high) & M64),
            -_avalanche((low * P64_1 + high * P64_4 + n * P64_2) & M64) & M64)


def _keys(at):
    return np.array([_u64(SECRET, at + 8 * lane) for lane in range(8)], dtype=np.uint64)


STRIPE_KEYS = np.concatenate([_keys(8 * stripe) for stripe in range(STRIPES)])
LAST_KEYS, SCRAMBLE_KEYS = _keys(121), _keys(128)
LANES_SWAPPED = np.array([1, 0, 3, 2, 5, 4, 7, 6])
START = np.array([P32_3, P64_1, P64_2, P64_3, P64_4, P32_2, P64_5, P32_1], dtype=np.uint64)
CHUNK_BLOCKS = 128  # so that the intermediate results stay in the processor's cache


def _folded(rows):
    """Adds up the stripes of each row: (blocks, stripes * 8) to (blocks, 8)."""
    if rows.shape[1] != 128:
        return rows.reshape(len(rows), rows.shape[1] // 8, 8).sum(axis=1)
    for half in (64, 32, 16, 8):  # a third faster than sum()
        rows = rows[:, :half] + rows[:, half:]
    return rows


def _stripe_sums(words, keys):
    """What blocks of stripes add to the 8 lanes; words is (blocks, stripes * 8)."""
    keyed = words ^ keys
    high = keyed >> np.uint64(32)
    keyed &= np.uint64(M32)
    keyed *= high
    return _folded(keyed) + _folded(words)[:, LANES_SWAPPED]


def _words(view, at, stripes):
    """`stripes` stripes from byte `at`, in memory that the processor reads fast."""
    words = np.frombuffer(view, "<u8", stripes * 8, at)
    return (words if words.flags.aligned else words.copy()).astype(np.uint64, copy=False)


def _merge(lanes, at, start):
    keys = [_secret(at + 8 * lane) for lane in range(8)]
    for i in range(0, 8, 2):
        start += _fold(lanes[i] ^ keys[i], lanes[i + 1] ^ keys[i + 1])
    return _avalanche(start & M64)


def _long_digests(views):
    """(low, high) of each of these buffers, all longer than 240 bytes, the longest first."""
    blocks = [(len(view) - 1) // BLOCK for view in views]
    sums, ends = [np.empty((0, 8), np.uint64)], []
    for view, count in zip(views, blocks):
        for first in range(0, count, CHUNK_BLOCKS):
            some = min(CHUNK_BLOCKS, count - first)
            words = _words(view, first * BLOCK, some * STRIPES).reshape(some, -1)
            sums.append(_stripe_sums(words, STRIPE_KEYS))
        stripes = (len(view) - 1 - count * BLOCK) // STRIPE
        words = _words(view, count * BLOCK, stripes).reshape(1, -1)
        last = _words(view, len(view) - STRIPE, 1).reshape(1, -1)
        ends.append(_stripe_sums(words, STRIPE_KEYS[:stripes * 8])
                    + _stripe_sums(last, LAST_KEYS))
    sums = np.concatenate(sums)
    place = np.concatenate(([0], np.cumsum(blocks)[:-1])).astype(np.int64)
    state = np.repeat(START[None], len(views), axis=0)
    active, shift, prime = len(views), np.uint64(47), np.uint64(P32_1)
    for step in range(blocks[0]):
        while blocks[active - 1] <= step:
            active -= 1
        some = state[:active]  # a view
        some += sums[place[:active] + step] if active > 1 else sums[step]
        some ^= some >> shift
        some ^= SCRAMBLE_KEYS
        some *= prime
    state += np.concatenate(ends)
    for lanes, view in zip(state.tolist(), views):
        n = len(view)
        yield (_merge(lanes, 11, (n * P64_1) & M64), _merge(lanes, 117, ~(n * P64_2) & M64))


def xxh3_128_many(buffers) -> list[bytes]:
    """The canonical XXH3-128 digest (16 bytes, big-endian) of each of these buffers."""
    views = [memoryview(buffer).cast("B") for buffer in buffers]
    found = {}
    for i, view in enumerate(views):
        if len(view) <= 240:
            small = _digest_to_16 if len(view) <= 16 else _digest_to_240
            found[i] = small(bytes(view), len(view))
    order = sorted((i for i in range(len(views)) if i not in found), key=lambda i: -len(views[i]))
    if order:
        found.update(zip(order, _long_digests([views[i] for i in order])))
    return [struct.pack(">QQ", found[i][1], found[i][0]) for i in range(len(views))]


def xxh3_128(buffer) -> bytes:
    """The canonical XXH3-128 digest of one buffer. Many at once are faster: xxh3_128_many."""
    return xxh3_128_many([buffer])[0]


# ---- The logical stream (ckpt/FORMAT.md section 2) ---------------------------------------------


class Tensor(typing.NamedTuple):
    """One line of the manifest. `dtype` is the format's name for it, such as "bf16"."""
    name: str
    dtype: str
    shape: tuple
    nbytes: int
    offset: int
    digest: str


class Shard(typing.NamedTuple):
    file: str
    nbytes: int
    digest: str
    first_frame: int
    frames: int


class Piece(typing.NamedTuple):
    """The part of a tensor that lies in one frame."""
    tensor: Tensor
    in_tensor: int
    in_frame: int
    nbytes: int


def _aligned(n, unit):
    return -(-n // unit) * unit


class Layout:
    """Where the tensors lie in the stream, and what each frame holds."""

    def __init__(self, shapes, frame_bytes):
        """shapes: (dtype, bytes) of each tensor, in the list's order."""
        self.frame_bytes = frame_bytes
        self.offsets = [0] * len(shapes)
        self.regions = []  # (first frame, end, width) of each lane width that has bytes
        at = 0
        for width in (8, 4, 2, 1):
            begin, end = at, at
            for i, (dtype, nbytes) in enumerate(shapes):
                if DTYPES[dtype][1] == width:
                    self.offsets[i] = _aligned(end, ALIGNMENT)
                    end = self.offsets[i] + nbytes if nbytes else end
            if end > begin:
                self.regions.append((begin // frame_bytes, end, width))
                at = _aligned(end, frame_bytes)
        self.frames = at // frame_bytes
        self.first = [region[0] for region in self.regions]

    def frame(self, number):
        """(begin in the stream, content bytes, lane width) of a frame."""
        _, end, width = self.regions[bisect.bisect_right(self.first, number) - 1]
        begin = number * self.frame_bytes
        return begin, min(self.frame_bytes, end - begin), width


class PieceMap:
    """Which tensors have a part in a frame."""

    def __init__(self, tensors, layout):
        self.layout = layout
        self.tensors = sorted((t for t in tensors if t.nbytes), key=lambda t: t.offset)
        self.ends = [t.offset + t.nbytes for t in self.tensors]

    def pieces(self, number):
        begin, nbytes, _ = self.layout.frame(number)
        found = []
        for i in range(bisect.bisect_right(self.ends, begin), len(self.tensors)):
            tensor = self.tensors[i]
            if tensor.offset >= begin + nbytes:
                break
            first = max(begin, tensor.offset)
            some = min(begin + nbytes, self.ends[i]) - first
            found.append(Piece(tensor, first - tensor.offset, first - begin, some))
        return found


# ---- Frames (section 4) ------------------------------------------------------------------------


class _Damage(Exception):
    """What is wrong at a place that the caller knows."""


def _expanded(payload, nbytes):
    """The content of one zstd frame that says it has `nbytes` bytes, and nothing behind it."""
    try:
        about = zstandard.get_frame_parameters(payload)
        if about.content_size != nbytes or about.has_checksum or about.dict_id:
            raise _Damage(f"its zstd frame is not a plain one of {nbytes} bytes")
        one = zstandard.ZstdDecompressor(max_window_size=FRAME_BYTES_MAX).decompressobj(
            write_size=max(nbytes, 1))
        content = one.decompress(payload)
    except zstandard.ZstdError as error:
        raise _Damage(f"its zstd frame does not decode ({error})") from None
    if not one.eof or one.unused_data or len(content) != nbytes:
        raise _Damage(f"its zstd frame is not a plain one of {nbytes} bytes")
    return content


def _planes(payload, nbytes, width, rotated, coded):
    """Puts byte planes together to numbers."""
    count, tail = divmod(nbytes, width)
    numbers = [p for p in range(width) if coded >> p & 1]
    if width == 1 or not coded or coded >> width:
        raise _Damage(f"its coded planes {coded:#x} do not fit lanes of {width} bytes")
    at = 4 * len(numbers)
    sizes = np.frombuffer(payload[:at], "<u4").tolist() if len(payload) >= at else [0]
    if len(payload) != at + count * (width - len(numbers)) + tail + sum(sizes):
        raise _Damage("its planes do not fill the payload")
    content = np.empty(nbytes, np.uint8)
    rows = content[:count * width].reshape(count, width)
    for plane in range(width):
        if plane not in numbers:
            rows[:, plane] = np.frombuffer(payload, np.uint8, count, at)
            at += count
    content[count * width:] = np.frombuffer(payload, np.uint8, tail, at)
    at += tail
    for plane, size in zip(numbers, sizes):
        stored = payload[at:at + size]
        if size != count:
            stored = _expanded(stored, count)
        rows[:, plane] = np.frombuffer(stored, np.uint8)
        at += size
    if rotated:
        lanes = content[:count * width].view(f"<u{width}")
        lowest = lanes << np.array(8 * width - 1, lanes.dtype)
        lanes >>= np.array(1, lanes.dtype)
        lanes |= lowest
    return content


def _decoded(stored, number, nbytes, width):
    """(content, its digest) of frame `number`, whose stored bytes have been checked."""
    if len(stored) < FRAME_BYTES:
        raise _Damage("it is too short for a frame")
    magic, codec, lane, flags, coded, content_bytes, payload_bytes, own_number = struct.unpack_from(
        "<4s4B2IQ", stored)
    if magic != b"KRM1" or own_number != number or (content_bytes, lane) != (nbytes, width):
        raise _Damage(f"its header is not that of frame {number} with {nbytes} bytes in lanes of "
                      f"{width}")
    padding = len(stored) - FRAME_BYTES - payload_bytes
    if not 0 <= padding < PAGE:
        raise _Damage(f"its payload of {payload_bytes} bytes does not fit its {len(stored)} bytes")
    payload = stored[FRAME_BYTES:FRAME_BYTES + payload_bytes]
    if codec > 2 or flags > (codec == 2) or (coded and codec != 2):
        raise _Damage(f"codec {codec}, flags {flags:#x}, planes {coded:#x} are unknown together")
    if codec == 2:
        return _planes(payload, nbytes, width, flags, coded), stored[24:40]
    if codec == 1:
        return np.frombuffer(_expanded(payload, nbytes), np.uint8), stored[24:40]
    if payload_bytes != nbytes:
        raise _Damage(f"its payload has {payload_bytes} bytes in place of {nbytes}")
    return np.frombuffer(payload, np.uint8), stored[24:40]


# ---- Shards (section 3) ------------------------------------------------------------------------


# ---- Where checkpoints are -----------------------------------------------------------------------


class _Disk:
    """Files by their paths. All that is wrong with one is an OSError."""

    def exists(self, path):
        return os.path.exists(path)

    def size(self, path):
        return os.stat(path).st_size

    def read(self, path, at=0, nbytes=-1):
        with open(path, "rb", buffering=0 if nbytes > JOB_BYTES // 2 else -1) as stream:
            stream.seek(at)
            return stream.read(nbytes)

    def folders(self, root):
        return [(entry.name, entry.path) for entry in os.scandir(root or ".") if entry.is_dir()]


class _Bucket:
    """Objects below s3://bucket/prefix, which stand for files. What boto3 says becomes an OSError."""

    def __init__(self):
        self.client, self.lock = None, threading.Lock()

    def _connect(self):
        try:
            import boto3
            import botocore.exceptions
        except ImportError:
            raise OSError(0, "what is in a bucket is read by boto3, which is missing: "
                          "pip install boto3") from None
        self.errors = botocore.exceptions.BotoCoreError, botocore.exceptions.ClientError
        try:
            self.client = boto3.client("s3")
        except (*self.errors, ValueError) as error:
            raise OSError(0, str(error)) from None

    def _call(self, name, path, **more):
        bucket, _, key = path[len(BUCKET_SCHEME):].partition("/")
        with self.lock:
            if self.client is None:
                self._connect()
        try:
            if name == "list_objects_v2":
                return self._listed(bucket, key)
            answer = getattr(self.client, name)(Bucket=bucket, Key=key, **more)
            return answer["Body"].read() if "Body" in answer else answer
        except self.errors as error:
            answer = getattr(error, "response", None)  # none: there was no whole one
            is_missing = answer and answer["ResponseMetadata"].get("HTTPStatusCode") == 404
            number = errno.ENOENT if is_missing else 0 if answer else errno.EIO
            raise OSError(number, str(error)) from None

    def _listed(self, bucket, key):
        prefix = key.rstrip("/") + "/" if key else ""
        pages = self.client.get_paginator("list_objects_v2").paginate(
            Bucket=bucket, Prefix=prefix, Delimiter="/")
        found = [one["Prefix"] for page in pages for one in page.get("CommonPrefixes", [])]
        return [(one[len(prefix):-1], f"{BUCKET_SCHEME}{bucket}/{one[:-1]}") for one in found]

    def exists(self, path):
        try:
            self._call("head_object", path)
        except OSError as error:
            if error.errno == errno.ENOENT:
                return False
            raise CheckpointError(path, error.strerror) from None
        return True

    def size(self, path):
        return self._call("head_object", path)["ContentLength"]

    def read(self, path, at=0, nbytes=-1):
        if nbytes == 0:
            return b""
        end = "" if nbytes < 0 else at + nbytes - 1
        for left in reversed(range(BODY_TRIES)):  # a body that breaks off is not read anew by boto3
            try:
                return self._call("get_object", path, Range=f"bytes={at}-{end}")
            except OSError as error:
                if left == 0 or error.errno != errno.EIO:
                    raise

    def folders(self, root):
        return self._call("list_objects_v2", root)


_disk, _bucket = _Disk(), _Bucket()


def _place(path):
    return _bucket if path.startswith(BUCKET_SCHEME) else _disk


def _read_at(path, at, nbytes):
    data = _place(path).read(path, at, nbytes)
    if len(data) != nbytes:
        raise CheckpointError(path, f"ends within bytes {at} to {at + nbytes}: it was cut short")
    return data


INDEX = np.dtype([("begin", "<u8"), ("stored", "<u4"), ("content", "<u4"), ("digest", "V16")])


class _Footer:
    """One shard's index and piece digests, checked against the manifest."""

    def __init__(self, ckpt, part):
        shard = ckpt.shards[part]
        self.path, self.first = os.path.join(ckpt.path, shard.file), shard.first_frame
        try:
            self._read(ckpt, part)
        except OSError as error:
            raise CheckpointError(self.path, error.strerror or str(error)) from None

    def _read(self, ckpt, part):
        shard = ckpt.shards[part]
        size = _place(self.path).size(self.path)
        if size != shard.nbytes or size < HEADER_BYTES + TAIL_BYTES:
            raise CheckpointError(self.path, f"has {size} bytes, the manifest says {shard.nbytes}")
        header = _read_at(self.path, 0, HEADER_BYTES)
        tail = _read_at(self.path, size - TAIL_BYTES, TAIL_BYTES)
        if header[:8] != b"KEELSHD1" or tail[56:] != b"KEELEND1":
            raise CheckpointError(self.path, "does not begin and end as a shard")
        at, index, pieces, description = struct.unpack_from("<4Q", tail)
        if at < HEADER_BYTES or at + index + pieces + description + TAIL_BYTES != size:
            raise CheckpointError(self.path, f"the tail at byte {size - TAIL_BYTES} does not "
                                  f"describe a file of {size} bytes")
        footer = _read_at(self.path, at, size - TAIL_BYTES - at)
        digest = xxh3_128(header + footer + tail[:40])
        if digest != tail[40:56] or digest.hex() != shard.digest:
            raise CheckpointError(self.path, f"the digest of header and footer is {digest.hex()}, "
                                  f"tail and manifest say {tail[40:56].hex()} and {shard.digest}")
        _refuse_newer(self.path, *struct.unpack_from("<I", header, 8))
        _refuse_newer(self.path, *struct.unpack_from("<I", tail, 32))
        self._check_header(ckpt, part, header)
        self._check_index(ckpt, shard, footer[:index], footer[index:index + pieces], at)
        if not _describes(footer[index + pieces:], ckpt):
            raise CheckpointError(self.path, "its description is not that of the manifest")

    def _check_header(self, ckpt, part, header):
        shard = ckpt.shards[part]
        found = struct.unpack_from("<3I3Q16s", header, 12)
        wanted = (ckpt.frame_bytes, part, len(ckpt.shards), shard.first_frame, shard.frames,
                  ckpt.step, ckpt.attempt.encode())
        if found != wanted:
            raise CheckpointError(self.path, f"its header says (frame_bytes, part, parts, first "
                                  f"frame, frames, step, attempt) {found}, not {wanted}")

    def _check_index(self, ckpt, shard, index, pieces, end):
        if len(index) != INDEX_BYTES * shard.frames:
            raise CheckpointError(self.path, f"its index has {len(index)} bytes for {shard.frames} "
                                  "frames")
        self.index = np.frombuffer(index, INDEX)
        ends = np.cumsum(self.index["stored"], dtype=np.uint64) + np.uint64(HEADER_BYTES)
        begins = np.concatenate(([HEADER_BYTES], ends)).astype(np.uint64)
        if begins[-1] != end or not np.array_equal(begins[:-1], self.index["begin"]):
            raise CheckpointError(self.path, "its frames do not follow one behind the other")
        most = self.index["content"].astype(np.int64) + STORED_MORE_MAX
        if (self.index["content"] > ckpt.frame_bytes).any() or (self.index["stored"] > most).any():
            raise CheckpointError(self.path, "its index speaks of frames that are too long")
        numbers = range(shard.first_frame, shard.first_frame + shard.frames)
        counts = [len(ckpt.map.pieces(number)) for number in numbers]
        if len(pieces) != 16 * sum(counts):
            raise CheckpointError(self.path, f"has {len(pieces)} bytes of piece digests for "
                                  f"{sum(counts)} pieces")
        self.pieces = pieces
        self.first_piece = np.concatenate(([0], np.cumsum(counts))).astype(np.int64)

    def place(self, number):
        """(begin, stored bytes, content bytes, stored digest) of a frame, by its number."""
        row = self.index[number - self.first]
        return int(row["begin"]), int(row["stored"]), int(row["content"]), row["digest"].tobytes()

    def piece_digests(self, number):
        first = self.first_piece[number - self.first]
        last = self.first_piece[number - self.first + 1]
        return [self.pieces[16 * i:16 * (i + 1)] for i in range(first, last)]


def _describes(text, ckpt):
    """Whether a shard's description says the same as the manifest, to the type of each number."""
    try:
        found = json.loads(text.decode(), object_pairs_hook=_object)
    except (ValueError, RecursionError):
        return False
    return json.dumps(found) == json.dumps(ckpt.description)


# ---- The manifest (section 5) ------------------------------------------------------------------

MEMBERS = ("format", "version", "step", "attempt", "writer", "codec", "frame_bytes", "metadata",
           "user", "saved_at_ns", "shards", "tensors", "digest")
ENDING = re.compile(rb',\n"digest":"([0-9a-f]{32})"\n}\n\Z')
HEX32 = re.compile(r"[0-9a-f]{32}\Z")


def _refuse_newer(path, version):
    if not _same(version, FORMAT_VERSION):
        raise CheckpointError(path, f"is of format version {version}; this program reads version "
                              f"{FORMAT_VERSION}: take the evenkeel_ckpt.py of the Evenkeel that "
                              "wrote it")


def _object(pairs):
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("a member occurs twice")
    return members


def _no_constant(name):
    raise ValueError(f"{name} is no JSON number")


def _same(value, wanted):
    """Equal, and of one type: to Python, 1 is equal to 1.0 and to True."""
    return type(value) is type(wanted) and value == wanted


def _is_count(value, limit=1 << 63):
    return type(value) is int and 0 <= value < limit


def _manifest_json(path, text):
    """The manifest's members, after its digest has been checked."""
    ending = ENDING.search(text)
    if not ending:
        raise CheckpointError(path, "does not end as a manifest does: it is cut short or damaged")
    digest = xxh3_128(text[:ending.start()]).hex()
    if digest != ending.group(1).decode():
        raise CheckpointError(path, f"its digest is {digest}, it says {ending.group(1).decode()}")
    try:
        members = json.loads(text.decode(), object_pairs_hook=_object, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise CheckpointError(path, f"is not JSON: {error}") from None
    if not isinstance(members, dict) or members.get("format") != "keel-checkpoint":
        raise CheckpointError(path, "is not the manifest of a checkpoint")
    _refuse_newer(path, members.get("version"))
    if tuple(members) != MEMBERS:
        raise CheckpointError(path, f"has the members {', '.join(members)}; they should be "
                              f"{', '.join(MEMBERS)}")
    return members


def _tensor(row):
    """One row of `tensors`, or ValueError."""
    if tuple(row) != ("name", "dtype", "shape", "offset", "bytes", "digest"):
        raise ValueError(f"has the members {', '.join(row)}")
    if not 0 < len(row["name"].encode()) <= NAME_BYTES_MAX or min(row["name"]) < " ":
        raise ValueError("has a name that is empty, too long or holds control characters")
    if row["dtype"] not in DTYPES:
        raise ValueError(f"has an unknown dtype '{row['dtype']}'")
    nbytes = np.dtype(DTYPES[row["dtype"]][0]).itemsize
    for count in row["shape"]:
        if not _is_count(count) or len(row["shape"]) > DIMENSIONS_MAX:
            raise ValueError(f"has the shape {row['shape']}")
        nbytes *= count
    if not _same(row["bytes"], nbytes) or nbytes > STREAM_BYTES_MAX:
        raise ValueError(f"has {row['bytes']} bytes where dtype and shape make {nbytes}")
    if not HEX32.match(row["digest"]):
        raise ValueError(f"has a digest of the wrong form: {row['digest']}")
    return Tensor(row["name"], row["dtype"], tuple(row["shape"]), nbytes, row["offset"],
                  row["digest"])


def _tensors(path, rows):
    tensors = {}
    for i, row in enumerate(rows):
        try:
            tensor = _tensor(row)
        except (ValueError, TypeError, AttributeError, KeyError) as error:
            name = row.get("name", "?") if isinstance(row, dict) else "?"
            raise CheckpointError(path, f"tensor {i} ('{name}') {error}") from None
        if tensor.name in tensors:
            raise CheckpointError(path, f"has two tensors named '{tensor.name}'")
        tensors[tensor.name] = tensor
    return tensors


def _shards(path, rows, attempt, frames):
    shards = []
    for part, row in enumerate(rows):
        first, end = frames * part // len(rows), frames * (part + 1) // len(rows)
        wanted = {"file": f"{attempt}-shard-{part:04}-of-{len(rows):04}.keel",
                  "first_frame": first, "frames": end - first}
        if (not isinstance(row, dict)
                or tuple(row) != ("file", "bytes", "digest", "first_frame", "frames")
                or not all(_same(row[key], value) for key, value in wanted.items())
                or not _is_count(row["bytes"]) or not HEX32.match(row["digest"])):
            raise CheckpointError(path, f"shard {part} is {row}, which should say {wanted}")
        shards.append(Shard(row["file"], row["bytes"], row["digest"], first, end - first))
    return shards


def _glob(pattern):
    """As all of Evenkeel's: '*' is any text, '?' one character, all else stands for itself."""
    parts = {"*": ".*", "?": "."}
    return re.compile("".join(parts.get(c) or re.escape(c) for c in pattern) + r"\Z", re.DOTALL)


class Checkpoint:
    """One committed checkpoint: what its manifest says, and its tensors on demand."""

    def __init__(self, path: str):
        """path: the step's own directory. open_checkpoint() takes more."""
        self.path = path
        manifest = os.path.join(path, "manifest.json")
        try:
            text = _place(manifest).read(manifest)
        except OSError as error:
            raise CheckpointError(manifest, error.strerror or str(error)) from None
        members = _manifest_json(manifest, text)
        try:
            self._take(manifest, members)
        except (TypeError, KeyError, ValueError, AttributeError) as error:
            raise CheckpointError(manifest, f"is not as it should be: {error}") from None
        self._footers = [None] * len(self.shards)

    def _take(self, manifest, members):
        self.step, self.attempt = members["step"], members["attempt"]
        self.writer, self.codec = members["writer"], members["codec"]
        self.frame_bytes, self.saved_at_ns = members["frame_bytes"], members["saved_at_ns"]
        self.metadata, self.user = members["metadata"], members["user"]
        if not (_is_count(self.step, STEP_LIMIT) and re.match(r"[0-9a-f]{16}\Z", self.attempt)
                and self.codec in ("none", "zstd", "planes") and isinstance(self.writer, str)
                and _is_count(self.frame_bytes, FRAME_BYTES_MAX + 1) and self.frame_bytes > 0
                and self.frame_bytes % ALIGNMENT == 0 and type(self.saved_at_ns) is int
                and all(isinstance(value, (int, float, str)) for value in self.metadata.values())
                and all(isinstance(value, str) for value in self.user.values())):
            raise CheckpointError(manifest, "step, attempt, writer, codec, frame_bytes, metadata, "
                                  "user or saved_at_ns is not as it should be")
        self.tensors = _tensors(manifest, members["tensors"])
        layout = Layout([(t.dtype, t.nbytes) for t in self.tensors.values()], self.frame_bytes)
        for tensor, offset in zip(self.tensors.values(), layout.offsets):
            if not _same(tensor.offset, offset):
                raise CheckpointError(manifest, f"tensor '{tensor.name}' is at {tensor.offset} in "
                                      f"the stream, should be at {offset}")
        self.map = PieceMap(self.tensors.values(), layout)
        if not 0 < len(members["shards"]) <= PARTS_MAX:
            raise CheckpointError(manifest, f"names {len(members['shards'])} shards")
        self.shards = _shards(manifest, members["shards"], self.attempt, layout.frames)
        self.description = {name: members[name] for name in MEMBERS[:9]}
        self.description["tensors"] = [{key: value for key, value in row.items() if key != "digest"}
                                       for row in members["tensors"]]

    @property
    def nbytes(self) -> int:
        """Bytes of all tensors."""
        return sum(tensor.nbytes for tensor in self.tensors.values())

    @property
    def stored_bytes(self) -> int:
        """Bytes of all shards."""
        return sum(shard.nbytes for shard in self.shards)

    def names(self, only=None) -> list[str]:
        """Names that match a pattern or one of several (None: all), in the checkpoint's order."""
        if only is None:
            return list(self.tensors)
        patterns = [only] if isinstance(only, str) else list(only)
        matched = set()
        for pattern in patterns:
            glob = _glob(pattern)
            some = [name for name in self.tensors if glob.match(name)]
            if not some:
                raise CheckpointError(self.path,
                                      f"no tensor matches '{pattern}'" + self._near(pattern))
            matched.update(some)
        return [name for name in self.tensors if name in matched]

    def load(self, only=None, ml_dtypes=False, threads=None) -> dict[str, np.ndarray]:
        """The tensors whose names match, verified. `only` is a pattern or a list of them."""
        names = self.names(only)
        return self._read(names, ml_dtypes, threads)

    def read(self, name: str, ml_dtypes=False) -> np.ndarray:
        """One tensor, verified."""
        if name not in self.tensors:
            raise CheckpointError(self.path, f"has no tensor '{name}'" + self._near(name))
        return self._read([name], ml_dtypes, None)[name]

    def verify(self, threads=None) -> None:
        """Checks every byte of every shard, keeping nothing; CheckpointError lists the damage."""
        _Read(self, list(self.tensors), keep=False).run(threads)

    def _read(self, names, ml_dtypes, threads):
        types = {name: _numpy_type(self.tensors[name].dtype, ml_dtypes) for name in names}
        flat = _Read(self, names, keep=True).run(threads)
        try:
            return {name: flat[name].view(types[name]).reshape(self.tensors[name].shape)
                    for name in names}
        except ValueError as error:  # more dimensions than this numpy has
            raise CheckpointError(self.path, f"numpy cannot hold it: {error}") from None

    def _near(self, name):
        near = difflib.get_close_matches(name, self.tensors, n=3)
        return f"; there is {', '.join(near)}" if near else ""

    def footer(self, part):
        """The checked index of a shard; read once."""
        if self._footers[part] is None:
            self._footers[part] = _Footer(self, part)
        return self._footers[part]


def _numpy_type(dtype, ml_dtypes):
    if not ml_dtypes or dtype not in ML_DTYPES:
        return np.dtype(DTYPES[dtype][0])
    import ml_dtypes as package  # only who asks for it needs it
    return np.dtype(getattr(package, ML_DTYPES[dtype]))


def bf16_to_f32(array: np.ndarray) -> np.ndarray:
    """The values of a bf16 tensor that came as uint16; exact."""
    return (array.astype(np.uint32) << np.uint32(16)).view(np.float32)


# ---- Reading -----------------------------------------------------------------------------------


class _Read:
    """Reads and checks all that some tensors need, a few frames at a time on each thread."""

    def __init__(self, ckpt, names, keep):
        self.ckpt, self.keep, self.problems = ckpt, keep, {}
        self.wanted = {name: ckpt.tensors[name] for name in names}
        self.whole = len(names) == len(ckpt.tensors)
        self.flat = {}

    def run(self, threads):
        """Flat uint8 arrays by name."""
        parts = [part for part in range(len(self.ckpt.shards)) if self._needs(part)]
        for part in parts:
            try:
                self.ckpt.footer(part)
            except CheckpointError as error:
                self.problems[part, -1] = str(error)
        if self.keep and not self.problems:  # else all is read only to list what else is wrong
            self.flat = {name: np.empty(t.nbytes, np.uint8) for name, t in self.wanted.items()}
        jobs = [job for part in parts if (part, -1) not in self.problems
                for job in self._jobs(part)]
        self.digests = {name: bytearray(16 * len(self._frame_range(tensor)))
                        for name, tensor in self.wanted.items()}
        threads = threads or min(4, os.cpu_count() or 1)
        with concurrent.futures.ThreadPoolExecutor(threads) as pool:
            for _ in pool.map(self._do, jobs):
                pass
        if not self.problems:
            self._check_tensors()
        if self.problems:
            listed = [self.problems[place] for place in sorted(self.problems)]
            raise CheckpointError(self.ckpt.path, listed)
        return self.flat

    def _frame_range(self, tensor):
        size = self.ckpt.frame_bytes
        if not tensor.nbytes:
            return range(0)
        return range(tensor.offset // size, (tensor.offset + tensor.nbytes - 1) // size + 1)

    def _needs(self, part):
        """Whether a shard holds wanted bytes, or all are to be looked at."""
        shard = self.ckpt.shards[part]
        end = shard.first_frame + shard.frames
        frames = (self._frame_range(tensor) for tensor in self.wanted.values())
        return self.whole or any(r.start < end and r.stop > shard.first_frame for r in frames)

    def _frames(self, part):
        """Numbers of this shard's frames that hold wanted bytes."""
        shard = self.ckpt.shards[part]
        here = range(shard.first_frame, shard.first_frame + shard.frames)
        if self.whole:
            return here
        ranges = [self._frame_range(tensor) for tensor in self.wanted.values()]
        return sorted({number for r in ranges
                       for number in range(max(r.start, here.start), min(r.stop, here.stop))})

    def _jobs(self, part):
        """Runs of frames that follow one another, as (part, first, end)."""
        limit = max(1, JOB_BYTES // self.ckpt.frame_bytes)
        jobs = []
        for number in self._frames(part):
            if jobs and jobs[-1][2] == number and number - jobs[-1][1] < limit:
                jobs[-1] = (part, jobs[-1][1], number + 1)
            else:
                jobs.append((part, number, number + 1))
        return jobs

    def _do(self, job):
        part, first, end = job
        footer = self.ckpt.footer(part)
        begin = footer.place(first)[0]
        last, stored, _, _ = footer.place(end - 1)
        try:
            data = memoryview(_read_at(footer.path, begin, last + stored - begin))
        except (OSError, CheckpointError) as error:
            self.problems[part, first] = str(error)
            return
        frames = {}
        for number in range(first, end):
            at, stored, _, digest = footer.place(number)
            frames[number] = data[at - begin:at - begin + stored], digest
        found = xxh3_128_many([stored for stored, _ in frames.values()])
        for (number, (_, digest)), one in zip(list(frames.items()), found):
            if one != digest:
                self._report(part, number, "its stored bytes do not match their digest")
                del frames[number]
        self._take(part, footer, {number: stored for number, (stored, _) in frames.items()})

    def _take(self, part, footer, frames):
        """Decodes frames whose stored bytes are right, and gives their pieces to the tensors."""
        contents, said = {}, {}
        for number, stored in frames.items():
            _, nbytes, width = self.ckpt.map.layout.frame(number)
            try:
                indexed = footer.place(number)[2]
                if indexed != nbytes:
                    raise _Damage(f"the index gives it {indexed} content bytes, not {nbytes}")
                contents[number], said[number] = _decoded(stored, number, nbytes, width)
            except _Damage as damage:
                self._report(part, number, str(damage))
        found = dict(zip(contents, xxh3_128_many(list(contents.values()))))
        for number, content in contents.items():
            if found[number] != said[number]:
                self._report(part, number, "its content does not match its digest")
                continue
            self._spread(part, footer, number, content, found[number])

    def _spread(self, part, footer, number, content, digest):
        pieces = self.ckpt.map.pieces(number)
        parts = [content[piece.in_frame:piece.in_frame + piece.nbytes] for piece in pieces]
        whole = len(parts) == 1 and len(parts[0]) == len(content)  # then its digest is known
        digests = [digest] if whole else xxh3_128_many(parts)
        if digests != footer.piece_digests(number):
            self._report(part, number, "its pieces do not match their digests in the footer")
            return
        for piece, data, one in zip(pieces, parts, digests):
            name = piece.tensor.name
            if name not in self.wanted:
                continue
            index = number - piece.tensor.offset // self.ckpt.frame_bytes
            self.digests[name][16 * index:16 * (index + 1)] = one
            if name in self.flat:
                self.flat[name][piece.in_tensor:piece.in_tensor + piece.nbytes] = data

    def _report(self, part, number, what):
        at, stored, _, _ = self.ckpt.footer(part).place(number)
        hit = []
        for piece in self.ckpt.map.pieces(number):
            size = np.dtype(DTYPES[piece.tensor.dtype][0]).itemsize
            first, end = piece.in_tensor // size, (piece.in_tensor + piece.nbytes) // size
            hit.append(f"{piece.tensor.name}[{first}:{end}]")
        if len(hit) > 3:
            hit = hit[:3] + [f"{len(hit) - 3} more"]
        self.problems[part, number] = (
            f"{self.ckpt.shards[part].file}: frame {number} (bytes {at} to {at + stored}): {what}; "
            f"it holds {', '.join(hit)}")

    def _check_tensors(self):
        found = xxh3_128_many(list(self.digests.values()))
        for i, (tensor, digest) in enumerate(zip(self.wanted.values(), found)):
            if digest.hex() != tensor.digest:
                self.problems[PARTS_MAX, i] = (
                    f"manifest.json: tensor '{tensor.name}' has the digest {digest.hex()}, the "
                    f"manifest says {tensor.digest}")


# ---- Which checkpoint is meant -----------------------------------------------------------------

STEP_DIR = re.compile(r"step-([0-9]{9}|[1-9][0-9]{9,17})\Z")


def _list_steps(root):
    """(step, directory) of each, the lowest first."""
    try:
        return sorted((int(STEP_DIR.match(name).group(1)), path)
                      for name, path in _place(root).folders(root) if STEP_DIR.match(name))
    except OSError as error:
        raise CheckpointError(root, error.strerror or str(error)) from None


def _newest(root):
    """The directory of the newest step whose manifest is valid and whose shards are there."""
    steps = _list_steps(root)
    for _ in range(16):
        found, reasons = _newest_of(steps)
        if found is not None:
            return found
        # A job may have removed the only one after it saved a newer one, which was not listed yet.
        before, steps = steps, _list_steps(root)
        if steps == before:
            break
    raise CheckpointError(root, ["holds no complete checkpoint"] + reasons)


def _newest_of(steps):
    """The newest of them that is complete, or None, and why the others are not."""
    reasons = []
    for step, path in reversed(steps):
        try:
            ckpt = Checkpoint(path)
            for shard in ckpt.shards:
                _check_shard_size(ckpt, shard)
            if ckpt.step != step:
                raise CheckpointError(path, f"its manifest is of step {ckpt.step}")
            return path, reasons
        except CheckpointError as error:
            reasons.append(str(error))
    return None, reasons


def _check_shard_size(ckpt, shard):
    path = os.path.join(ckpt.path, shard.file)
    try:
        size = _place(path).size(path)
    except OSError as error:
        raise CheckpointError(path, error.strerror or str(error)) from None
    if size != shard.nbytes:
        raise CheckpointError(path, f"has {size} bytes, the manifest says {shard.nbytes}")


def resolve(path) -> str:
    """The step directory that is meant by itself, or by DIR (its newest), DIR@latest, DIR@1200."""
    path = os.fspath(path)
    root, at, which = path.rpartition("@")
    if at and "/" not in which and not _disk.exists(path):
        if which == "latest":
            return _newest(root)
        if not re.match(r"[0-9]{1,18}\Z", which):
            raise CheckpointError(path, "after '@' a step or 'latest' is expected")
        found = os.path.join(root, f"step-{int(which):09}")
        if int(which) not in [step for step, _ in _list_steps(root)]:
            raise CheckpointError(root, f"there is no step {which}")
        return found
    name = os.path.basename(path.rstrip("/") if path.startswith(BUCKET_SCHEME)
                            else os.path.normpath(path))
    if STEP_DIR.match(name) or _place(path).exists(os.path.join(path, "manifest.json")):
        return path
    return _newest(path)


def open_checkpoint(path) -> Checkpoint:
    """What a checkpoint says of itself, checked; its tensors are read when asked for."""
    found = resolve(path)
    for _ in range(16):
        try:
            return _named_by(path, Checkpoint(found))
        except CheckpointError:  # a job may have removed it, after it saved a newer one
            before, found = found, resolve(path)
            if found == before:
                raise
    return _named_by(path, Checkpoint(found))


def _named_by(path, ckpt):
    """The checkpoint, if it is of the step that its directory is named after. Its own directory is
    taken under any name, but "DIR@1200" means that step."""
    name = STEP_DIR.match(os.path.basename(ckpt.path))
    if name and int(name.group(1)) != ckpt.step and ckpt.path != os.fspath(path):
        raise CheckpointError(ckpt.path, f"its manifest is of step {ckpt.step}")
    return ckpt


def load(path, only=None, ml_dtypes=False) -> dict[str, np.ndarray]:
    """All tensors by name (or those that match `only`: a pattern, or a list), verified."""
    return open_checkpoint(path).load(only, ml_dtypes)


# ---- The command line --------------------------------------------------------------------------


def _size(nbytes):
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if nbytes < 1024:
            break
        nbytes /= 1024
    else:
        unit = "TiB"
    return f"{nbytes} {unit}" if unit == "bytes" else f"{nbytes:.1f} {unit}"


def _print_listing(ckpt, names):
    facts = [("checkpoint", ckpt.path), ("step", ckpt.step), ("attempt", ckpt.attempt),
             ("writer", ckpt.writer), ("codec", ckpt.codec), ("shards", len(ckpt.shards)),
             ("size", f"{_size(ckpt.nbytes)}, stored in {_size(ckpt.stored_bytes)}")]
    facts += [("metadata", f"{key} = {value!r}") for key, value in ckpt.metadata.items()]
    facts += [("user", f"{key} = {value!r}") for key, value in ckpt.user.items()]
    for key, value in facts:
        print(f"{key:<11} {value}")
    rows = [(name, ckpt.tensors[name].dtype, str(list(ckpt.tensors[name].shape)),
             _size(ckpt.tensors[name].nbytes)) for name in names]
    widths = [max([len(row[i]) for row in rows], default=0) for i in range(4)]
    print(f"{len(rows)} tensor{'' if len(rows) == 1 else 's'}")
    for row in rows:
        name = row[0].ljust(widths[0])
        print(f"  {name}  {row[1]:<{widths[1]}}  {row[2]:<{widths[2]}}  {row[3]:>{widths[3]}}")


def main(arguments=None) -> int:
    parser = argparse.ArgumentParser(
        description="Lists what a checkpoint of Evenkeel holds.",
        epilog="CKPT is a step's directory, or DIR (its newest step), DIR@latest, DIR@1200. Exit "
               "status: 0 all is well, 1 not a whole checkpoint, or it cannot be read, 2 wrong "
               "use. `keel` does more.")
    parser.add_argument("checkpoint", metavar="CKPT")
    parser.add_argument("--only", metavar="GLOB", action="append",
                        help="only tensors whose names match; may be given more than once")
    parser.add_argument("--verify", action="store_true", help="read and check every byte as well")
    chosen = parser.parse_args(arguments)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a name that the terminal cannot show is no failure
            stream.reconfigure(errors="backslashreplace")
    try:
        ckpt = open_checkpoint(chosen.checkpoint)
        for shard in ckpt.shards:
            _check_shard_size(ckpt, shard)
        _print_listing(ckpt, ckpt.names(chosen.only))
        if chosen.verify:
            ckpt.verify()
            print("every byte was read and is right")
        sys.stdout.flush()  # here, where a failure can still be told
    except CheckpointError as error:
        print(f"evenkeel_ckpt: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:  # as in `... | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        print(f"evenkeel_ckpt: writing the output failed: {error.strerror or error}",
              file=sys.stderr)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for the flush at the end
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
