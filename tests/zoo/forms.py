"""Defines programs for the forms that a graph can take: branches, blocks without gradients, constants, nested inputs
and outputs, other dtypes."""
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

from common import integers, normal, program


def rows(n, classes=5):
    return (normal(n, 12),), integers(classes, n)


class Conditional(nn.Module):
    """torch.cond on a value: large inputs take another branch."""

    def __init__(self, classes=5):
        super().__init__()
        self.near, self.far = nn.Linear(12, 16), nn.Linear(12, 16)
        self.head = nn.Linear(16, classes)

    def forward(self, x):
        def near(x):
            return torch.relu(self.near(x))

        def far(x):
            return torch.tanh(self.far(x)) + x.sum(1, keepdim=True)

        return self.head(torch.cond(x.abs().mean() < 5.0, near, far, (x,)))


class ConditionalShape(nn.Module):
    """torch.cond on the batch size."""

    def __init__(self, classes=5):
        super().__init__()
        self.body, self.head = nn.Linear(12, 16), nn.Linear(16, classes)

    def forward(self, x):
        x = self.body(x)
        x = torch.cond(x.shape[0] > 6, lambda x: x - x.mean(0), lambda x: x.clone(), (x,))
        return self.head(F.gelu(x))


class Checkpointed(nn.Module):
    """Computes each block's activations again in the backward pass. The blocks have no BatchNorm."""

    def __init__(self, classes=5):
        super().__init__()
        self.blocks = nn.ModuleList(nn.Sequential(nn.Linear(12, 24), nn.GELU(), nn.Linear(24, 12)) for _ in range(2))
        self.head = nn.Linear(12, classes)

    def forward(self, x):
        for block in self.blocks:
            x = checkpoint(lambda x, block=block: x + block(x), x, use_reentrant=False)
        return self.head(x)


class WithoutGradients(nn.Module):
    """Blocks under no_grad and under disabled autocast, as attention code uses them to keep positions precise."""

    def __init__(self, classes=5):
        super().__init__()
        self.body, self.head = nn.Linear(12, 16), nn.Linear(16, classes)

    @torch.no_grad()
    def statistics(self, x):
        return x.mean(0, keepdim=True), x.std(0, keepdim=True) + 1e-3

    def forward(self, x):
        mean, deviation = self.statistics(x)
        with torch.autocast("cpu", enabled=False):
            x = self.body((x.float() - mean) / deviation)
        return self.head(F.silu(x))


class LowPrecision(nn.Module):
    """Blocks under enabled autocast: they cast the weights again at every step."""

    def __init__(self, classes=5):
        super().__init__()
        self.body, self.head = nn.Linear(12, 16), nn.Linear(16, classes)

    def forward(self, x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            x = self.body(x)
        x = F.silu(x.float())
        with torch.autocast("cpu", dtype=torch.bfloat16):
            x = self.head(x)
        return x.float()


class FixedFilters(nn.Module):
    """One constant tensor is made in forward, another is kept as a plain attribute."""

    def __init__(self, classes=5):
        super().__init__()
        self.blur = torch.full((1, 1, 3, 3), 1 / 9)
        self.conv, self.head = nn.Conv2d(3, 8, 3), nn.Linear(8, classes)

    def forward(self, x):
        sobel = torch.tensor([[-1.0, 0.0, 1.0], [-2.0, 0.0, 2.0], [-1.0, 0.0, 1.0]])
        edges = torch.stack([sobel, sobel.t()]).unsqueeze(1)
        x = torch.cat([F.conv2d(x, edges, padding=1), F.conv2d(x, self.blur, padding=1)], dim=1)
        return self.head(F.hardtanh(self.conv(x)).amax((-2, -1)))


class ByteImages(nn.Module):
    """Takes stored images: bytes with the channels last. Normalises inside."""

    def __init__(self, classes=5):
        super().__init__()
        self.register_buffer("mean", torch.tensor([0.485, 0.456, 0.406]).view(3, 1, 1))
        self.register_buffer("std", torch.tensor([0.229, 0.224, 0.225]).view(3, 1, 1))
        self.body = nn.Sequential(nn.Conv2d(3, 8, 3, stride=2), nn.ReLU(inplace=True), nn.AdaptiveAvgPool2d(1))
        self.head = nn.Linear(8, classes)

    def forward(self, image):
        x = (image.permute(0, 3, 1, 2).to(torch.float32) / 255.0 - self.mean) / self.std
        return self.head(self.body(x).flatten(1))


class NestedInputs(nn.Module):
    """Inputs: a list in a dict beside a tuple, a number, a string and None."""

    def __init__(self, classes=5):
        super().__init__()
        self.views = nn.ModuleList(nn.Linear(6, 12) for _ in range(2))
        self.ids = nn.Embedding(9, 12)
        self.head = nn.Linear(12, classes)

    def forward(self, batch, extra, power=2, mask=None, mode="sum"):
        x = sum(layer(view) for layer, view in zip(self.views, batch["views"]))
        x = x + self.ids(batch["ids"].int()) * extra[0].unsqueeze(1)
        if mask is not None:
            x = x * mask
        x = torch.tanh(x) ** power + extra[1]
        logits = self.head(x)
        return {"logits": logits, "hidden": (x, [x.norm(dim=1), None]), "total": logits.sum(1 if mode == "sum" else 0)}


class BilinearMatch(nn.Module):
    """nn.Bilinear, a bilinear form by einsum, an outer product pooled."""

    def __init__(self, classes=4):
        super().__init__()
        self.bilinear = nn.Bilinear(6, 5, 12)
        self.form = nn.Parameter(torch.randn(3, 6, 5) * 0.2)
        self.head = nn.Linear(12 + 3 + 30, classes)

    def forward(self, left, right):
        forms = torch.einsum("bi,kij,bj->bk", left, self.form, right)
        outer = torch.einsum("bi,bj->bij", left, right).flatten(1)
        outer = F.normalize(outer.sign() * torch.sqrt(outer.abs() + 1e-6), dim=1)
        return self.head(torch.cat([torch.relu(self.bilinear(left, right)), forms, outer], dim=1))


class MultiHeadOutputs(nn.Module):
    """Several heads on one body: a class, boxes, a mask and an embedding."""

    def __init__(self, classes=5):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU())
        self.classes, self.box = nn.Linear(8, classes), nn.Linear(8, 4)
        self.mask, self.embed = nn.Conv2d(8, 1, 1), nn.Linear(8, 6)

    def forward(self, x):
        features = self.body(x)
        pooled = features.mean(dim=[2, 3])
        return self.classes(pooled), self.box(pooled).sigmoid(), (self.mask(features), F.normalize(self.embed(pooled)))


class InPlace(nn.Module):
    """Writes into parts of tensors: slices, masked positions, views. Gradients flow through the writes."""

    def __init__(self, classes=5):
        super().__init__()
        self.first, self.second, self.head = nn.Linear(12, 16), nn.Linear(8, 8), nn.Linear(16, classes)

    def forward(self, x):
        x = self.first(x)
        out = torch.empty_like(x)
        out[:, :8] = self.second(x[:, :8].relu())
        out[:, 8:] = x[:, 8:] * 2
        out[:, ::4].mul_(0.5)
        out = out.clone()
        out[out < -1.0] = -1.0
        out.view(-1, 4, 4)[:, 1].add_(x[:, :4].tanh())
        return self.head(out.clamp_(max=3.0))


class IntegerWork(nn.Module):
    """Arithmetic on labels before they are looked up: comparisons, one-hot, argsort, isin, cumulative counts."""

    def __init__(self, vocabulary=20, width=8, classes=4):
        super().__init__()
        self.embedding, self.rank = nn.Embedding(vocabulary, width), nn.Embedding(6, width)
        self.head = nn.Linear(width + 6, classes)

    def forward(self, ids):
        special = torch.isin(ids, torch.tensor([0, 3, 7]))
        rank = ids.argsort(dim=1, stable=True).argsort(dim=1)
        segment = (ids % 5 == 0).long().cumsum(dim=1).clamp(max=5)
        counts = F.one_hot(segment, 6).sum(dim=1).float() / ids.shape[1]
        x = self.embedding(torch.where(special, torch.zeros_like(ids), ids)) + self.rank(rank.flip(-1))
        x = x * (~special).unsqueeze(-1) + 0.5 * x.roll(1, dims=1)
        return self.head(torch.cat([x.mean(1), counts.log1p()], dim=1))


class HalfBatches(nn.Module):
    """Arithmetic on the batch size: one half of the batch is compared with the other."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(12, 16), nn.Softplus(), nn.Linear(16, 6))

    def forward(self, x):
        n = x.size(0)
        half = n // 2
        z = self.body(x)
        first, second = z[:half], z.narrow(0, n - half, half)
        order = torch.arange(half - 1, -1, -1, device=x.device)
        pairs = (first * second[order]).sum() / (half + 1)
        near = torch.ones(half, half).triu(1) * (first @ second.t())
        return F.softplus(-pairs) + near.square().sum() / (half * (half - 1) / 2 + 1) + z.sum() ** 2 / n


def halves(n):
    x = normal(n, 12)
    return (x,), x


def nested(n):
    batch = {"views": [normal(n, 6), normal(n, 6)], "ids": integers(9, n)}
    return (batch, (normal(n), normal(n, 12)), 3, None, "sum"), integers(5, n)


program("cond_on_value", "form", Conditional, rows)
program("cond_on_shape", "form", ConditionalShape, rows)
program("checkpointed_blocks", "form", Checkpointed, rows)
program("without_gradients", "form", WithoutGradients, rows)
program("low_precision_blocks", "form", LowPrecision, rows)
program("fixed_filters", "form", FixedFilters, lambda n: ((normal(n, 1, 8, 8),), integers(5, n)))
program("byte_images", "form", ByteImages, lambda n: ((integers(256, n, 9, 9, 3).byte(),), integers(5, n)))
program("nested_inputs", "form", NestedInputs, nested)
program("bilinear_match", "form", BilinearMatch, lambda n: ((normal(n, 6), normal(n, 5)), integers(4, n)))
program("many_outputs", "form", MultiHeadOutputs, lambda n: ((normal(n, 1, 6, 6),), integers(5, n)))
program("in_place_writes", "form", InPlace, rows)
program("half_batches", "form", HalfBatches, halves, loss="output", batch=9, other=6,
        dynamic=lambda _: {"x": {0: torch.export.Dim.DYNAMIC(min=4)}})
program("integer_work", "form", IntegerWork, lambda n: ((integers(20, n, 6),), integers(4, n)))
