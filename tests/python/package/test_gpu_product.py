#!/usr/bin/env python3
"""What `keel health` has GPUs compute, here computed by the processor: that the products are those
of integers, that a wrong one is found and named, and what `keel health` says then.

    run.py [options] test_gpu_product.py /path/to/keel
"""
import contextlib
import importlib.util
import json
import os
import stat
import subprocess
import sys
import tempfile
import textwrap
import types
import unittest

import torch

HERE = os.path.dirname(os.path.abspath(__file__))
MODULE = os.path.join(HERE, "../../../tools/keel/gpu_product.py")
HANG_LIMIT_S = 300
SOUND = "0, GPU-aa, 00000000:3B:00.0, 0, No, No, Not Active, Not Active, No"
KEEL = ""   # set below

# Runs the module as it is, with a product in which some elements are wrong.
PLANTED = """
    import runpy
    import sys
    import torch
    right = torch.mm
    def mm(one, other):
        found = right(one, other)
        {plant}
        return found
    torch.mm = mm
    sys.argv = sys.argv[1:]
    runpy.run_path(sys.argv[0], run_name="__main__")
"""


def loaded():
    spec = importlib.util.spec_from_file_location("gpu_product", MODULE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


gpu_product = loaded()


class Products(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cases = [(gpu_product.Case(torch, shape), digest)
                     for shape, digest in gpu_product.SHAPES]

    def test_what_is_prepared_has_the_digests_that_are_known(self):
        self.assertEqual([case.digest() for case, _ in self.cases],
                         [digest for _, digest in self.cases])

    def test_the_products_are_those_of_the_integers(self):
        for case, _ in self.cases:
            for kind, left in case.left.items():
                # A double holds these sums exactly: they are far below 2^53.
                found = left.double() @ case.right.double()
                self.assertTrue(torch.equal(found, case.product.double()), (case.shape, kind))
                part = left[:8].long() @ case.right.long()
                self.assertTrue(torch.equal(part, case.product[:8].long()), (case.shape, kind))

    def test_every_partial_sum_is_one_that_a_float32_holds(self):
        for case, _ in self.cases:
            for kind, left in case.left.items():
                most = (left.double().abs() @ case.right.double().abs()).max().item()
                self.assertLess(most, 2 ** 24, (case.shape, kind))
                self.assertGreater(most, 2 ** 12, "wide factors have more bits to get wrong")

    def test_every_kind_holds_factors_and_product(self):
        for case, _ in self.cases:
            for kind, name, bits in gpu_product.KINDS:
                left = case.left[kind]
                for matrix in (left, case.right, case.product):
                    held = matrix.to(getattr(torch, name))
                    self.assertTrue(torch.equal(held.long(), matrix.long()), (case.shape, kind))
                self.assertLessEqual(left.abs().max().item(), 2 ** bits)
                self.assertLessEqual(case.product.abs().max().item(), 2 ** 8)
                self.assertGreater(left.abs().max().item(),
                                   gpu_product.widest(case.shape[1], bits) * 0.9)

    def test_sizes_are_of_several_kinds(self):
        sizes = {size for shape, _ in gpu_product.SHAPES for size in shape}
        self.assertTrue(any(size % 2 for size in sizes), "some are odd")
        self.assertTrue(any(size % 128 == 0 for size in sizes))
        for (_, inner, _), _ in gpu_product.SHAPES:
            self.assertEqual(inner % 3, 0)

    def test_an_element_that_is_wrong_by_one_changes_the_product(self):
        case = self.cases[0][0]
        for row, column in ((0, 0), (5, 95)):
            left = case.left["bfloat16"].clone()
            left[row, column] += 1
            self.assertFalse(torch.equal(left.double() @ case.right.double(),
                                         case.product.double()))

    def test_a_processor_that_prepares_others_is_told_and_no_gpu_blamed(self):
        (shape, digest), *_ = gpu_product.SHAPES
        cases, trouble = gpu_product.prepare(torch, [(shape, digest), (shape, "0" * 16)])
        self.assertEqual(cases, [])
        self.assertIn("this processor has prepared other factors", trouble)


class Slow(gpu_product.Device):
    def is_done(self):
        return False


class Devices(unittest.TestCase):
    """Several, where there is only a processor."""

    def setUp(self):
        self.cases, trouble = gpu_product.prepare(torch, gpu_product.SHAPES[:2])
        self.assertEqual(trouble, "")

    def device(self, index, mm=torch.mm, kind=gpu_product.Device):
        names = {name: getattr(torch, name) for name in (
            "float32", "float16", "bfloat16", "stack")}
        one = kind(types.SimpleNamespace(mm=mm, **names), torch.device("cpu"), {"index": index})
        one.guarded(one.receive, self.cases)
        return one

    def test_the_wrong_one_is_told_from_the_others(self):
        def wrong(left, right):
            found = torch.mm(left, right)
            if found.dtype == torch.float16 and found.shape == (333, 257):
                found[332, 256] = float("nan")
                found[7, 5] += 2
            return found
        devices = [self.device(0), self.device(1, wrong), self.device(2)]
        for _ in range(3):
            gpu_product.one_round(torch, devices)
        self.assertEqual([len(one.wrong) for one in devices], [0, 1, 0])
        self.assertEqual([one.products for one in devices], [24, 24, 24])
        right = self.cases[1].product[7, 5].item()
        self.assertEqual(devices[1].wrong["float16"], {
            "kind": "float16", "times": 3, "elements": 333 * 257, "differing": 2,
            "shape": "333 x 1029 by 1029 x 257", "row": 7, "column": 5, "found": f"{right + 2}",
            "right": f"{right}"})

    def test_one_that_fails_leaves_the_others_alone(self):
        def failing(left, right):
            raise RuntimeError("CUDA error: uncorrectable ECC error encountered\nmore words")
        devices = [self.device(0, failing), self.device(1)]
        gpu_product.one_round(torch, devices)
        gpu_product.one_round(torch, devices)
        self.assertEqual(devices[0].trouble, "CUDA error: uncorrectable ECC error encountered")
        self.assertEqual((devices[1].trouble, devices[1].products), ("", 16))

    def test_a_kind_that_it_does_not_know_is_left_out(self):
        def partial(left, right):
            if left.dtype == torch.bfloat16:
                raise RuntimeError("CUDA error: CUBLAS_STATUS_NOT_SUPPORTED when calling `x`")
            return torch.mm(left, right)
        devices = [self.device(0, partial), self.device(1)]
        gpu_product.one_round(torch, devices)
        gpu_product.one_round(torch, devices)
        self.assertEqual([one.trouble for one in devices], ["", ""])
        self.assertEqual([one.products for one in devices], [12, 16])
        self.assertEqual(devices[0].kinds, ["float32", "TF32", "float16"])

    def test_one_that_hangs_is_not_waited_for(self):
        limit = gpu_product.HANG_LIMIT_S
        gpu_product.HANG_LIMIT_S = 0.05
        self.addCleanup(setattr, gpu_product, "HANG_LIMIT_S", limit)
        devices = [self.device(0, kind=Slow), self.device(1)]
        gpu_product.one_round(torch, devices)
        gpu_product.one_round(torch, devices)
        self.assertEqual([one.is_hung for one in devices], [True, False])
        self.assertEqual(devices[1].products, 16)

    def test_a_comparison_that_is_wrong_is_told_too(self):
        class Wrong:
            """A product whose comparison finds differences where there are none."""

            def __init__(self, found):
                self.found = found

            def __ne__(self, other):
                return torch.ones_like(self.found, dtype=torch.bool)

            def cpu(self):
                return self.found
        one = self.device(0, lambda left, right: Wrong(torch.mm(left, right)))
        gpu_product.one_round(torch, [one])
        self.assertEqual(set(one.wrong), {kind for kind, _, _ in gpu_product.KINDS})
        self.assertEqual(one.wrong["TF32"]["differing"], 0)

    def test_what_a_gpu_has_under_way_is_taken_when_it_is_done(self):
        """With CUDA's part played: a GPU says when it is done, or that it has failed."""
        asked = []

        class Event:
            def record(self, stream):
                asked.append(stream)

            def query(self):
                asked.append("done?")
                if len(asked) > 40:
                    raise RuntimeError("CUDA error: unspecified launch failure")
                return len(asked) % 4 == 0
        one = self.device(7)
        one.device = types.SimpleNamespace(type="cuda")
        one.torch.cuda = types.SimpleNamespace(Event=Event, current_stream=lambda device: "stream",
                                               device=lambda device: contextlib.nullcontext())
        gpu_product.one_round(torch, [one])
        self.assertEqual(asked, ["stream", "done?", "done?", "done?"] * 4)
        self.assertEqual((one.products, one.wrong, one.trouble), (8, {}, ""))
        for _ in range(3):
            gpu_product.one_round(torch, [one])
        self.assertEqual(one.trouble, "CUDA error: unspecified launch failure")

    def test_every_gpu_that_cuda_shows_takes_part(self):
        def properties(index):
            if index == 1:
                raise RuntimeError("CUDA error: uncorrectable ECC error encountered")
            return types.SimpleNamespace(name="NVIDIA H100")
        cuda = types.SimpleNamespace(init=lambda: None, device_count=lambda: 3,
                                     get_device_properties=properties)
        some = types.SimpleNamespace(cuda=cuda, device=torch.device, __version__="2.11")
        devices, trouble = gpu_product.find_devices(some, "cuda")
        self.assertEqual(trouble, "")
        self.assertEqual([str(one.device) for one in devices], ["cuda:0", "cuda:1", "cuda:2"])
        self.assertEqual([one.about for one in devices],
                         [{"index": 0, "name": "NVIDIA H100"}, {"index": 1},
                          {"index": 2, "name": "NVIDIA H100"}])
        self.assertEqual([one.is_well() for one in devices], [True, False, True])
        cuda.device_count = lambda: 0
        self.assertEqual(gpu_product.find_devices(some, "cuda"), ([], "CUDA shows no GPU"))

    def test_a_gpu_is_named_as_nvidia_smi_names_it(self):
        known = types.SimpleNamespace(name="NVIDIA H100", uuid="aa-bb", pci_domain_id=0,
                                      pci_bus_id=0x5e, pci_device_id=0)
        cuda = types.SimpleNamespace(get_device_properties=lambda index: known)
        self.assertEqual(gpu_product.about_gpu(types.SimpleNamespace(cuda=cuda), 3),
                         {"index": 3, "name": "NVIDIA H100", "uuid": "GPU-aa-bb",
                          "bus": "00000000:5E:00.0"})


class Started(unittest.TestCase):
    """The whole of it, as `keel health` starts it: PYTHON -B -u gpu_product.py --seconds=..."""

    def setUp(self):
        temporary = tempfile.TemporaryDirectory(prefix="keel-gpu-product-")
        self.addCleanup(temporary.cleanup)
        self.folder = temporary.name

    def executable(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\n" + text)
        os.chmod(path, stat.S_IRWXU)
        return path

    def planted(self, plant):
        """A Python that runs what it is given with a wrong torch.mm, on the processor."""
        path = os.path.join(self.folder, "planted.py")
        with open(path, "w", encoding="utf-8") as file:
            file.write(textwrap.dedent(PLANTED).format(plant=plant))
        return self.executable("python", f'shift 2; exec {sys.executable} -B {path} "$@" '
                                         "--device cpu\n")

    def health(self, python, code):
        smi = self.executable("nvidia-smi", f"echo '{SOUND}'\n")
        done = subprocess.run(
            [KEEL, "health", "--seconds=0", "--json", "--kernel-log=", f"--nvidia-smi={smi}",
             f"--python={python}", "--python-limit=5min"], capture_output=True, text=True,
            timeout=HANG_LIMIT_S, check=False)
        told = json.loads(done.stdout)
        found = [one for one in told["findings"] if one["check"] == "gpu product"]
        # Its memory may have faults of its own, as of any machine.
        self.assertIn(done.returncode, (code, 1), told)
        return found

    def test_a_sound_one_is_fit(self):
        found = self.health(self.planted("pass"), 0)
        self.assertEqual([one["verdict"] for one in found], ["fit"], found)
        self.assertIn("1 GPU computed what they should, 16 matrix products in all",
                      found[0]["found"])

    def test_one_that_is_wrong_is_unfit_and_named(self):
        found = self.health(self.planted(
            "if found.dtype == torch.bfloat16 and found.shape == (64, 64): found[4, 17] += 1"), 1)
        self.assertEqual([one["verdict"] for one in found], ["unfit"], found)
        self.assertRegex(found[0]["found"],
                         r"^GPU 0 \(cpu\) computed another product than it should, with bfloat16: "
                         r"1 of 4096 elements differ, the first at row 4, column 17: -?\d+, not "
                         r"-?\d+ \(64 x 96 by 96 x 64; 1 of 16 products were wrong\)$")
        self.assertIn("have this GPU replaced", found[0]["cure"])

    def test_an_error_of_hardware_is_unfit_and_another_one_is_not(self):
        for words, verdict in (("uncorrectable ECC error encountered", "unfit"),
                               ("out of memory", "not known")):
            found = self.health(self.planted(f"raise RuntimeError('CUDA error: {words}')"), 0)
            self.assertEqual([one["verdict"] for one in found], [verdict], found)
            self.assertIn(f"GPU 0 (cpu) could not compute a matrix product: CUDA error: {words}",
                          found[0]["found"])

    def test_a_python_without_pytorch_or_without_cuda_is_no_fault(self):
        without = self.executable("python", f'shift 2; exec {sys.executable} -B -I -S "$@"\n')
        found = self.health(without, 0)
        self.assertEqual([one["verdict"] for one in found], ["not known"], found)
        self.assertIn("it cannot import PyTorch: No module named 'torch'", found[0]["found"])
        self.assertIn("--python", found[0]["cure"])
        if not torch.cuda.is_available():
            found = self.health(sys.executable, 0)
            self.assertEqual([one["verdict"] for one in found], ["not known"], found)
            self.assertIn(f"its PyTorch ({torch.__version__}) can use no GPU", found[0]["found"])


if __name__ == "__main__":
    KEEL = sys.argv.pop()
    unittest.main()
