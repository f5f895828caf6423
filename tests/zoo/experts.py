"""Defines mixtures of experts, with gates that are dense, sparse, of limited capacity, or separate for each task."""
import torch
import torch.nn.functional as F
from torch import nn

from common import integers, normal, program


def tokens(n, vocabulary=30, length=6):
    ids = integers(vocabulary, n, length + 1)
    return (ids[:, :-1].contiguous(),), ids[:, 1:].contiguous()


def expert(width, hidden, dropout=0.0):
    return nn.Sequential(nn.Linear(width, hidden), nn.GELU(), nn.Dropout(dropout), nn.Linear(hidden, width))


class DenseTopK(nn.Module):
    """Every expert computes everything; all but the best k gates are zero."""

    def __init__(self, vocabulary=30, width=16, experts=4, k=2, dropout=0.0):
        super().__init__()
        self.k = k
        self.embedding, self.norm = nn.Embedding(vocabulary, width), nn.LayerNorm(width)
        self.gate = nn.Linear(width, experts, bias=False)
        self.experts = nn.ModuleList(expert(width, 24, dropout) for _ in range(experts))
        self.head = nn.Linear(width, vocabulary)

    def forward(self, ids):
        x = self.embedding(ids)
        y = self.norm(x)
        scores, chosen = self.gate(y).topk(self.k, dim=-1)
        gates = torch.zeros(*y.shape[:-1], len(self.experts)).scatter_(-1, chosen, scores.softmax(dim=-1))
        outputs = torch.stack([one(y) for one in self.experts], dim=-1)
        return self.head(x + (outputs * gates.unsqueeze(-2)).sum(dim=-1))


class SparseDispatch(nn.Module):
    """Mixtral's dispatch: each expert gets the tokens that chose it. Their number is known only when the program runs.
    """

    def __init__(self, vocabulary=30, width=16, experts=3, k=2):
        super().__init__()
        self.k = k
        self.embedding, self.gate = nn.Embedding(vocabulary, width), nn.Linear(width, experts, bias=False)
        self.experts = nn.ModuleList(expert(width, 24) for _ in range(experts))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary)

    def forward(self, ids):
        x = self.embedding(ids)
        flat = x.reshape(-1, x.size(-1))
        weights, chosen = torch.topk(F.softmax(self.gate(flat), dim=1), self.k, dim=-1)
        weights = weights / weights.sum(dim=-1, keepdim=True)
        out = torch.zeros_like(flat)
        for index, one in enumerate(self.experts):
            rows, places = torch.where(chosen == index)
            out.index_add_(0, rows, one(flat[rows]) * weights[rows, places, None])
        return self.head(self.norm(x + out.view(x.shape)))


class SwitchCapacity(nn.Module):
    """Each token goes to one expert, and an expert takes a limited number of tokens. An auxiliary loss balances the
    experts. The graph returns the loss."""

    def __init__(self, width=12, experts=4, capacity=3, classes=5):
        super().__init__()
        self.experts, self.capacity = experts, capacity
        self.gate = nn.Linear(width, experts)
        self.up = nn.Parameter(torch.randn(experts, width, 24) * 0.2)
        self.down = nn.Parameter(torch.randn(experts, 24, width) * 0.2)
        self.head = nn.Linear(width, classes)

    def forward(self, x, label):
        gates = F.softmax(self.gate(x), dim=-1)
        weight, index = gates.max(dim=-1)
        chosen = F.one_hot(index, num_classes=self.experts)
        place = (torch.cumsum(chosen, dim=1) * chosen).sum(-1) - 1
        kept = (place < self.capacity).float() * weight
        slots = F.one_hot(place.clamp(max=self.capacity - 1), self.capacity).float()
        dispatch = torch.einsum("nte,ntc->ntec", chosen.float(), slots) * (place < self.capacity)[..., None, None]
        given = torch.einsum("ntec,ntd->necd", dispatch, x)
        made = torch.einsum("nech,ehd->necd", F.relu(torch.einsum("necd,edh->nech", given, self.up)), self.down)
        y = x + torch.einsum("ntec,necd->ntd", dispatch * kept[..., None, None], made)
        balance = self.experts * (chosen.float().mean((0, 1)) * gates.mean((0, 1))).sum()
        return F.cross_entropy(self.head(y.mean(1)), label) + 0.01 * balance


class MultiGate(nn.Module):
    """The tasks share the experts, and each task has its own gate. Only the first of the two outputs has a loss."""

    def __init__(self, width=12, experts=3):
        super().__init__()
        self.experts = nn.ModuleList(nn.Sequential(nn.Linear(width, 16), nn.ReLU()) for _ in range(experts))
        self.gates = nn.ModuleDict({task: nn.Linear(width, experts) for task in ("click", "watch")})
        self.towers = nn.ModuleDict({"click": nn.Linear(16, 2), "watch": nn.Linear(16, 1)})

    def forward(self, x):
        shared = torch.stack([one(x) for one in self.experts], dim=1)
        out = {}
        for task, gate in self.gates.items():
            out[task] = self.towers[task](torch.einsum("ne,neh->nh", gate(x).softmax(-1), shared))
        return out["click"], out["watch"].squeeze(-1)


class SoftExperts(nn.Module):
    """Slots are weighted means of all tokens, and tokens are weighted means of all slots."""

    def __init__(self, width=12, experts=3, slots=2, classes=5):
        super().__init__()
        self.queries = nn.Parameter(torch.randn(width, experts, slots) * 0.1)
        self.experts = nn.ModuleList(expert(width, 16) for _ in range(experts))
        self.head = nn.Linear(width, classes)

    def forward(self, x):
        logits = torch.einsum("ntd,des->ntes", x, self.queries)
        slots = torch.einsum("ntes,ntd->nesd", logits.softmax(dim=1), x)
        slots = torch.stack([one(slot) for one, slot in zip(self.experts, slots.unbind(1))], dim=1)
        combine = logits.flatten(2).softmax(dim=-1)
        return self.head((x + combine @ slots.flatten(1, 2)).mean(1))


def labelled(n):
    label = integers(5, n)
    return (normal(n, 6, 12), label), label


program("experts_dense_topk", "experts", DenseTopK, tokens)
program("experts_sparse_dispatch", "experts", SparseDispatch, tokens)
program("experts_switch_capacity", "experts", SwitchCapacity, labelled, loss="output")
program("experts_multi_gate", "experts", MultiGate, lambda n: ((normal(n, 12),), integers(2, n)))
program("experts_soft", "experts", SoftExperts, lambda n: ((normal(n, 6, 12),), integers(5, n)))
