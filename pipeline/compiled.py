"""How a kernel is compiled when Python calls it, and how when another kernel does; see `pipeline.machine_code`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, partial
from typing import Any

from numba.core import compiler, typing
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import CPUDispatcher
from numba.core.types import Array, Integer, int64
from numba.core.types.containers import BaseTuple
from numba.core.types.misc import unliteral

from pipeline.lowering import Lending
from pipeline.machine_code import ForPython, KeptCode, Linked, MachineCode


class _CalledByPython(Lending):
    """Numba's compiler, into machine code."""

    def compile_extra(self, func: Any) -> Any:
        """Compile a function."""
        self.state.targetctx.get_python_api = partial(ForPython, self.state.targetctx)
        codegen = self.state.targetctx.codegen()
        self.state.library = MachineCode(codegen, func.__qualname__)
        self.state.library.enable_object_caching()
        made = super().compile_extra(func)
        # What it is linked with makes exceptions from constants of its own.
        for one in made._find_referenced_environments():
            codegen.set_env(one.env_name, one)
        return made


class _CalledByKernels(Lending):
    """Numba's compiler, into code that kernels are linked with."""

    def compile_extra(self, func: Any) -> Any:
        """Compile a function."""
        self.state.library = Linked(self.state.targetctx.codegen(), func.__qualname__)
        return super().compile_extra(func)


class Compiled(CPUDispatcher):
    """A function that is compiled for the types of its arguments when it is first called with them.

    Python calls machine code, which is kept on disk; a kernel that calls it is linked with it.

    Attributes
    ----------
    is_kernel
        Whether the core calls it from Python; else only kernels do, and tests.
    """

    def __init__(self, py_func: Any, options: dict[str, Any], *, is_kernel: bool, writes: Sequence[str] = ()) -> None:
        super().__init__(py_func, targetoptions=options, pipeline_class=_CalledByPython)
        self.is_kernel = is_kernel
        names = py_func.__code__.co_varnames[: py_func.__code__.co_argcount]
        if unknown := set(writes) - set(names):
            raise ValueError(f"{py_func.__qualname__}: expected arguments that it writes to, found {sorted(unknown)}")
        self._written = frozenset(names.index(name) for name in writes)
        self._passed: set[tuple[Any, ...]] = set()
        self._linked: dict[tuple[Any, ...], Any] = {}
        del self.__dict__["_cache"]  # Numba's, which would ask the disk for each kernel while modules are imported

    @cached_property
    def _cache(self) -> KeptCode:
        return KeptCode(self.py_func)

    def compile(self, sig: Any) -> Any:
        """The entry of machine code for types of arguments, loaded or compiled.

        That of a kernel is for columns that are read only, but those that it writes to. Others can be passed to it as
        well: so there is one for both.
        """
        as_given, given = self._written if self.is_kernel else range(len(sig)), tuple(sig)
        lent = tuple(one if at in as_given else _read_only(one) for at, one in enumerate(given))
        with global_compiler_lock:
            entry = super().compile(lent)
            if lent != given and given not in self._passed:
                # Numba looks here before it asks for code. What is here twice, as when two threads call a kernel first,
                # it holds to be ambiguous, and asks at every call.
                self._passed.add(given)
                self._insert([one._code for one in given], entry)
        return entry

    def processors(self) -> list[Any]:
        """The processors for which machine code is on disk, once for each signature."""
        return self._cache.processors()

    def get_call_template(self, args: Any, kws: Any) -> tuple[Any, ...]:
        """The types that it takes and returns, for the compilation of a kernel that calls it."""
        signature, folded = self._compiler.fold_argument_types(args, kws)
        wanted = tuple(_widened(one) for one in folded)
        if wanted not in self._linked:
            self._linked[wanted] = self._compile_for_kernels(wanted)
        name = self.py_func.__name__
        template = typing.make_concrete_template(name, key=name, signatures=[self._linked[wanted].signature])
        return template, signature, folded, {}

    def get_overload(self, sig: Any) -> Any:
        """The key under which Numba finds the code to link a kernel with; see `get_call_template`."""
        return self._linked[tuple(sig)].fndesc

    def _compile_for_kernels(self, args: tuple[Any, ...]) -> Any:
        flags = compiler.Flags()
        self.targetdescr.options.parse_as_flags(flags, self.targetoptions)
        flags.no_compile = flags.no_cpython_wrapper = flags.no_cfunc_wrapper = True
        made = compiler.compile_extra(
            self.typingctx, self.targetctx, self.py_func, args, None, flags, {}, pipeline_class=_CalledByKernels
        )
        self.targetctx.insert_user_function(made.fndesc, made.fndesc, made.library.closure())
        return made


def _read_only(kind: Any) -> Any:
    """The type of an argument whose columns, in records too, are read only."""
    if isinstance(kind, Array):
        return kind.copy(readonly=True)
    if isinstance(kind, BaseTuple):
        return BaseTuple.from_types([_read_only(one) for one in kind.types], getattr(kind, "instance_class", None))
    return kind


def _widened(kind: Any) -> Any:
    """The type for which a function that kernels call is compiled: one for all integers, never that of one value."""
    general = unliteral(kind)
    return int64 if isinstance(general, Integer) else general
