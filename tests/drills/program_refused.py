"""Defines models that torch exports but Sinew refuses to train. Each name has a model and a part of the error message
that programs_test.py expects."""
import torch
from torch import nn
from torch.nn import functional as F

CLASSES = 5


class Linear(nn.Module):
    """Takes [batch, 1, 8, 8]."""

    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(64, 8), nn.Linear(8, CLASSES)

    def forward(self, x):
        return self.head(torch.relu(self.body(x.flatten(1))))


class Clamped(Linear):
    def forward(self, x):
        with torch.no_grad():
            self.head.weight.clamp_(-1, 1)
        return super().forward(x)


class ClampedView(Linear):
    """flatten() may return a view or a copy. So only running the program shows that it writes to its weight."""

    def forward(self, x):
        with torch.no_grad():
            self.head.weight.flatten().clamp_(-1, 1)
        return super().forward(x)


class MaxNorm(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.head = nn.Embedding(4, 8, max_norm=1.0), nn.Linear(8, CLASSES)

    def forward(self, x):
        return self.head(self.table((x.flatten(1) > 0.5).long()).mean(1))


class Counting(Linear):
    def __init__(self):
        super().__init__()
        self.calls = torch.zeros(CLASSES)

    def forward(self, x):
        self.calls.add_(1)
        return super().forward(x) + self.calls


class OwnStatistics(Linear):
    def __init__(self):
        super().__init__()
        self.mean, self.variance = torch.zeros(CLASSES), torch.ones(CLASSES)

    def forward(self, x):
        return F.batch_norm(super().forward(x), self.mean, self.variance, training=True)


class Transposed(nn.Module):
    def __init__(self):
        super().__init__()
        self.down, self.up, self.head = nn.Linear(64, 8), nn.Linear(8, 64, bias=False), nn.Linear(64, CLASSES)
        self.up.weight = nn.Parameter(self.down.weight.t())

    def forward(self, x):
        return self.head(self.up(torch.relu(self.down(x.flatten(1)))))


class KeepsItsWeight(Linear):
    def __init__(self):
        super().__init__()
        self.register_buffer("start", self.head.weight.data)

    def forward(self, x):
        return super().forward(x) * (1 + (self.head.weight - self.start).square().sum())


class Half(Linear):
    def __init__(self):
        super().__init__()
        self.half()

    def forward(self, x):
        return super().forward(x.half()).float()


class Scaled(Linear):
    def forward(self, x, k):
        return super().forward(x) * k


class Bytes(Linear):
    def forward(self, x):
        return super().forward(x.float())


class Expanded(Linear):
    def __init__(self):
        super().__init__()
        self.shift = nn.Parameter(torch.ones(1).expand(CLASSES))

    def forward(self, x):
        return super().forward(x) + self.shift


class Reserved(Linear):
    def __init__(self):
        super().__init__()
        self.register_parameter("__metadata__", nn.Parameter(torch.ones(CLASSES)))

    def forward(self, x):
        return super().forward(x) + getattr(self, "__metadata__")


class WithBuffer(Linear):
    def __init__(self, dtype):
        super().__init__()
        self.register_buffer("turn", torch.ones(CLASSES, dtype=dtype))

    def forward(self, x):
        return super().forward(x) + (self.turn.real if self.turn.is_complex() else self.turn.float())


class NoParameters(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("weight", torch.ones(CLASSES, 64))

    def forward(self, x):
        return F.linear(x.flatten(1), self.weight)


class Frozen(Linear):
    def __init__(self):
        super().__init__()
        self.requires_grad_(False)


class Detached(Linear):
    def forward(self, x):
        return super().forward(x).detach()


class WithoutGradient(Linear):
    def forward(self, x):
        with torch.no_grad():
            return super().forward(x)


class Whole(Linear):
    def forward(self, x):
        return super().forward(x).long()


class CountFirst(Linear):
    def forward(self, x):
        return x.shape[0], super().forward(x)


class NothingFirst(Linear):
    def forward(self, x):
        return None, super().forward(x)


class Branching(Linear):
    """The exporter follows one branch only, so the graph is right for small batches."""

    def forward(self, x):
        return super().forward(x) if x.shape[0] <= 8 else super().forward(-x)


class Erasing(nn.Module):
    """A valid model: it writes into one of its inputs, which has the same source as the other."""

    def __init__(self):
        super().__init__()
        self.body = nn.Linear(64, CLASSES)

    def forward(self, left, right):
        return self.body((left.zero_() + right).flatten(1))


class SharedNorm(nn.Module):
    """A valid model: one batch norm under two names, and two buffers that are parts of one tensor."""

    def __init__(self):
        super().__init__()
        self.body, self.one, self.head = nn.Linear(64, 8), nn.BatchNorm1d(8), nn.Linear(8, CLASSES)
        self.other = self.one
        both = torch.zeros(2, 8)
        self.register_buffer("left", both[0])
        self.register_buffer("right", both[1])

    def forward(self, x):
        x = self.other(self.body(x.flatten(1)))
        self.left.add_(x.detach().mean(0))
        return self.head(self.one(torch.relu(x)) + 0 * (self.left + self.right))


IMAGE, ANY = torch.rand(4, 1, 8, 8), {0: torch.export.Dim("batch")}
# name -> (model, arguments, dynamic_shapes, part of the message)
REFUSED = {
    "clamped": (Clamped, (IMAGE,), (ANY,), "the program writes to its parameter head.weight"),
    "max_norm": (MaxNorm, (IMAGE,), (ANY,), "the program writes to its parameter table.weight"),
    "counting": (Counting, (IMAGE,), (ANY,), "the program writes to its constant calls"),
    "own_statistics": (OwnStatistics, (IMAGE,), (ANY,), "the program writes to its constant mean"),
    "transposed": (Transposed, (IMAGE,), (ANY,), "parameter down.weight and parameter up.weight are different views"
                   " of one memory"),
    "keeps_its_weight": (KeepsItsWeight, (IMAGE,), (ANY,), "parameter head.weight and buffer start are different views"
                         " of one memory"),
    "half": (Half, (IMAGE,), (ANY,), "is float16, but parameters are trained in float32"),
    "fixed_batch": (Linear, (IMAGE,), None, "input x was exported for batches of exactly 4"),
    "number": (Scaled, (IMAGE, 3), (ANY, torch.export.Dim.DYNAMIC), "input k is a number, not a tensor"),
    "expanded": (Expanded, (IMAGE,), (ANY,), "elements of parameter shift are views of one memory"),
    "reserved": (Reserved, (IMAGE,), (ANY,), "has the name __metadata__"),
    "complex": (lambda: WithBuffer(torch.complex64), (IMAGE,), (ANY,), "buffer turn is complex64"),
    "unsigned": (lambda: WithBuffer(torch.uint16), (IMAGE,), (ANY,), "buffer turn is uint16"),
    "no_parameters": (NoParameters, (IMAGE,), (ANY,), "no parameter of the model is trained"),
    "frozen": (Frozen, (IMAGE,), (ANY,), "no parameter of the model is trained"),
    "detached": (Detached, (IMAGE,), (ANY,), "its first output does not depend on a trained parameter"),
    "without_gradient": (WithoutGradient, (IMAGE,), (ANY,), "its first output does not depend on a trained parameter"),
    "whole": (Whole, (IMAGE,), (ANY,), "its first output is int64"),
    "count_first": (CountFirst, (IMAGE,), (ANY,), "its first output is not a tensor"),
    "nothing_first": (NothingFirst, (IMAGE,), (ANY,), "its first output is not a tensor"),
    "bytes": (Bytes, (torch.zeros(4, 1, 8, 8, dtype=torch.uint8),), (ANY,), "input x takes uint8 [batch, 1, 8, 8]"),
}
# Models that Sinew refuses only when it runs them.
WHEN_RUN = {"clamped_view": (ClampedView, (IMAGE,), (ANY,), "the program writes to its parameter head.weight")}
TRAINED = {"shared_norm": (SharedNorm, (IMAGE,), (ANY,), ""),
           "erasing": (Erasing, (IMAGE, IMAGE.clone()), (ANY, ANY), ""),
           "branching": (Branching, (IMAGE,), ({0: torch.export.Dim("batch", max=8)},), "")}


def write(name, folder):
    make, arguments, shapes, _ = {**REFUSED, **WHEN_RUN, **TRAINED}[name]
    torch.manual_seed(1)
    exported = torch.export.export(make().train(), arguments, dynamic_shapes=shapes)
    torch.export.save(exported, folder / f"{name}.pt2")
    return folder / f"{name}.pt2"
