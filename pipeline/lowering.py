"""How functions of the core become code for LLVM: in which there are no counts of references to what is lent.

The caller keeps the arguments until the function returns. Numba counts a reference to each column of a record all the
same: where a function begins, where a record gets another name and where one is taken out of another; and counts them
off where a name is last used. Half of the instructions that it made for us were for this, to be taken out later.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numba
from numba.core import compiler, ir
from numba.core.compiler_machinery import register_pass
from numba.core.lowering import Lower
from numba.core.typed_passes import NativeLowering
from numba.core.types.containers import BaseTuple
from numba.extending import overload


class LentNames(Lower):
    """Numba's lowering, with names that are lent: of arguments, parts of tuples that are lent, and tuples of these.

    A name with several meanings is lent if each of them is; else it may stand for what is the function's own.
    """

    def init(self) -> None:
        """Find the names that are lent."""
        super().init()
        meanings: dict[str, list[Any]] = {}
        for block in self.blocks.values():
            for one in block.find_insts(ir.Assign):
                meanings.setdefault(one.target.name, []).append(one.value)
        self._lent: set[str] = set()
        before = -1
        while len(self._lent) > before and not self.func_ir.func_id.is_generator:
            before = len(self._lent)
            self._lent |= {
                name
                for name, given in meanings.items()
                if all(self._is_lent(value, self.typeof(name)) for value in given)
            }

    def _is_lent(self, value: Any, kind: Any) -> bool:
        """Whether a value is lent as a value of this type, as far as names are known that are."""
        if isinstance(value, ir.Arg):
            return bool(self.typeof(f"arg.{value.name}") == kind)
        if isinstance(value, ir.Expr) and value.op == "build_tuple":
            items = [one.name for one in value.items]
            return all(
                not self._is_counted(part) or (name in self._lent and self.typeof(name) == part)
                for name, part in zip(items, kind, strict=True)
            )
        name, part = self._taken(value)
        if name not in self._lent:
            return False
        return bool((self.typeof(name) if part is None else self.typeof(name).types[part]) == kind)

    def _is_counted(self, kind: Any) -> bool:
        """Whether there are references to values of this type, or to what is in them."""
        return bool(self.context.data_model_manager[kind].contains_nrt_meminfo())

    def _taken(self, value: Any) -> tuple[str, int | None]:
        """The name that a value is taken from, and which part of it, None for all; no name if it is from none."""
        if isinstance(value, ir.Var):
            return value.name, None
        if not isinstance(value, ir.Expr) or value.op not in ("getattr", "exhaust_iter", "static_getitem"):
            return "", None
        name = value.value.name
        record = self.typeof(name)
        if not isinstance(record, BaseTuple):
            return "", None
        if value.op == "getattr":
            fields = getattr(record, "fields", ())
            return (name, fields.index(value.attr)) if value.attr in fields else ("", None)
        if value.op == "exhaust_iter":  # all parts of a tuple are given names at once
            return name, None
        return (name, value.index % len(record.types)) if isinstance(value.index, int) else ("", None)

    def lower_assign(self, ty: Any, inst: Any) -> Any:
        """The value that a name stands for; it is counted unless it is lent."""
        value = inst.value
        if inst.target.name not in self._lent:
            return super().lower_assign(ty, inst)
        if isinstance(value, ir.Arg):
            return self.fnargs[value.index]
        if isinstance(value, ir.Expr) and value.op == "build_tuple":
            parts = [
                self.context.cast(self.builder, self.loadvar(one.name), self.typeof(one.name), to)
                for one, to in zip(value.items, ty, strict=True)
            ]
            return self.context.make_tuple(self.builder, ty, parts)
        name, part = self._taken(value)
        taken = self.loadvar(name)
        return taken if part is None else self.builder.extract_value(taken, part)

    def storevar(self, value: Any, name: str, argidx: int | None = None) -> None:
        """Keep a value under a name. Nothing is counted off for a name that is lent: it stood for nothing before."""
        if name not in self._lent or name in self._singly_assigned_vars:
            super().storevar(value, name, argidx)
        else:
            self.builder.store(value, self.getvar(name))

    def delvar(self, name: str) -> None:
        """Forget a name."""
        if name not in self._lent:
            super().delvar(name)


@register_pass(mutates_CFG=True, analysis_only=False)
class _LentNames(NativeLowering):
    _name = "lent_names"

    @property
    def lowering_class(self) -> type[Lower]:
        return LentNames


class Lending(compiler.Compiler):
    """Numba's compiler, for functions that are lent their arguments."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        _say_no_shapes(self.state.typingctx)

    def define_pipelines(self) -> list[Any]:
        """Numba's passes, one of them replaced."""
        (passes,) = super().define_pipelines()
        passes.passes = [(_LentNames if one is NativeLowering else one, said) for one, said in passes.passes]
        passes.finalize()
        return [passes]


@cache
def _say_no_shapes(context: Any) -> None:
    """An assignment to a slice of another size does not say the sizes.

    Numba would compile how these become text, in a third of the time that a kernel of middling size takes, and link it
    with every kernel that assigns to a slice.
    """
    arrays = numba.np.arrayobj  # which the compiler has loaded by now

    def sizes_differ(src_shapes: Any, index_shape: Any) -> None:
        """What kernels call in place of the function that says them."""

    overload(sizes_differ)(arrays.ol_raise_with_shape_context_generic)
    arrays.raise_with_shape_context = sizes_differ
    context.refresh()
