"""Python's half of evenkeel_ckpt_test.cc: reads what that program has written.

Promises   exit status 0 when the check named by the first argument holds; else what differs.
Does not   write checkpoints, but damages those that it is given.
"""
import contextlib
import glob
import io
import os
import random
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "tools", "python"))
import evenkeel_ckpt as ek  # noqa: E402
import numpy as np  # noqa: E402


def digests(root):
    """The engine's digests of ranges of one file, one by one and all at once."""
    with open(os.path.join(root, "bytes"), "rb") as stream:
        data = memoryview(stream.read())
    with open(os.path.join(root, "digests"), encoding="ascii") as stream:
        lines = [line.split() for line in stream]
    ranges = [data[int(at):int(at) + int(length)] for at, length, _ in lines]
    together = ek.xxh3_128_many(ranges)
    assert len(ranges) > 1100
    for one, digest, (at, length, wanted) in zip(ranges, together, lines):
        assert digest.hex() == wanted, (at, length)
        assert ek.xxh3_128(one).hex() == wanted, (at, length)
    frames = [data[at:at + (1 << 19)] for at in range(0, 8 << 19, 1 << 19)]
    started = time.perf_counter()
    ek.xxh3_128_many(frames)
    speed = (8 << 19) / (time.perf_counter() - started) / 1e6
    print(f"{len(ranges)} digests; {speed:.0f} MB/s of frames")


def dumped(dump):
    """name -> (dtype, shape, bytes) of what the engine was given."""
    with open(os.path.join(dump, "bytes"), "rb") as stream:
        data = stream.read()
    with open(os.path.join(dump, "list"), encoding="utf-8") as stream:
        rows = [line.rstrip("\n").split("\t") for line in stream]
    return {name: (dtype, tuple(int(n) for n in shape.strip("[]").split(",") if n),
                   data[int(at):int(at) + int(nbytes)])
            for name, dtype, shape, at, nbytes in rows}


def compare(root, dump):
    """Every step in root holds what was dumped."""
    wanted = dumped(dump)
    steps = sorted(os.listdir(root))
    assert steps
    for step in steps:
        ckpt = ek.open_checkpoint(os.path.join(root, step))
        ckpt.verify()
        assert ckpt.metadata == {"cursor": 12345, "seed": 18446744073709551615}, ckpt.metadata
        assert ckpt.user == {"note": 'a "quoted" line'}, ckpt.user
        found = ckpt.load(threads=3)
        assert list(found) == list(wanted), step
        for name, (dtype, shape, data) in wanted.items():
            array = found[name]
            assert ckpt.tensors[name].dtype == dtype, (step, name)
            assert array.dtype == np.dtype(ek.DTYPES[dtype][0]), (step, name)
            assert array.shape == shape and array.flags.writeable, (step, name)
            assert array.tobytes() == data, (step, name)
    print(f"{len(steps)} checkpoints of {len(wanted)} tensors, {ckpt.nbytes} bytes")


def fails(what, call, *words):
    """The call raises CheckpointError, whose text holds all these words."""
    try:
        call()
    except ek.CheckpointError as error:
        for word in words:
            assert word in str(error), f"{what}: '{word}' is not in: {error}"
        return str(error)
    raise AssertionError(f"{what} was not noticed")


def partial(root):
    whole = ek.load(root)
    for only, count in (("many.*", 17), (["scalar.f32", "empty.*"], 18), ("weights[0]/?", 1),
                        ("*", len(whole)), ([], 0)):
        some = ek.load(root, only=only)
        assert len(some) == count, (only, list(some))
        for name, array in some.items():
            assert array.tobytes() == whole[name].tobytes(), name
    fails("a pattern that nothing matches", lambda: ek.load(root, only=["many.*", "mony.f32"]),
          "no tensor matches 'mony.f32'", "many.f32")
    ckpt = ek.open_checkpoint(root)
    assert ckpt.read("half").tobytes() == whole["half"].tobytes()
    fails("a name that is not there", lambda: ckpt.read("helf"), "no tensor 'helf'", "half")
    upper = whole["weights[0]/\u00e9"][:50003].view(np.uint32) & 0xFFFF0000
    assert np.array_equal(ek.bf16_to_f32(whole["half"]).view(np.uint32), upper)
    try:
        import ml_dtypes
    except ImportError:
        print("ml_dtypes is not installed: its types were not tried")
    else:
        assert ckpt.read("half", ml_dtypes=True).dtype == ml_dtypes.bfloat16


def flips(root, seed, count):
    """Bytes changed at random: each time the load fails and names the file."""
    step = ek.resolve(root)
    before = ek.load(root)
    draw = random.Random(int(seed))
    print(f"seed {seed}: {count} flips over ", end="")
    paths = sorted(glob.glob(os.path.join(step, "*.keel"))) + [os.path.join(step, "manifest.json")]
    ends = np.cumsum([os.path.getsize(path) for path in paths])
    print(f"{len(paths)} files of {ends[-1]} bytes")
    for _ in range(int(count)):
        place = draw.randrange(ends[-1])
        file = int(np.searchsorted(ends, place, side="right"))
        at = place - (ends[file] - os.path.getsize(paths[file]))
        with open(paths[file], "r+b") as stream:
            stream.seek(at)
            byte = stream.read(1)[0]
            stream.seek(at)
            stream.write(bytes([byte ^ 1 << draw.randrange(8)]))
            stream.flush()
            fails(f"byte {at} of {paths[file]}", lambda: ek.load(step),
                  os.path.basename(paths[file]))
            stream.seek(at)
            stream.write(bytes([byte]))
    after = ek.load(root)
    assert all(after[name].tobytes() == before[name].tobytes() for name in before)


def cuts(root):
    """Files cut at all lengths near their ends, and at others: each time the load fails."""
    step = ek.resolve(root)
    tried = 0
    for path in glob.glob(os.path.join(step, "*[nl]")):
        with open(path, "rb") as stream:
            whole = stream.read()
        lengths = set(range(0, len(whole), 37)) | set(range(len(whole) - 80, len(whole))) | {
            len(whole) + 1}
        for length in sorted(lengths):
            with open(path, "wb") as stream:
                stream.write((whole + b"x")[:length])
            fails(f"{path} of {length} bytes", lambda: ek.load(step), os.path.basename(path))
            tried += 1
        os.remove(path)
        fails(f"{path} gone", lambda: ek.load(step), os.path.basename(path))
        with open(path, "wb") as stream:
            stream.write(whole)
    ek.load(step)
    print(f"{tried} lengths")


def resolve(root):
    def is_step(text, step):
        assert ek.open_checkpoint(text).step == step, text

    is_step(root, 300)  # 400 has no manifest
    is_step(root + "/", 300)
    is_step(root + "@latest", 300)
    is_step(root + "@20", 20)
    is_step(os.path.join(root, "step-000000001"), 1)
    os.rename(os.path.join(root, "step-000000001"), os.path.join(root, "kept@home"))
    is_step(os.path.join(root, "kept@home"), 1)
    fails("step 1", lambda: ek.load(root + "@1"), "there is no step 1")
    fails("a word", lambda: ek.load(root + "@newest"), "'latest' is expected")
    fails("a step without manifest", lambda: ek.load(root + "@400"), "manifest.json")
    shard = glob.glob(os.path.join(root, "step-000000300", "*.keel"))[0]
    os.truncate(shard, os.path.getsize(shard) - 1)
    is_step(root, 20)
    fails("a shard that is too short", lambda: ek.load(root + "@300"), os.path.basename(shard))
    os.remove(os.path.join(root, "step-000000020", "manifest.json"))
    fails("nothing complete", lambda: ek.load(root), "no complete checkpoint", "step-000000400",
          "step-000000020", os.path.basename(shard))
    fails("nothing there", lambda: ek.load(root + "/nowhere"), "nowhere", "No such file")


def replaced(root):
    """A job that keeps one checkpoint replaces it after the directory was listed, or resolved."""
    for name in ("_list_steps", "resolve"):
        newer, later = os.path.join(root, "step-000000300"), root + ".later"
        older, kept = os.path.join(root, "step-000000020"), root + ".kept"
        os.rename(newer, later)
        original = getattr(ek, name)

        def found_before(text, original=original):
            found = original(text)
            if os.path.exists(later):
                os.rename(later, newer)
                os.rename(older, kept)
            return found

        setattr(ek, name, found_before)
        try:
            assert ek.open_checkpoint(root).step == 300, name
        finally:
            setattr(ek, name, original)
        os.rename(kept, older)


def command(root):
    def run(*arguments):
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                status = ek.main(list(arguments))
            except SystemExit as end:
                status = end.code
        return status, out.getvalue(), err.getvalue()

    status, out, err = run(root)
    assert (status, err) == (0, ""), (status, err)
    for word in ("step        7", "model.weight", "[12, 8]", "bf16", "8 tensors", "cursor = 12345"):
        assert word in out, (word, out)
    status, out, _ = run(root, "--only", "*.m", "--verify")
    assert status == 0 and "1 tensor\n" in out and "every byte" in out, out
    assert run(root, "--only", "none")[0] == 1
    assert run()[0] == 2
    assert run("--help")[0] == 0
    shard = glob.glob(os.path.join(root, "*", "*.keel"))[0]
    with open(shard, "r+b") as stream:
        stream.seek(64 + 45)
        stream.write(b"?!")
    status, out, err = run(root, "--verify")
    assert status == 1 and os.path.basename(shard) in err and "frame 0" in err, err
    assert "double[0:" in err, err
    os.remove(shard)
    for step in (os.path.dirname(shard), f"{root}@7"):   # named, so it is not searched for
        status, out, err = run(step)
        assert status == 1 and os.path.basename(shard) in err and out == "", (status, out, err)


def misnamed(root):
    """Step 20 lies there under the name of step 21."""
    fails("another step", lambda: ek.load(root + "@21"), "step-000000021",
          "its manifest is of step 20")
    assert ek.open_checkpoint(os.path.join(root, "step-000000021")).step == 20


CHECKS = {check.__name__: check
          for check in (digests, compare, partial, flips, cuts, resolve, replaced, command,
                        misnamed)}

if __name__ == "__main__":
    CHECKS[sys.argv[1]](*sys.argv[2:])
