"""Tests of python/evenkeel/_wire.py: what a worker process sends arrives as it was."""
import collections
import contextlib
import dataclasses
import threading
import unittest
import unittest.mock

from loader_parts import LoaderTest, LoadError, Values, _loader, numpy

import torch

Pair = collections.namedtuple("Pair", "left right")


@dataclasses.dataclass
class Sample:
    name: str
    image: torch.Tensor
    more: dict


class FailsToArrive:
    def __reduce__(self):
        return int, ("no number",)


class Wire(LoaderTest):
    def arrives(self, value):
        """What comes from a worker for it; checks that it is equal."""
        loader = self.closing(Values(lambda index: value).loader())
        loader.want(1, [0], 1)
        self.wait_until(loader, 1)
        came = loader.take(1)
        self.same(came, value)
        loader.close()
        return came

    def test_every_dtype(self):
        dtypes = {getattr(torch, name) for name in dir(torch)
                  if isinstance(getattr(torch, name), torch.dtype)}
        values = []
        for dtype in sorted(dtypes, key=str):
            with contextlib.suppress(RuntimeError, TypeError):  # some exist by name only
                storage = torch.UntypedStorage(16 * torch.empty(0, dtype=dtype).element_size())
                storage.copy_(torch.UntypedStorage([(3 * i + 1) % 251 for i in range(len(storage))])
                              if dtype != torch.bool else torch.UntypedStorage([0, 1] * 8))
                values.append(torch.empty(0, dtype=dtype).set_(storage, 0, (2, 8), (8, 1)))
        plain = {value.dtype for value in values if not value.is_quantized}
        self.assertLessEqual({torch.bfloat16, torch.float16, torch.float32, torch.float64,
                              torch.complex64, torch.complex128, torch.bool, torch.uint8,
                              torch.int8, torch.int16, torch.int32, torch.int64, torch.uint16,
                              torch.uint64, torch.float8_e4m3fn}, plain)
        self.arrives([value for value in values if not value.is_quantized])
        self.arrives(torch.quantize_per_tensor(torch.rand(4), 0.1, 2, torch.quint8))

    def test_every_layout_keeps_its_strides(self):
        large = torch.randn(64, 64)
        self.arrives({
            "none": torch.empty(0), "empty": torch.empty(3, 0, 2), "number": torch.tensor(2.5),
            "slice": large[:, :-1], "other slice": large[:, 1:], "thin": large[:, 3],
            "thin block": large[::9, ::9], "turned": large.t(), "repeated": large[:1].expand(5, 64),
            "thin and repeated": large[:, :1].expand(64, 3), "windows": large[0].unfold(0, 8, 2),
            "channels last": torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last),
            "conjugate": torch.randn(3, dtype=torch.complex64).conj(), "one": large[2:3, 2:3],
            "sparse": torch.eye(3).to_sparse(), "parameter": torch.nn.Parameter(torch.rand(2)).data,
            "large": torch.randn(3, 1000, 1000)})

    def test_a_lazy_negative_has_its_values(self):
        value = torch.randn(3, dtype=torch.complex64).conj().imag
        self.assertTrue(value.is_neg())
        loader = self.closing(Values(lambda index: value).loader())
        loader.want(1, [0], 1)
        self.wait_until(loader, 1)
        self.assertEqual(loader.take(1).tolist(), value.tolist())

    def test_a_tensor_that_came_is_writable_plain_and_owns_its_memory(self):
        wide = torch.randn(100, 100)
        parameter = torch.nn.Parameter(torch.ones(3))
        kept = wide[0].clone()
        kept.note = "an attribute"
        values = [wide, parameter * 2, parameter, torch.zeros(0), wide[:, 7], kept, torch.ones(())]
        values.append(values[0])
        came = self.arrives(values)
        for tensor in came:
            self.assertIs(type(tensor), torch.Tensor)
            self.assertFalse(tensor.requires_grad)
            tensor.add_(1).resize_(7, 9).fill_(3)
        self.assertEqual(came[5].note, "an attribute")
        self.assertIs(came[0], came[-1])
        self.assertIsNot(came[0].untyped_storage(), came[5].untyped_storage())

    def test_all_that_a_collate_fn_may_return(self):
        values = [
            {"a": 1, "b": [torch.rand(2), "text", b"bytes" * 100000, None, 1.5, 2**70]},
            Pair(torch.rand(2), (1, {2: torch.rand(1)})),
            Sample("x", torch.rand(2, 2), {"y": [torch.rand(1)]}), "", (), 3,
            [torch.rand(size) for size in range(40)], [torch.rand(1) for _ in range(3000)],
            bytearray(b"abc"), collections.OrderedDict(z=torch.rand(1)), {1, 2}, range(4)]
        for value in values:
            with self.subTest(value=str(value)[:60]):
                self.arrives(value)

    @unittest.skipIf(numpy is None, "needs numpy")
    def test_numpy(self):
        came = self.arrives({
            "plain": numpy.arange(1e5), "empty": numpy.zeros((0, 2)), "text": numpy.array(["a"]),
            "turned": numpy.arange(6).reshape(2, 3).T, "number": numpy.float32(2.5)})
        came["plain"] += 1
        unsteady = numpy.arange(12).reshape(3, 4)[:, ::2]
        loader = self.closing(Values(lambda index: [unsteady, torch.rand(2)]).loader())
        loader.want(1, [0], 1)
        self.assertEqual(loader.take(1)[0].tolist(), unsteady.tolist())

    def test_a_ragged_collate_fn(self):
        def pad(samples):
            return torch.nn.utils.rnn.pad_sequence(samples), [len(one) for one in samples]

        dataset = [torch.arange(size) for size in range(1, 50)]
        loaders = [self.closing(_loader.Loader(dataset, pad, count)) for count in (0, 2)]
        for loader in loaders:
            loader.want(1, [3, 40, 0], 1)
        self.wait_until(loaders[1], 1)
        self.same(loaders[0].take(1), loaders[1].take(1))

    def test_what_pickle_cannot_carry_is_named(self):
        bad = {1: lambda: (x for x in ()), 2: threading.Lock, 3: lambda: (lambda: 0),
               4: lambda: Values(threading.Lock()), 5: FailsToArrive}
        names = {1: "builtins.generator", 2: "_thread.lock", 3: "builtins.function",
                 4: "_thread.lock", 5: "no number"}
        loader = self.closing(Values(lambda index: [torch.rand(2), bad[index]()] if index else 9)
                              .loader())
        for index, name in names.items():
            loader.want(index, [index], 1)
            self.wait_until(loader, index)
            self.assertRaisesRegex(LoadError, rf"(?s)batch {index} \(samples \[{index}\]\).*{name}",
                                   loader.take, index)
        loader.want(6, [0], 1)
        self.wait_until(loader, 6)
        self.assertEqual(loader.take(6), 9)

    def test_no_memory_for_what_arrives_fails_the_batch_and_ends_its_worker(self):
        said = self.hearing()
        loader = self.closing(Values(lambda index: torch.ones(2)).loader())
        with unittest.mock.patch("torch.UntypedStorage", side_effect=MemoryError("no room")):
            loader.want(1, [5], 1)
            self.wait_until(loader, 1)
        self.assertRaisesRegex(LoadError, r"ended, after no room, while .* \[5\]", loader.take, 1)
        loader.want(2, [5], 1)
        self.assertEqual(loader.take(2).tolist(), [1, 1])
        self.assertIn("none is left", said.getvalue())


if __name__ == "__main__":
    unittest.main(warnings="ignore")
