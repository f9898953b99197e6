"""The other side of tests/tools/keel_exchange_test.cc: Python's own safetensors.

    check FILE   reads FILE in each way there is and compares them; prints what it holds as JSON,
                 and whether writing it again gives the same bytes, but for the order of metadata
    write FILE   makes FILE from arrays
"""

import json
import pathlib
import sys

import numpy
import safetensors
import safetensors.numpy

NUMPY_KNOWS = {"BOOL", "U8", "I8", "U16", "I16", "U32", "I32", "U64", "I64", "F16", "F32", "F64",
               "C64"}
PYTHON_NAMES = {"BOOL": "bool", "U8": "uint8", "I8": "int8", "U16": "uint16", "I16": "int16",
                "U32": "uint32", "I32": "int32", "U64": "uint64", "I64": "int64", "F16": "float16",
                "BF16": "bfloat16", "F32": "float32", "F64": "float64", "C64": "complex64",
                "F8_E4M3": "float8_e4m3fn", "F8_E5M2": "float8_e5m2"}


def compare_arrays(path, tensors):
    """The library that users call gives the same bytes, where numpy has the dtype."""
    with safetensors.safe_open(path, framework="np") as opened:
        assert set(opened.keys()) == set(tensors), (opened.keys(), tensors.keys())
        for name, tensor in tensors.items():
            part = opened.get_slice(name)
            assert part.get_dtype() == tensor["dtype"], name
            assert list(part.get_shape()) == tensor["shape"], name
            if tensor["dtype"] not in NUMPY_KNOWS:
                continue
            array = opened.get_tensor(name)
            assert array.dtype == numpy.dtype(PYTHON_NAMES[tensor["dtype"]]), name
            assert list(array.shape) == tensor["shape"], name
            assert array.tobytes() == bytes(tensor["data"]), name
        return opened.metadata()


def check(path):
    whole = pathlib.Path(path).read_bytes()
    tensors = dict(safetensors.deserialize(whole))
    metadata = compare_arrays(path, tensors)
    again = safetensors.serialize(
        {name: safetensors.TensorSpec(dtype=PYTHON_NAMES[tensor["dtype"]], shape=tensor["shape"],
                                      data_ptr=address(tensor["data"]),
                                      data_len=len(tensor["data"]))
         for name, tensor in tensors.items()}, metadata)
    print(json.dumps({
        "metadata": metadata or {},
        "same_bytes": sorted_metadata(bytes(again)) == sorted_metadata(whole),
        "tensors": {name: {"dtype": tensor["dtype"], "shape": tensor["shape"],
                           "hex": bytes(tensor["data"]).hex()}
                    for name, tensor in sorted(tensors.items())}}))


def sorted_metadata(whole):
    """The file's bytes with the members of __metadata__, whose order is random, sorted."""
    header_bytes = int.from_bytes(whole[:8], "little")
    text = whole[8:8 + header_bytes].decode()
    header = json.loads(text)
    if "__metadata__" in header:
        header["__metadata__"] = dict(sorted(header["__metadata__"].items()))
    again = json.dumps(header, ensure_ascii=False, separators=(",", ":"))
    return whole[:8] + again.ljust(len(text)).encode() + whole[8 + header_bytes:]


def address(data):
    return numpy.frombuffer(data, dtype=numpy.uint8).ctypes.data if data else 0


def write(path):
    arrays = {
        "weight": numpy.arange(-3, 3, dtype=numpy.float32).reshape(2, 3),
        "half": numpy.array([0.5, -2, numpy.inf], dtype=numpy.float16),
        "double": numpy.array([numpy.pi, numpy.nan], dtype=numpy.float64),
        "complex": numpy.array([1 + 2j], dtype=numpy.complex64),
        "scalar": numpy.array(7, dtype=numpy.int64),
        "empty": numpy.zeros((0, 4), dtype=numpy.float32),
        "mask": numpy.array([True, False, True]),
        "unsigned": numpy.array([2**64 - 1], dtype=numpy.uint64),
        "short": numpy.array([-1, 2], dtype=numpy.int16),
        "G\u00f6del \"\\ \U0001f9ee": numpy.array([1, 2, 3], dtype=numpy.uint8),
    }
    safetensors.numpy.save_file(arrays, path, metadata={"format": "np", "note": "l\u00ednea\n2"})


if __name__ == "__main__":
    {"check": check, "write": write}[sys.argv[1]](sys.argv[2])
