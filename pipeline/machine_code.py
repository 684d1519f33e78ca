"""Machine code of kernels: how it is made, and what is kept on disk.

Numba optimizes a compiled function together with all that it calls, and makes machine code of each: a loop five calls
deep is optimized six times. Here what only kernels call (`Linked`) is optimized with the kernels that call it, and only
what Python calls (`MachineCode`) gets machine code of its own. On disk Numba keeps bitcode beside machine code, so that
others can be linked with it. Nothing is linked with what Python calls, so its bitcode is left out, and no process
has to parse it.
"""

from __future__ import annotations

import hashlib
from functools import cache
from types import CodeType, FunctionType
from typing import Any

from llvmlite import binding as llvm
from numba.core import compiler
from numba.core.caching import CompileResultCacheImpl, FunctionCache, IndexDataCacheFile
from numba.core.codegen import JITCodeLibrary
from numba.core.environment import Environment
from numba.core.pythonapi import PythonAPI
from numba.core.runtime import rtsys

from pipeline import lowering


class _Code(JITCodeLibrary):
    """The code of one function."""

    def add_llvm_module(self, ll_module: Any) -> None:
        """Take code in, its variables turned from memory into values: once for all kernels that are linked with it."""
        ll_module.data_layout = self._codegen._data_layout
        passes = llvm.create_new_module_pass_manager()
        passes.add_sroa_pass()
        passes.add_instruction_combine_pass()
        passes.add_simplify_cfg_pass()
        passes.run(ll_module, self._cheaply())
        self._final_module.link_in(ll_module)

    def _cheaply(self) -> Any:
        return self._codegen._pass_builder(opt=0, loop_vectorize=False, slp_vectorize=False)


class Linked(_Code):
    """The code of a function that only kernels call, until it is optimized with them."""

    def finalize(self) -> None:
        """Take in what is inlined here, and remove counts of references that cancel out: others can be linked with it.

        Where all of this stands inside the loops of others, Numba does not find these any more.
        """
        for library in dict.fromkeys(self._linking_libraries):
            module = library._get_module_for_linking()
            if any(b"alwaysinline" in some for function in module.functions for some in function.attributes):
                self._final_module.link_in(module, preserve=True)
        passes = llvm.create_new_module_pass_manager()
        passes.add_always_inliner_pass()
        passes.add_simplify_cfg_pass()
        passes.add_refprune_pass()
        passes.run(self._final_module, self._cheaply())
        self._finalized = True

    def closure(self) -> list[Any]:
        """What a kernel is linked with that calls this: this, and all that this calls."""
        return [self, *self._linking_libraries]


class MachineCode(_Code):
    """The code of a kernel that Python calls, with all that it calls."""

    def _optimize_final_module(self) -> None:
        """Optimize all at once, as a program that is entered at the kernel and nowhere else."""
        for function in self._final_module.functions:
            # Numba knows the functions that count references by their names, and removes pairs that cancel out.
            called = not function.is_declaration and function.linkage != llvm.Linkage.external
            if called and not function.name.startswith("NRT_"):
                function.linkage = llvm.Linkage.internal
        passes, builder = self._codegen._module_pass_manager()
        passes.run(self._final_module, builder)

    @classmethod
    def loaded(cls, codegen: Any, name: str, code: bytes) -> MachineCode:
        """Machine code that was kept on disk, ready to run."""
        library = cls(codegen, name)
        library.enable_object_caching()
        library._set_compiled_object(code)
        library._finalize_final_module()
        return library


class ForPython(PythonAPI):
    """Makes objects of Python out of what a kernel answers. Their classes are constants of the kernel.

    Numba keeps a pickle of its class for each array and named tuple in an answer, and asks Python at each call for the
    class that the pickle stands for, which takes as long as making the array.
    """

    def get_env_manager(self, *of_kernel: Any) -> Any:
        """The constants of the kernel."""
        self._constants = super().get_env_manager(*of_kernel)
        return self._constants

    def serialize_object(self, obj: Any) -> Any:
        """What `unserialize` takes: a class as it is, Numba's pickle of any other object."""
        return obj if isinstance(obj, type) else super().serialize_object(obj)

    def unserialize(self, structptr: Any) -> Any:
        """The object, as a new reference to it."""
        if not isinstance(structptr, type):
            return super().unserialize(structptr)
        found = self._constants.read_const(self._constants.add_const(structptr))
        self.incref(found)
        return found


class _StoredKernel(CompileResultCacheImpl):
    """A compiled kernel as it is written to disk: machine code, and what is needed to call it."""

    def reduce(self, data: Any) -> tuple[Any, ...]:
        data.fndesc.typemap = data.fndesc.calltypes = None  # the compiler's own notes
        code = data.library._get_compiled_object()
        # Numba would also keep the names of their modules, and import these; machine code looks up no names.
        linked = [one for one in data._find_referenced_environments() if one is not data.environment]
        constants = [(one.env_name, tuple(one.consts)) for one in linked]
        return data.library.name, code, data.fndesc, data.environment, data.signature, constants

    def rebuild(self, target_context: Any, reduced_data: tuple[Any, ...]) -> Any:
        name, code, description, environment, signature, constants = reduced_data
        codegen = target_context.codegen()
        library = MachineCode.loaded(codegen, name, code)
        codegen._engine._defined_symbols |= {description.llvm_func_name, description.llvm_cpython_wrapper_name}
        entry = target_context.get_executable(library, description, environment)
        environments = tuple(Environment({}) for _ in constants)
        for made, (named, values) in zip(environments, constants, strict=True):
            made.env_name = named
            made.consts.extend(values)
            codegen.set_env(named, made)
        return compiler.compile_result(
            target_context=target_context, typing_context=target_context.typing_context, library=library,
            environment=environment, entry_point=entry, fndesc=description, signature=signature, objectmode=False,
            lifted=(), reload_init=(), referenced_envs=environments,
        )  # fmt: skip


class _Index(IndexDataCacheFile):
    """What is on disk for a kernel. Nothing is, where the classes of its arguments have gone or have other names."""

    def _load_index(self) -> Any:
        try:
            return super()._load_index()
        except (AttributeError, ImportError):
            return {}


class KeptCode(FunctionCache):
    """Machine code of a kernel on disk, by signature and processor, for as long as all that it is made from stays.

    Numba asks whether the file of the kernel has changed, not those of the functions that the kernel calls, and knows
    classes of arguments by name: a working copy would go on with old machine code.
    """

    _impl_class = _StoredKernel

    def __init__(self, py_func: Any) -> None:
        super().__init__(py_func)
        stamp = self._impl.locator.get_source_stamp(), _made_from(py_func)
        self._cache_file: Any = _Index(self._cache_path, self._impl.filename_base, stamp)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The compiled kernel for a signature, or None."""
        # What compiled code needs. Numba would load the tables of its compiler as well, which takes 0.2 s.
        rtsys.initialize(target_context)
        with self._guard_against_spurious_io_errors():
            return self._load_overload(sig, target_context)

    def processors(self) -> list[Any]:
        """The processors for which machine code is kept, once for each signature."""
        return [processor for _, processor, *_ in self._cache_file._load_index()]

    def _index_key(self, sig: Any, codegen: Any) -> tuple[Any, ...]:
        return *super()._index_key(sig, codegen), repr(_fields(sig))


def _made_from(kernel: Any) -> str:
    """A digest of what the machine code of a kernel is made from: the functions that it calls, constants, fields."""
    digest, functions = hashlib.sha256(_compiler()), [kernel]
    for function in functions:
        own, called = _parts(function)
        digest.update(own)
        functions += [one for one in called if one not in functions]
    return digest.hexdigest()


@cache
def _compiler() -> bytes:
    """What makes machine code of kernels, beside Numba."""
    kinds = [vars(one) for one in (_Code, Linked, MachineCode, ForPython, lowering.LentNames)]
    made = [one for some in (*kinds, vars(lowering)) for one in some.values()]
    return b"".join(_instructions(one.__code__) for one in made if isinstance(one, FunctionType))


@cache
def _parts(function: Any) -> tuple[bytes, list[Any]]:
    """What stands in a function with the constants and fields that it names, and the functions that it names."""
    named = [function.__globals__.get(name) for name in function.__code__.co_names]
    named = [getattr(one, "py_func", one) for one in named]
    constants = [one for one in named if isinstance(one, int | float | str | tuple)]
    fields = [getattr(one, "_fields", None) for one in named if isinstance(one, type)]
    called = dict.fromkeys(one for one in named if isinstance(one, FunctionType))
    return _instructions(function.__code__) + repr((constants, fields)).encode(), list(called)


def _instructions(code: CodeType) -> bytes:
    constants = [_instructions(one) if isinstance(one, CodeType) else one for one in code.co_consts]
    return code.co_code + repr((code.co_names, code.co_varnames, constants)).encode()


def _fields(types: Any) -> list[Any]:
    """The names of the fields of named tuples, which machine code knows by their places only."""
    return [(getattr(one, "fields", ()), *_fields(getattr(one, "types", ()))) for one in types]
