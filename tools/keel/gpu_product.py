"""Computes matrix products that are known on every GPU, and tells which GPU comes to another one.

    python3 gpu_product.py --seconds 1      # started by `keel health`, in the user's own Python

Prints lines of JSON: one with the GPUs, then one for each GPU; or one with a `trouble`, where
nothing can be computed at all. tools/keel/health_gpu_product.h reads them.

Promises   the factors are whole numbers that float32, TF32, float16 and bfloat16 hold exactly;
           every partial sum, in whatever order, is a whole number below 2^24, which the float32 of
           an accumulator holds; every element of the product is one up to 256, which all of these
           hold. So there is one right product, whatever kernel computes it on whatever GPU. A
           digest of all that the processor has prepared shows that it is as it should be.
Does not   measure speed; import evenkeel; judge what a CUDA error means; take more than 300 MB of a
           GPU's memory, beside what CUDA takes for itself.

How: with X, Z and W drawn at random and D of a few ones a row, [X, X + D, X] times [Z; W; -Z - W]
is D times W: what the large numbers come to cancels, wherever it is done rightly. The columns of
the one and the rows of the other stand in a mixed order.
"""
import argparse
import ctypes
import hashlib
import json
import os
import sys
import time
import warnings

# (rows, inner, columns) and the digest of what is prepared for them. Small and large, of sides that
# are multiples of what kernels take at once and that are not, and deep, for kernels that split
# sums.
SHAPES = (((64, 96, 64), "5c667fca65149d14"),
          ((333, 1029, 257), "7b009353ce866af1"),
          ((256, 768, 384), "f9e57088223fb8e5"),
          ((128, 6144, 128), "57d80a207f5593a3"),
          ((1024, 1536, 1024), "318fc694b0316b64"),
          ((2048, 1536, 2048), "d1ea20ffe85068c0"))
SHAPES_OF_CPU = SHAPES[:4]   # in float16 it would take a minute for the others
# Name, its type in PyTorch, and the bits of a whole number that it holds.
KINDS = (("float32", "float32", 24), ("TF32", "float32", 11), ("float16", "float16", 11),
         ("bfloat16", "bfloat16", 8))
SUMS_BELOW = 1 << 24   # a float32 holds them exactly
NARROW = 7             # the greatest element of Z and W
ONES = 32              # of D, in a row; 32 times 7 is less than 256
HANG_LIMIT_S = 10      # for what takes milliseconds
WORDS_MOST = 300
# In the words of an error, where a GPU does not know a kind of number.
NOT_KNOWN_THERE = ("NOT_SUPPORTED", "ARCH_MISMATCH", "not implemented for", "not supported")


def say(**what):
    print(json.dumps(what), flush=True)


def first_line(error):
    text = str(error).strip() or type(error).__name__
    return text.splitlines()[0][:WORDS_MOST]


def drawn(torch, rows, columns, most, seed):
    """Whole numbers from -most to most, the same ones everywhere."""
    numbers = torch.arange(rows * columns, dtype=torch.int64) + (seed << 23)
    for factor in (1103515245, 69069, 1664525):
        numbers = (numbers * factor + 12345) & 0x7fffffff
        numbers = numbers ^ (numbers >> 13)
    return ((numbers >> 4) % (2 * most + 1) - most).reshape(rows, columns)


def widest(inner, bits):
    """The greatest element of X and X + D that keeps every partial sum below SUMS_BELOW."""
    return min(1 << bits, (SUMS_BELOW - 1) // (inner // 3 * 4 * NARROW))


class Case:
    """The factors and the product of one shape, in integers. `left`: by the name of the kind."""

    def __init__(self, torch, shape):
        rows, inner, columns = self.shape = shape
        third = inner // 3
        narrow = [drawn(torch, third, columns, NARROW, seed) for seed in (1, 2)]
        order = torch.argsort(drawn(torch, 1, inner, 1 << 20, 3)[0], stable=True)
        self.right = torch.cat([*narrow, -narrow[0] - narrow[1]])[order].to(torch.int16)
        first = (drawn(torch, rows, 1, third, 4) + third) % third
        places = (first + torch.arange(ONES) * (third // ONES)) % third
        signs = drawn(torch, rows, ONES, 1 << 20, 5).remainder(2) * 2 - 1
        ones = torch.zeros(rows, third, dtype=torch.int64).scatter_(1, places, signs)
        self.product = torch.zeros(rows, columns, dtype=torch.int16)
        below, signs = narrow[1].to(torch.int16), signs.to(torch.int16)
        for one in range(ONES):
            self.product += signs[:, one:one + 1] * below[places[:, one]]
        self.left = {}
        for seed, (name, _, bits) in enumerate(KINDS, 6):
            wide = drawn(torch, rows, third, widest(inner, bits) - 1, seed)
            self.left[name] = torch.cat([wide, wide + ones, wide], 1)[:, order].to(torch.int16)

    def digest(self):
        digest = hashlib.sha256()
        for matrix in (self.product, self.right, *self.left.values()):
            whole = matrix.contiguous()
            digest.update(ctypes.string_at(whole.data_ptr(), whole.numel() * 2))
        return digest.hexdigest()[:16]


def prepare(torch, shapes):
    """The cases, and why they are not as they should be, or nothing."""
    cases = []
    for shape, known in shapes:
        case = Case(torch, shape)
        if case.digest() != known:
            return [], f"this processor has prepared other factors of {shape} than it should"
        cases.append(case)
    return cases, ""


class Device:
    """A GPU, or the processor in its place, and what it has come to."""

    def __init__(self, torch, device, about):
        self.torch, self.device, self.about = torch, device, about
        self.products, self.wrong, self.trouble, self.is_hung = 0, {}, "", False
        self.cases, self.under_way, self.event, self.began = [], [], None, 0.0
        self.kinds = [name for name, _, _ in KINDS]
        self.looked_at = set()

    def is_well(self):
        return not self.trouble and not self.is_hung

    def receive(self, cases):
        self.cases = []
        for case in cases:
            of_type = {}
            for _, name, _ in KINDS:
                kind = getattr(self.torch, name)
                of_type[name] = (case.right.to(self.device).to(kind),
                                 case.product.to(self.device).to(kind))
            lefts = {name: case.left[name].to(self.device).to(getattr(self.torch, of))
                     for name, of, _ in KINDS}
            self.cases.append((case, lefts, of_type))

    def begin(self, kind, name):
        """Starts all products of a kind, if it knows it; on a GPU, without waiting for any."""
        self.under_way = []
        try:
            for case, lefts, of_type in self.cases:
                right, product = of_type[name]
                found = self.torch.mm(lefts[kind], right)
                self.under_way.append((case, found, (found != product).sum()))
        except RuntimeError as error:
            if not any(words in str(error) for words in NOT_KNOWN_THERE):
                raise
            self.kinds.remove(kind)
            self.under_way = []
        self.began = time.monotonic()
        if self.device.type == "cuda":
            self.event = self.torch.cuda.Event()
            self.event.record(self.torch.cuda.current_stream(self.device))

    def is_done(self):
        return self.event is None or self.event.query()

    def end(self, kind):
        """Takes what begin() has started. The GPU compares, and where it has found a difference, or
        the first time, so does the processor."""
        counts = self.torch.stack([count for _, _, count in self.under_way]).tolist()
        for (case, found, _), count in zip(self.under_way, counts):
            self.products += 1
            if count == 0 and (kind, case.shape) in self.looked_at:
                continue
            self.looked_at.add((kind, case.shape))
            found = found.cpu().to(self.torch.float32)
            places = (found != case.product.to(self.torch.float32)).nonzero()
            if count > 0 or len(places) > 0:
                self.note(kind, case, found, places)
        self.under_way = []

    def note(self, kind, case, found, places):
        if kind in self.wrong:
            self.wrong[kind]["times"] += 1
            return
        rows, inner, columns = case.shape
        wrong = {"kind": kind, "times": 1, "elements": rows * columns, "differing": len(places),
                 "shape": f"{rows} x {inner} by {inner} x {columns}"}
        if len(places) > 0:
            row, column = places[0].tolist()
            wrong |= {"row": row, "column": column, "found": f"{found[row, column].item():g}",
                      "right": str(case.product[row, column].item())}
        self.wrong[kind] = wrong

    def guarded(self, step, *arguments):
        """A step that may fail, as CUDA fails: this GPU takes no part then."""
        try:
            if self.device.type != "cuda":
                return step(*arguments)
            with self.torch.cuda.device(self.device):
                return step(*arguments)
        except (RuntimeError, MemoryError) as error:
            self.trouble = first_line(error)
            return None

    def tell(self):
        say(gpu=self.about["index"], products=self.products, kinds=self.kinds,
            wrong=list(self.wrong.values()), trouble=self.trouble, hung=self.is_hung)


def one_round(torch, devices):
    """All products on all devices, at the same time."""
    for kind, name, _ in KINDS:
        torch.backends.cuda.matmul.allow_tf32 = kind == "TF32"
        pending = [one for one in devices if one.is_well() and kind in one.kinds]
        for one in pending:
            one.guarded(one.begin, kind, name)
        pending = [one for one in pending if one.is_well() and one.under_way]
        while pending:
            for one in pending:
                if one.is_well() and one.guarded(one.is_done):
                    one.guarded(one.end, kind)
                elif time.monotonic() - one.began > HANG_LIMIT_S:
                    one.is_hung = one.is_well()
            pending = [one for one in pending if one.is_well() and one.under_way]
            if pending:
                time.sleep(0.0002)


def about_gpu(torch, index):
    """What of a GPU its owner knows it by, as nvidia-smi writes it."""
    known = torch.cuda.get_device_properties(index)
    about = {"index": index, "name": known.name}
    if hasattr(known, "uuid"):
        about["uuid"] = f"GPU-{known.uuid}".replace("GPU-GPU-", "GPU-")
    if hasattr(known, "pci_bus_id"):
        domain, device = getattr(known, "pci_domain_id", 0), getattr(known, "pci_device_id", 0)
        about["bus"] = f"{domain:08X}:{known.pci_bus_id:02X}:{device:02X}.0"
    return about


def find_devices(torch, kind):
    """The devices, and why there are none."""
    if kind == "cpu":
        return [Device(torch, torch.device("cpu"), {"index": 0, "name": "cpu"})], ""
    try:
        torch.cuda.init()
    except Exception as error:   # CUDA's start may raise any
        return [], f"its PyTorch ({torch.__version__}) can use no GPU: {first_line(error)}"
    found = []
    for index in range(torch.cuda.device_count()):
        one = Device(torch, torch.device("cuda", index), {"index": index})
        try:
            one.about = about_gpu(torch, index)
        except RuntimeError as error:
            one.trouble = first_line(error)
        found.append(one)
    return found, "" if found else "CUDA shows no GPU"


def compute(torch, arguments):
    """Why nothing was computed, or nothing."""
    matmul = torch.backends.cuda.matmul
    # Sums that are kept in float16 or bfloat16 hold less than a float32.
    for name in ("allow_fp16_reduced_precision_reduction", "allow_bf16_reduced_precision_reduction",
                 "allow_fp16_accumulation"):
        if hasattr(matmul, name):
            setattr(matmul, name, False)
    devices, trouble = find_devices(torch, arguments.device)
    if trouble:
        return trouble
    say(torch=torch.__version__, gpus=[one.about for one in devices])
    cases, trouble = prepare(torch, SHAPES_OF_CPU if arguments.device == "cpu" else SHAPES)
    if trouble:
        return trouble
    for one in filter(Device.is_well, devices):
        one.guarded(one.receive, cases)
    end = time.monotonic() + arguments.seconds
    while True:
        one_round(torch, devices)
        if time.monotonic() >= end or not any(one.is_well() for one in devices):
            break
    for one in devices:
        one.tell()
    return ""


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--seconds", type=float, default=1.0, help="how long, about")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda",
                        help="cpu: the processor in a GPU's place, with small products, for tests")
    arguments = parser.parse_args()
    # In the order that nvidia-smi has, and not the fastest first.
    os.environ.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
    warnings.simplefilter("ignore")
    try:
        import torch
    except Exception as error:   # what is broken may raise any
        say(trouble=f"it cannot import PyTorch: {first_line(error)}")
        return
    try:
        trouble = compute(torch, arguments)
    except Exception as error:   # whatever it is, it is to be told
        trouble = first_line(error)
    if trouble:
        say(trouble=trouble)
    # A GPU that hangs would keep a process from its end.
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    # The folder that it lies in is not for imports.
    if not getattr(sys.flags, "safe_path", False):
        del sys.path[0]
    main()
