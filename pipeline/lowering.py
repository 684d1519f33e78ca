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
from numba.core.types.containers import BaseNamedTuple
from numba.extending import overload


class LentNames(Lower):
    """Numba's lowering, with names that are lent: of arguments, and of what is taken out of records that are lent.

    Only a name that is given once is lent; what one with several meanings stands for may be the function's own.
    """

    def init(self) -> None:
        """Find the names that are lent."""
        super().init()
        meanings: dict[str, list[Any]] = {}
        for block in self.blocks.values():
            for one in block.find_insts(ir.Assign):
                meanings.setdefault(one.target.name, []).append(one.value)
        once = {name: given[0] for name, given in meanings.items() if len(given) == 1}
        self._lent: set[str] = set()
        before = -1
        while len(self._lent) > before and not self.func_ir.func_id.is_generator:
            before = len(self._lent)
            self._lent |= {name for name, value in once.items() if self._type_lent(value) == self.typeof(name)}

    def _type_lent(self, value: Any) -> Any:
        """The type of a value that is lent, as far as names are known that are; else None."""
        if isinstance(value, ir.Arg):
            return self.typeof(f"arg.{value.name}")
        if isinstance(value, ir.Var) and value.name in self._lent:
            return self.typeof(value.name)
        if isinstance(value, ir.Expr) and value.op == "getattr" and value.value.name in self._lent:
            record = self.typeof(value.value.name)
            if isinstance(record, BaseNamedTuple) and value.attr in record.fields:
                return record.types[record.fields.index(value.attr)]
        return None

    def lower_assign(self, ty: Any, inst: Any) -> Any:
        """The value that a name stands for; it is counted unless it is lent."""
        value = inst.value
        if inst.target.name not in self._lent:
            return super().lower_assign(ty, inst)
        if isinstance(value, ir.Arg):
            return self.fnargs[value.index]
        if isinstance(value, ir.Var):
            return self.loadvar(value.name)
        record = value.value.name
        return self.builder.extract_value(self.loadvar(record), self.typeof(record).fields.index(value.attr))

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
