"""Random programs that read nested state, which is mutated between their calls: eager beside traced.

A program is a list of expressions over names that lead into the state; mutations are statements.  Each world makes the
state anew, so the two are identical copies.  After every mutation the program is called, in both, and its outcome and
all that it can reach are compared.
"""

from __future__ import annotations

import random
import sys
import types
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import stator
from tests.fuzz.compare import HOST_ERROR, Difference
from tests.fuzz.describe import MODULE, Description, describe

STATE = """
import sys, math, types, collections
LEVEL = 1
TABLE = {'a': 1, 'b': [1, 2], 'c': {'d': 3}}
ITEMS = [1, 2.5, 'x', (4, 5)]
def helper(x=1, *, k=2): return x + k + LEVEL
def other(x=3, *, k=4): return x * k
class Meta(type):
    rank = 7
class Base(metaclass=Meta):
    shared = 5
    def greet(self): return self.shared
class Node(Base):
    size = [1]
    leaf = None
    def __init__(self, v): self.v = v; self.child = None
    @property
    def double(self): return self.v * 2
    def run(self, x=1): return self.v + x
    @classmethod
    def kind(cls): return cls.shared
class Twin(Node):
    shared = 6
    def run(self, x=2): return self.v - x
node = Node(1)
node.child = Node(2)
Node.leaf = Node(3)
def closure():
    cell = 1
    def read(): return cell
    def write(value):
        nonlocal cell
        cell = value
    return read, write
read, write = closure()
mod = types.ModuleType('mod'); mod.x = 1
sys.modules['fuzzed_mod'] = mod
queue = collections.deque([1, 2])
"""
TENSORS = """
import torch
base = torch.arange(12.)
node.t = base[0:4]
Node.weight = torch.ones(4)
TABLE['t'] = base[2:6]
ITEMS.append(torch.zeros(4))
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = torch.nn.Linear(4, 4)
        self.register_buffer('buf', torch.ones(4))
        with torch.no_grad(): self.lin.weight.copy_(torch.eye(4)); self.lin.bias.zero_()
    def forward(self, x): return self.lin(x) + self.buf
net = Net()
"""
READS = [
    "LEVEL",
    "TABLE['a']",
    "len(TABLE['b'])",
    "TABLE.get('z', 0)",
    "TABLE['b'][-1]",
    "list(TABLE)",
    "TABLE['c'].get('d')",
    "len(ITEMS)",
    "ITEMS[0]",
    "ITEMS[-1] if isinstance(ITEMS[-1], int) else None",
    "helper()",
    "helper(2, k=3)",
    "node.v",
    "node.child.v",
    "node.child.run()",
    "node.double",
    "node.run()",
    "node.shared",
    "Node.size[0]",
    "len(Node.size)",
    "Node.leaf.v",
    "Node.leaf.run(2)",
    "type(node).shared",
    "type(node).__name__",
    "hasattr(node, 'extra')",
    "getattr(node, 'extra', None)",
    "node.greet()",
    "node.kind()",
    "type(type(node)).rank",
    "read()",
    "mod.x",
    "getattr(mod, 'y', 0)",
    "helper.__defaults__",
    "helper.__kwdefaults__",
    "len(queue)",
    "queue[0]",
    "defaulted()",
    "isinstance(node, Twin)",
    "math.pi > 3",
    "helper.__name__",
    "vars(node).get('v')",
    "'b' in TABLE",
    "imported()",
    "Node.leaf.shared",
    "isinstance(Node.leaf, Twin)",
    "node.run.__func__.__name__",
    "[v for v in TABLE if v < 'c']",
    "bool(node.child)",
    "node.size",
    "sorted(vars(node.child))",
    "helper.__globals__['LEVEL']",
    "ITEMS[3][0]",
]
TENSOR_READS = [
    "node.t.sum()",
    "node.t * 2",
    "Node.weight + 1",
    "TABLE['t'].mul(3)",
    "ITEMS[-1].shape",
    "net(arg)",
    "net.buf.dtype",
    "node.t.requires_grad",
    "Node.weight.requires_grad",
    "node.t.stride()",
    "node.t.storage_offset()",
    "arg + node.t.sum()",
    "net.lin.weight.sum()",
    "Node.weight.dim()",
    "node.t.dtype",
    "arg.shape",
    "arg.requires_grad",
    "net.training",
    "[n for n, _ in net.named_parameters()]",
    "[n for n, _ in net.named_buffers()]",
    "node.t.is_contiguous()",
    "arg.stride()",
    "first.add_(1).sum() + second.sum()",
    "second.mul_(2) + first",
    "(first * 2, second + 1)",
    "len(list(net.children()))",
]
MUTATIONS = [
    "LEVEL = $n",
    "TABLE['a'] = $n",
    "TABLE['a'] = True",
    "del TABLE['b'][-1:]",
    "TABLE['b'].append($n)",
    "TABLE['z'] = $n",
    "TABLE.pop('z', None)",
    "TABLE['a'] = TABLE.pop('a')",
    "TABLE['c'] = {'d': $n}",
    "TABLE['c'].clear()",
    "TABLE['b'] = ($n, 2)",
    "ITEMS[0] = $n",
    "ITEMS[0] = float($n)",
    "ITEMS.append($n)",
    "ITEMS[3] = ($n, 1)",
    "ITEMS.insert(0, $n)",
    "helper, other = other, helper",
    "helper.__code__ = (lambda x=1, *, k=2: x - k).__code__",
    "helper.__defaults__ = ($n,)",
    "helper.__defaults__ = None",
    "helper.__kwdefaults__ = {'k': $n}",
    "helper.__kwdefaults__ = None",
    "helper.__kwdefaults__ = {}",
    "helper.__name__ = 'n$n'",
    "node.v = $n",
    "node.v = 2.5",
    "node.child.v = $n",
    "node.child = Node($n)",
    "node.child = None",
    "node.child = node",
    "node.extra = $n",
    "vars(node).pop('extra', None)",
    "node.__class__ = Twin",
    "node.__class__ = Node",
    "Node.leaf.__class__ = Twin",
    "Node.leaf = Twin($n)",
    "Node.leaf.v = $n",
    "Node.leaf = Node.leaf",
    "node.shared = $n",
    "vars(node).pop('shared', None)",
    "Base.shared = $n",
    "Node.shared = $n",
    "Twin.shared = $n",
    "Node.run = lambda self, x=1: $n",
    "Node.run.__code__ = (lambda self, x=1: x).__code__",
    "Node.run.__defaults__ = ($n,)",
    "Node.double = property(lambda self: $n)",
    "node.run = lambda x=1: $n",
    "vars(node).pop('run', None)",
    "Base.greet.__code__ = (lambda self: $n).__code__",
    "Node.size.append($n)",
    "Node.size = [$n, 2]",
    "node.size = [$n]",
    "Meta.rank = $n",
    "Node.kind = classmethod(lambda cls: $n)",
    "write($n)",
    "write(True)",
    "mod.x = $n",
    "mod.y = $n",
    "vars(mod).pop('y', None)",
    "mod = types.SimpleNamespace(x=$n)",
    "queue.append($n)",
    "queue.rotate()",
    "queue = collections.deque([$n])",
    "defaulted.__defaults__ = ($n,)",
    "defaulted.__defaults__[0].append(1)",
    "sys.modules['fuzzed_mod'] = types.SimpleNamespace(x=$n)",
    "Node.__bases__ = (Base2,)",
    "Node.__name__ = 'N$n'",
    "Node.__getattr__ = lambda self, name: $n",
    "Node.__bool__ = lambda self: False",
    "node.__dict__ = {'v': $n, 'child': node}",
    "write(helper)",
    "node.child.extra = $n",
    "TABLE.clear()",
    "del ITEMS[3:4]",
    "class_cell($n)",
]
TENSOR_MUTATIONS = [
    "node.t = base[$n:$n + 4]",
    "node.t = base[0:8:2]",
    "node.t = base.view(3, 4)[$n % 3]",
    "node.t = torch.ones(4, dtype=torch.int64)",
    "node.t = torch.ones(4, dtype=torch.float64)",
    "node.t = torch.ones($n + 1)",
    "node.t = torch.ones(4, requires_grad=True)",
    "node.t = torch.ones(4).requires_grad_()",
    "Node.weight.requires_grad_()",
    "Node.weight.requires_grad_(False)",
    "Node.weight = torch.full((4,), 2.)",
    "Node.weight.unsqueeze_(0)",
    "Node.weight.data = torch.ones(4) * $n",
    "base.add_($n)",
    "Node.weight.data = torch.ones(5)",
    "TABLE['t'] = base[$n:$n + 4]",
    "TABLE['t'] = node.t.detach()",
    "ITEMS[-1] = torch.ones(2, 2)",
    "net.lin.weight.requires_grad_(False)",
    "net.lin.weight.data.mul_(2)",
    "net.buf = net.buf * 2",
    "net.lin.bias = None",
    "net.buf = net.buf.double()",
    "net.lin = torch.nn.Identity()",
    "net.lin = torch.nn.Linear(4, 4, bias=False); torch.nn.init.ones_(net.lin.weight)",
    "net.eval()",
    "net.train()",
    "net.extra = torch.nn.ReLU()",
    "net.register_buffer('b2', base[:1])",
    "net.forward = lambda x: x * $n",
    "vars(net).pop('forward', None)",
    "Net.forward = lambda self, x: x + $n",
    "net.double()",
    "net.register_forward_hook(lambda m, a, out: out + $n)",
    "net.lin.weight.data = torch.ones(4, 4) * $n",
    "net.float()",
    "argument = torch.ones(4) * $n",
    "argument = torch.ones(2, 4)",
    "argument = torch.ones(4, requires_grad=True)",
    "argument = base[$n:$n + 4]",
    "pair = (base[0:4], base[$n:$n + 4])",
    "pair = (base[0:4], base[4:8])",
    "pair = (base[0:4],) * 2",
    "pair = (base[0:8:2], base[1:9:2])",
    "pair = (base[0:4], torch.ones(4))",
    "pair = (base[$n:$n + 4], base[0:4])",
    "argument = torch.ones(4, dtype=torch.float64)",
]
MORE = """
class Base2(Base):
    shared = 9
def defaulted(x=[]): return len(x) if isinstance(x, list) else x
def imported():
    import fuzzed_mod
    return fuzzed_mod.x
def class_cell(n): Node.size[:] = [n]
"""
CALLS = 20


@dataclass(frozen=True)
class Case:
    """What the program reads, and how the state is mutated before each further call."""

    reads: tuple[str, ...]
    mutations: tuple[str, ...]
    tensors: bool
    backend: str = "eager"

    def source(self) -> str:
        """A program that can be run, and shows the same."""
        arguments = "arg, first, second" if self.tensors else ""
        state = STATE + (TENSORS if self.tensors else "") + MORE
        given = "argument = torch.ones(4); pair = (base[0:4], base[4:8])\n" if self.tensors else ""
        reads = "\n".join(f"    {read}," for read in self.reads)
        return f"{state}{given}def program({arguments}):\n  return [\n{reads}\n  ]\n"

    def shown(self) -> str:
        """As a program to run by itself."""
        call = "compiled(argument, *pair)" if self.tensors else "compiled()"
        lines = [f"{m}\nprint({call}, {call.replace('compiled', 'program')})" for m in ("pass", *self.mutations)]
        compiled = f"import stator\ncompiled = stator.compile(program, backend={self.backend!r})\n"
        return self.source() + compiled + "\n".join(lines)


def case(number: int, tensors: bool) -> Case:
    """The case of this number."""
    rng = random.Random(number)
    tensors = tensors and number % 2 == 0
    reads = READS + TENSOR_READS * 2 if tensors else READS
    mutations = MUTATIONS + TENSOR_MUTATIONS * 2 if tensors else MUTATIONS
    chosen = [rng.choice(mutations).replace("$n", str(rng.randrange(6))) for _ in range(CALLS)]
    backend = "aot_eager" if tensors and number % 16 == 0 else "eager"
    return Case(tuple(rng.sample(reads, rng.randint(1, 4))), tuple(chosen), tensors, backend)


def check_mutations(case: Case) -> None:
    """Raises Difference where a call answers otherwise than eager, or leaves another state."""
    stator.reset()
    wanted = run(case, lambda program: program)
    with stator.config.patch(recompile_limit=2 * CALLS):  # past the limit it would run eagerly, and miss nothing
        seen = run(case, lambda program: stator.compile(program, backend=case.backend))
    defects = [b for b in stator.stats().breaks if b.code == HOST_ERROR]
    if defects:
        raise Difference(f"a defect of the tracer: {defects[0].reason}")
    for call, (want, have) in enumerate(zip(wanted, seen, strict=True)):
        if want != have:
            facts = zip(want.facts, have.facts, strict=False)
            lines = [f"    eager:  {w}\n    traced: {h}" for w, h in facts if w != h]
            before = case.mutations[call - 1] if call else "the first call"
            raise Difference(f"call {call + 1}, after {before}\n" + "\n".join(lines[:3]))


def run(case: Case, wrap: Callable[[Any], Any]) -> list[Description]:
    module = sys.modules[MODULE] = types.ModuleType(MODULE)
    space = vars(module)
    exec(compile(case.source(), "<program>", "exec"), space)
    program = wrap(space["program"])
    seen = []
    for mutation in ("pass", *case.mutations):
        with suppress(Exception):  # of a state that earlier mutations have made another
            exec(mutation, space)
        args = (space["argument"], *space["pair"]) if case.tensors else ()
        try:
            outcome: Any = ("returned", program(*args))
        except Exception as e:
            outcome = ("raised", type(e).__name__, str(e)[:200])
        names = ("LEVEL", "TABLE", "ITEMS", "node", "queue") + (("base",) if case.tensors else ())
        seen.append(describe(outcome, args, {name: space[name] for name in names}, ""))
    return seen


def fails(case: Case) -> str:
    """What differs, if anything."""
    try:
        check_mutations(case)
    except Difference as e:
        return str(e)
    return ""


def smallest(case: Case) -> Case:
    """The case with the fewest reads and mutations that still fails."""
    for part in ("reads", "mutations"):
        position = 0
        while position < len(getattr(case, part)):
            items = getattr(case, part)
            fewer = replace(case, **{part: items[:position] + items[position + 1 :]})
            if fewer.reads and fails(fewer):
                case = fewer
            else:
                position += 1
    return case
