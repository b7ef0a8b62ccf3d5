"""Shortcuts through the compiler of numba-cuda: the same PTX in less than half the time.

A kernel is made of a hundred small functions. Most of the time of each goes into what our kernels do not
need: passes for closures, arrays and literals, live variables before every pass, and registries that are
searched for new implementations. A shortcut replaces one function of numba-cuda while a kernel is compiled,
under the compiler's lock. The shortcuts know one release; with another they are not taken. One changes PTX,
and that of later devices alone: `range_next`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module, metadata
from typing import Any

from .range_next import counting_without_branch

__all__ = ["KNOWN_RELEASE", "shortened"]

KNOWN_RELEASE = "0.30."


def _module(name: str) -> Any:
    """A module of numba-cuda, of which the type checker sees Numba's namesake."""
    return import_module(f"numba.cuda.{name}")


try:  # modules that another release may lack
    codegen, compiler, machinery = _module("codegen"), _module("compiler"), _module("core.compiler_machinery")
    postproc, targetconfig = _module("core.postproc"), _module("core.targetconfig")
    typed_passes, untyped_passes = _module("core.typed_passes"), _module("core.untyped_passes")
    npydecl, templates = _module("typing.npydecl"), _module("typing.templates")
    cuda_target = _module("descriptor").cuda_target
    compiler_lock = _module("core.compiler_lock").global_compiler_lock
except (ImportError, AttributeError):
    _HAS_NAMES = False
else:
    _HAS_NAMES = True


def _is_known() -> bool:
    return _HAS_NAMES and metadata.version("numba-cuda").startswith(KNOWN_RELEASE)


@contextmanager
def shortened() -> Iterator[None]:
    """The shortcuts are taken in the block."""
    if not _is_known():
        yield
        return
    with compiler_lock:
        from .numba_lowering import lowering_shortcuts  # it imports what another release may lack

        cuda_target.target_context.refresh()
        shortcuts = [*_shortcuts(), *lowering_shortcuts()]
        before = [(owner, name, vars(owner)[name]) for owner, name, _ in shortcuts]
        try:
            for owner, name, replacement in shortcuts:
                setattr(owner, name, replacement)
            yield
        finally:
            for owner, name, original in before:
                setattr(owner, name, original)


def _shortcuts() -> Iterator[tuple[Any, str, Any]]:
    """Yield the replacements: a class or module, a name in it, and the new value."""
    config, typing, target = targetconfig.TargetConfig, cuda_target.typing_context, cuda_target.target_context
    yield compiler, "CUDACompiler", _compiler()
    yield machinery.PassManager, "_runPass", _run_pass
    yield config, "__eq__", _same_config(vars(config)["__eq__"])
    yield config, "__hash__", lambda flags: hash(type(flags).__name__)
    yield templates._TemplateTargetHelperMixin, "_get_target_registry", _first_registry
    refresh_typing = _incremental(typing)
    yield _owner(typing, "refresh"), "refresh", refresh_typing
    yield _owner(target, "refresh"), "refresh", _both(_incremental(target), refresh_typing)
    resolve = "resolve_function_type"
    yield _owner(typing, resolve), resolve, _remembering(vars(_owner(typing, resolve))[resolve])
    yield postproc.PostProcessor, "run", _without_liveness(vars(postproc.PostProcessor)["run"])
    yield codegen.CUDACodeLibrary, "modules", property(_distinct_modules)
    yield codegen.nvvm, "compile_ir", counting_without_branch(codegen.nvvm.compile_ir)
    operators = npydecl.NumpyRulesArrayOperator
    yield operators, "generic", _for_arrays(vars(operators)["generic"])


def _owner(instance, name: str) -> type:
    """The class that defines a method of `instance`."""
    return next(each for each in type(instance).__mro__ if name in vars(each))


def _compiler() -> type:
    passes = (
        compiler.CUDATranslateBytecode,
        untyped_passes.FixupArgs,
        untyped_passes.IRProcessing,
        untyped_passes.RewriteSemanticConstants,
        untyped_passes.DeadBranchPrune,
        untyped_passes.GenericRewrites,
        untyped_passes.ReconstructSSA,
        untyped_passes.DeadBranchPrune,
        typed_passes.NopythonTypeInference,
        typed_passes.PreLowerStripPhis,
        typed_passes.IRLegalization,
        compiler.CreateLibrary,
        compiler.CUDANativeLowering,
        compiler.CUDABackend,
    )

    base: Any = compiler.CUDACompiler

    class Compiler(base):
        """Only the passes that kernels need; what numba-cuda itself writes in Python has all of them."""

        def define_pipelines(self):
            if self.state.func_id.modname.startswith("numba."):
                return super().define_pipelines()
            manager = machinery.PassManager("cuda")
            for each in passes:
                manager.add_pass(each, each._name)
            manager.finalize()
            return [manager]

    return Compiler


def _run_pass(manager, _, one, state) -> None:
    """Without events, timings, and checks of the representation after each pass."""
    one.analysis = manager._analysis
    one.run_pass(state)


def _same_config(original: Callable) -> Callable:
    def same(one, other):
        if type(one) is not type(other):
            return original(one, other)
        mine, theirs = one._values, other._values
        return mine == theirs or all(
            getattr(one, k) == getattr(other, k) for k in mine.keys() | theirs.keys()
        )

    return same


def _first_registry(template, reason: str):
    return next(iter(cuda_target.target_context._registries))


def _incremental(context) -> Callable:
    """``refresh()`` of a context that is up to date now: it reads registries that have grown since."""

    def length(registry) -> int:
        return sum(len(getattr(registry, item)) for item in context._registries[registry].registry_items)

    lengths = {registry: length(registry) for registry in context._registries}

    def refresh(self) -> None:
        for registry, known in list(lengths.items()):
            if (now := length(registry)) != known:
                lengths[registry] = now
                self.install_registry(registry)

    return refresh


def _both(refresh_target: Callable, refresh_typing: Callable) -> Callable:
    def refresh(self) -> None:
        refresh_target(self)
        refresh_typing(self.typing_context)

    return refresh


def _remembering(original: Callable) -> Callable:
    signatures: dict[tuple, Any] = {}

    def resolve_function_type(context, function, arguments, keywords):
        """An operator and types that the kernel had before: the signature that they had then."""
        if keywords or getattr(function, "__module__", "") != "_operator":
            return original(context, function, arguments, keywords)
        known = function, tuple(arguments)
        if known not in signatures:
            signatures[known] = original(context, function, arguments, keywords)
        return signatures[known]

    return resolve_function_type


def _without_liveness(original: Callable) -> Callable:
    def run(self, emit_dels: bool = False, extend_lifetimes: bool = False) -> None:
        """Compute variables' lifetimes where they are needed: for generators, and to end them before
        lowering.
        """
        function = self.func_ir
        if emit_dels or function.is_generator:
            original(self, emit_dels, extend_lifetimes)
            return
        function.blocks = postproc.transforms.canonicalize_cfg(function.blocks)
        function.variable_lifetime = postproc.VariableLifetime(function.blocks)
        function.generator_info = None

    return run


def _distinct_modules(library) -> list:
    """A module once, however many functions call its function."""
    linked = (module for other in library._linking_libraries for module in other.modules)
    return list({id(module): module for module in (library._module, *linked)}.values())


def _for_arrays(original: Callable) -> Callable:
    array_like = npydecl.types.ArrayCompatible

    def generic(self, arguments, keywords):
        """An operator of numbers is none of NumPy's."""
        if any(isinstance(getattr(each, "type", each), array_like) for each in arguments):
            return original(self, arguments, keywords)
        return None

    return generic
