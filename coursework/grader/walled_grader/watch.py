"""What a question forbids refuses to run, whatever name it is called by. Runs inside the jail.

For such a question the notebook is loaded in a process of its own, in which this is so before the
first statement. Its code never meets what it could keep for later, and no other process of the
student's is alive. Three things refuse:

- the kernels, below all names: TorchScript, `vmap`, `torch.ops` and modules end there, on whatever
  thread;
- functions of PyTorch that compute the same in Python, seen as frames by a profile function;
- what would end this watch: another profile function, code that runs unseen, a look into memory.
  Inside the profile function Python sees nothing: no signal and no garbage collection comes there.

Python code can write memory without being refused; `shortcuts.WAYS` names what a person looks at.

While the notebook is loaded, a kernel raises an error, so that a comparison with the library costs
no more than its statement. Everything else tells of itself and ends its process.

What refuses keeps what it needs as defaults, which `object.__setattr__` gives away when they are
changed, and it is hidden from the garbage collector, which could find it.
"""

from __future__ import annotations

import contextvars
import ctypes
import functools
import gc
import os
import platform
import re
import signal
import struct
import sys
import threading
import types
from collections.abc import Callable, Iterable, Iterator
from typing import Any

#: execve and execveat, by machine, and mmap.
PROGRAMS = {"x86_64": (59, 322), "aarch64": (221, 281)}
MAP = {"x86_64": 9, "aarch64": 222}
MAP_SHARED_ANONYMOUS, FLAGS_AT = 0x21, 40
PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 22, 2

#: Where tensors in the jail may lead: all that is theirs, but nothing of other processors.
KEYS = (
    *("CPU", "MkldnnCPU", "QuantizedCPU", "SparseCPU", "SparseCsrCPU", "NestedTensorCPU"),
    *("CompositeImplicitAutograd", "CompositeImplicitAutogradNestedTensor"),
    *("CompositeExplicitAutograd", "CompositeExplicitAutogradNonFunctional"),
    *("Autograd", "AutogradCPU", "AutogradNestedTensor", "ADInplaceOrView", "AutocastCPU"),
    *("FuncTorchBatched", "BatchedNestedTensor", "NestedTensor", "BackendSelect"),
)
#: These end in a kernel, so that their frames mean nothing: a module may hold an answer's weights.
ENDS_IN_KERNELS = ("nn/functional.py", "nn/modules/")
#: … but for those that compute in Python.
IN_PYTHON = frozenset(
    {
        *("multi_head_attention_forward", "local_response_norm", "normalize"),
        "CrossMapLRN2d.forward",
    }
)

#: Code that no profile function sees, and ways into the memory of Python and of PyTorch.
UNSEEN = frozenset(
    {
        *("sys.settrace", "sys.addaudithook", "sys.monitoring.register_callback"),
        *("cpython.PyInterpreterState_New", "code.__new__"),
        *("ctypes.dlopen", "ctypes.dlsym", "ctypes.cdata", "ctypes.call_function"),
    }
)
#: Of backward passes each inside of the one before; after 60, autograd goes on in a new thread, in
#: which Python sees no frame.
MOST_BACKWARDS = 30
NEW_THREAD = frozenset({"_thread.start_new_thread", "_thread.start_joinable_thread"})
#: Files of texts that Python's library runs. A function defined in one may be a copy of any.
OF_TEXTS = ("<timeit-src", "<console", "<input", "<doctest")


def refuse_calls() -> None:
    """Let this process and all that it starts run no other program, since a new Python knows no
    watch, and share no new memory, which nothing counts while no process has it in its tables.
    """
    load, equal, give, both = 0x20, 0x15, 0x06, 0x54
    allow, refuse = 0x7FFF0000, 0x00050001
    lines = [(load, 0, 0, 0)]
    for number in PROGRAMS[platform.machine()]:
        lines += [(equal, 0, 1, number), (give, 0, 0, refuse)]
    lines += [(equal, 0, 4, MAP[platform.machine()]), (load, 0, 0, FLAGS_AT)]
    lines += [(both, 0, 0, MAP_SHARED_ANONYMOUS), (equal, 0, 1, MAP_SHARED_ANONYMOUS)]
    lines += [(give, 0, 0, refuse)]
    program = b"".join(struct.pack("=HBBI", *line) for line in [*lines, (give, 0, 0, allow)])
    held = ctypes.create_string_buffer(program)
    pointer = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(held))
    if ctypes.CDLL(None).prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, pointer, 0, 0):
        raise RuntimeError("the kernel takes no filter of system calls")


def plain(name: str) -> str:
    """A name without case and underscores: layer_norm is LayerNorm."""
    return name.replace("_", "").lower()


def operators(names: Iterable[str]) -> Iterator[str]:
    """PyTorch's operators in whose names one of these is, such as aten::native_layer_norm."""
    import torch

    parts = tuple(map(plain, names))
    for operator in torch._C._dispatch_get_all_op_names():
        if any(part in plain(operator) for part in parts):
            yield operator


def install(names: Iterable[str], pipe: int) -> None:
    """Refuse these functions in this process, and in those that it forks.

    Args:
        names: parts of the functions' names, in any case, with underscores or without.
        pipe: where to tell what was refused.
    """
    import torch

    importer: Any = sys.modules["_frozen_importlib_external"]

    def refuse(
        what: str,
        pipe: int = pipe,
        write: Callable = os.write,
        leave: Callable = os._exit,
        end: tuple = ('{"used": "', '"}\n'),
    ) -> None:
        write(pipe, what.join(end).encode())
        leave(1)

    def raising(fixed: tuple, *_inputs: Any, **_settings: Any) -> None:
        what, refuse, process, getpid, error = fixed
        if getpid() != process:
            refuse(what)
        raise error(f"{what} is not to be called here: write it yourself")

    fixed = refuse, os.getpid(), os.getpid, RuntimeError
    # They run the operators of a graph without asking for their kernels.
    del torch._C._jit_to_static_module, torch._C._fuse_to_static_module
    kernels = [
        (operator, functools.partial(raising, (operator.split("::")[1].partition(".")[0], *fixed)))
        for operator in operators(names)
    ]
    _put(kernels)

    search = re.compile("|".join(map(plain, names))).search
    home = os.path.dirname(torch.__file__) + os.sep

    def see(
        frame: types.FrameType,
        event: str,
        _argument: Any,
        forbidden: Callable = search,
        folder: str = home,
        start: int = len(home),
        plain: Callable = plain,
        ends_in_kernels: tuple = ENDS_IN_KERNELS,
        in_python: frozenset = IN_PYTHON,
        refuse: Callable = refuse,
        starts: Callable = str.startswith,  # a file's name may be of a class with its own
        scripted: types.CodeType = torch.jit.frontend.get_jit_def.__code__,
        backward: types.CodeType = torch.autograd.graph._engine_run_backward.__code__,
        most: int = MOST_BACKWARDS,
        of_texts: tuple = OF_TEXTS,
        not_defined: tuple = ("inner", ">"),  # what `timeit` calls itself, and `<lambda>`
        ends: Callable = str.endswith,
        held: Callable = dict.get,
        tools: tuple = (type, types.FunctionType, types.MethodType),
    ) -> None:
        if event != "call":
            return
        code, (type, function, method) = frame.f_code, tools
        if code is scripted:
            # What TorchScript compiles, it runs without a frame.
            compiled = frame.f_locals["fn"]
            compiled = compiled.__func__ if type(compiled) is method else compiled
            # Its source is that of the innermost function it wraps, as `inspect` reads it.
            # PyTorch itself, while it is imported, compiles what it wraps.
            while (
                type(compiled) is function
                and not starts(compiled.__code__.co_filename, folder)
                and (inner := held(compiled.__dict__, "__wrapped__"))
            ):
                compiled = inner
            code = compiled.__code__ if type(compiled) is function else code
            if "backward" in code.co_names or "grad" in code.co_names:
                refuse("a backward pass in TorchScript")
        elif code is backward:
            inside, caller = 0, frame.f_back
            while caller is not None:
                inside, caller = inside + (caller.f_code is backward), caller.f_back
            if inside > most:
                refuse("a backward pass inside of many others")
        file = code.co_filename
        if starts(file, of_texts) and not ends(code.co_qualname, not_defined):
            refuse("a function defined in a text")
        # The body of a class, at an import, is no call.
        if not starts(file, folder) or not code.co_flags & 1:
            return
        name = code.co_qualname
        if starts(file, ends_in_kernels, start) and name not in in_python:
            return
        if name.endswith(".__init__") or starts(name, "_register"):
            return
        if forbidden(plain(name)):
            refuse(name)

    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    gc.freeze()
    gc.disable()  # the loader collects between statements
    sys.setprofile(see)
    begins = _watch_threads(see)

    def look(
        event: str,
        arguments: tuple,
        unseen: frozenset = UNSEEN,
        new_thread: frozenset = NEW_THREAD,
        places: tuple = ("<", *sys.path),
        own: frozenset = frozenset(map(id, (refuse, raising, see, plain))),
        begins: tuple = (begins.__code__, *begins.__defaults__),
        tools: tuple = (
            *(sys.getprofile, sys._getframe, id, type, types.FunctionType),
            *(types.CodeType, tuple, bool),
        ),
        of_text: tuple = (str.startswith, str.find),
        imports: types.CodeType = importer._compile_bytecode.__code__,
        refuse: Callable = refuse,
    ) -> None:
        getprofile, getframe, id, type, function, code, tuple, bool = tools
        starts, find = of_text
        if event in unseen:
            refuse(event)
        elif event in ("marshal.loads", "marshal.load"):
            # Code with any file's name; so come imports.
            frame = getframe(1)
            if frame.f_code is not imports or not starts(frame.f_locals["bytecode_path"], places):
                refuse(event)
        elif event == "exec":
            # Of a file that the notebook wrote, or of one by another path.
            one = arguments[0]
            file = one.co_filename if type(one) is code else ""
            if (
                not starts(file, places)
                or find(file, "/..") >= 0
                or find(file, "/./") >= 0
                or find(file, "//") >= 0
            ):
                refuse(event)
        elif event == "import":
            # They call functions where no profile function is, and change what runs.
            if starts(arguments[0], ("_test", "_cffi_backend")):
                refuse("a module that calls what it likes")
            if arguments[1] is not None and not starts(arguments[1], places):
                refuse("a module that was written")
        elif event == "sys.setprofile":
            if getprofile() is not None:
                refuse(event)
        elif event == "object.__setattr__":
            one = arguments[0]
            if id(one) in own or (type(one) is function and one.__code__ is begins[0]):
                refuse("a change of the watch")
        elif event in new_thread:
            one = arguments[0]
            if (
                type(one) is not function
                or one.__code__ is not begins[0]
                or one.__defaults__[0] is not begins[1]
                or one.__defaults__[1] is not begins[2]
                or type(arguments[1]) not in (tuple, bool)
                or arguments[1] not in ((), True, False)
            ):
                refuse(event)

    # Python then sees frames inside of it, too: what a student's object does when it is asked.
    look.__cantrace__ = True  # type: ignore[attr-defined]
    # What would come into the watch does nothing.
    gc.enable = sys.modules["_thread"].interrupt_main = lambda *_: None
    untrack = ctypes.pythonapi.PyObject_GC_UnTrack
    sys.addaudithook(look)
    hooks = [one for one in gc.get_referrers(look) if type(one) is list]
    for hidden in (*hooks, look, *(kernel for _, kernel in kernels)):
        untrack(ctypes.py_object(hidden))


def _put(kernels: Iterable[tuple[str, Callable]]) -> None:
    """Put these in the place of all kernels that the operators have."""
    import torch

    libraries: dict[str, Any] = {}
    for operator, kernel in kernels:
        space = operator.partition("::")[0]
        if space not in libraries:
            libraries[space] = torch._C._dispatch_library("IMPL", space, "")
            # No name holds it, so that nothing can find it and let go of it.
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(libraries[space]))
        for key in KEYS:
            if key == "CPU" or torch._C._dispatch_has_kernel_for_dispatch_key(operator, key):
                libraries[space].impl(operator, key, kernel)


def _watch_threads(see: Callable) -> types.FunctionType:
    """Have every thread begin with the watch; returns a function such as it begins with."""
    import _thread

    def begins(function: Callable, arguments: tuple, named: dict) -> types.FunctionType:
        def begin(
            setprofile: Callable = sys.setprofile,
            see: Callable = see,
            keep: Callable = ctypes.pythonapi.Py_IncRef,
            held: type = ctypes.py_object,
            last: tuple = (contextvars.copy_context, sys.get_asyncgen_hooks),
            /,
        ) -> None:
            setprofile(see)
            try:
                function(*arguments, **named)
            finally:
                # What ends with the thread ends where Python sees no frame: it never ends.
                keep(held((function, arguments, named, *(one() for one in last))))

        return begin

    plainly, joinably = _thread.start_new_thread, getattr(_thread, "start_joinable_thread", None)

    def start(function: Callable, arguments: tuple = (), named: dict | None = None) -> int:
        return plainly(begins(function, arguments, named or {}), ())

    def start_joinable(function: Callable, **settings: Any) -> Any:
        return joinably(begins(function, (), {}), **settings)

    for module in (_thread, threading):
        for name in set(dir(module)) & {"start_new_thread", "start_new", "_start_new_thread"}:
            setattr(module, name, start)
        for name in set(dir(module)) & {"start_joinable_thread", "_start_joinable_thread"}:
            setattr(module, name, start_joinable)
    return begins(print, (), {})
