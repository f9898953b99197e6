"""Sends the batches of a worker process through a socket, from the memory in which they lie.

Promises   what arrives is equal to what was sent, whatever pickle can carry. A tensor keeps its
           bits, dtype, shape and strides; its memory is writable and its own. An end that waits
           for bytes notices within about a second that the other process has ended.
Does not   keep requires_grad, or that two tensors share memory; limit how much is sent.
Threads    one at a time for each end.
Errors     LoadError from pack(), naming the type that pickle cannot carry; EOFError and OSError
           once the other end is gone.
"""
import array
import collections
import ctypes
import io
import pickle
import socket
import struct
import sys

import torch

_GLANCE_S = 1
_VIEWS_MAX = 512  # the kernel takes at most 1024 pieces in one call
_PYBUF_WRITE = 0x200

_memory_view = ctypes.pythonapi.PyMemoryView_FromMemory
_memory_view.argtypes = (ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int)
_memory_view.restype = ctypes.py_object


class LoadError(RuntimeError):
    """A batch cannot be loaded. The text names its samples and says what to do."""


def _memory(address, size):
    """`size` bytes at `address`, writable; whoever owns them must outlive the view."""
    return _memory_view(address, size, _PYBUF_WRITE) if size else memoryview(bytearray())


def _room(size):
    """Writable memory. Python clears a bytearray, which takes a while and stops the script."""
    numpy = sys.modules.get("numpy")
    return numpy.empty(size, "uint8") if numpy is not None else bytearray(size)


def _span(tensor):
    """How many elements lie from the first to the last one in memory, gaps included."""
    if tensor.numel() == 0:
        return 0
    return 1 + sum((size - 1) * step for size, step in zip(tensor.shape, tensor.stride()))


class _Packer(pickle.Pickler):
    """Leaves out the bytes of tensors and of other large buffers: `buffers` are those, in order,
    and `tensors` has, by the buffer's id(), the tensors that own some of them."""

    def __init__(self, stream):
        buffers = []
        super().__init__(stream, protocol=5, buffer_callback=buffers.append)
        self.buffers, self.tensors = buffers, {}
        self.last = None  # the object that was looked at last: the one at fault, if it fails

    def reducer_override(self, value):
        self.last = value
        # Other kinds of tensors, and those with attributes of their own, know how to pickle.
        if (type(value) not in (torch.Tensor, torch.nn.Parameter) or value.device.type != "cpu"
                or value.layout != torch.strided or value.is_quantized or value.is_nested
                or value.__dict__):
            return NotImplemented
        tensor = value.detach().resolve_conj().resolve_neg()
        shape, strides = tuple(tensor.shape), tensor.stride()
        # Kernels may give other bits at other strides, so these must survive. That is simplest with
        # the gaps sent too. A thin slice of a large tensor is packed instead: it is mostly gap.
        repeats = any(step == 0 and size > 1 for size, step in zip(shape, strides))
        whole = repeats or _span(tensor) <= 2 * tensor.numel()
        if not whole:
            tensor = tensor.contiguous()
        size = _span(tensor) * tensor.element_size()
        buffer = pickle.PickleBuffer(_memory(tensor.data_ptr(), size))
        self.tensors[id(buffer)] = (buffer, tensor)
        return _unpack_tensor, (buffer, tensor.dtype, shape, strides, whole)


def _unpack_tensor(storage, dtype, shape, strides, whole):
    tensor = torch.empty(0, dtype=dtype, device="cpu")
    if whole:
        return tensor.set_(storage, 0, shape, strides)
    packed = tensor.set_(storage, 0, shape)
    return torch.empty_strided(shape, strides, dtype=dtype, device="cpu").copy_(packed)


def pack(value):
    """(pieces to send, what must live until they are sent)."""
    stream = io.BytesIO()
    packer = _Packer(stream)
    try:
        packer.dump(value)
    except Exception as error:
        kind = type(packer.last)
        raise LoadError(f"an object of type {kind.__module__}.{kind.__qualname__} in the batch "
                        f"cannot be sent from the worker to the script ({type(error).__name__}: "
                        f"{error}); return plain data, or use num_workers=0") from error
    body = stream.getbuffer()
    views = [buffer.raw() for buffer in packer.buffers]
    # A tensor's size is told as its complement, since it is received into other memory.
    sizes = array.array("q", [~view.nbytes if id(buffer) in packer.tensors else view.nbytes
                              for buffer, view in zip(packer.buffers, views)])
    head = struct.pack("qq", len(sizes), body.nbytes) + sizes.tobytes()
    return [memoryview(head), body, *views], packer


def unpack(body, buffers):
    return pickle.loads(body, buffers=buffers)


class Channel:
    """One end of a socket. `look` is called now and then while the other end is silent, and raises
    EOFError once its process has ended: other processes may hold copies of the socket."""

    def __init__(self, sock, look=None):
        self._sock, self._look = sock, look
        if look:
            limit = struct.pack("ll", _GLANCE_S, 0)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, limit)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)

    def send(self, views):
        # A script may have set SIGPIPE to its default, which would end it.
        self._move(lambda some: self._sock.sendmsg(some, (), socket.MSG_NOSIGNAL), views)

    def receive(self):
        """What unpack() takes. One call of the kernel waits for all bytes of a batch: each return
        from it may have to wait until the script's own thread lets Python go."""
        count, size = struct.unpack("qq", self._fill(bytearray(16)))
        sizes, body = bytearray(8 * count), bytearray(size)
        self._fill(sizes, body)
        buffers, views = [], []
        for (size,) in struct.iter_unpack("q", sizes):
            if size < 0:
                buffers.append(torch.UntypedStorage(~size, device="cpu"))
                views.append(_memory(buffers[-1].data_ptr(), ~size))
            else:
                buffers.append(_room(size))
                views.append(buffers[-1])
        self._fill(*views)
        return body, buffers

    def _fill(self, *buffers):
        self._move(self._read, map(memoryview, buffers))
        return buffers[0] if buffers else None

    def _read(self, views):
        count = self._sock.recvmsg_into(views, 0, socket.MSG_WAITALL)[0]
        if count == 0:
            raise EOFError("the other process has closed its end")
        return count

    def _move(self, call, views):
        left = collections.deque(view for view in views if view.nbytes)
        while left:
            try:
                count = call([left[i] for i in range(min(len(left), _VIEWS_MAX))])
            except BlockingIOError:
                self._look()
                continue
            while count:
                first = left.popleft()
                if count < first.nbytes:
                    left.appendleft(first[count:])
                count -= min(count, first.nbytes)
