"""Defines programs for kinds of weights: shared, generated, normalised, frozen, low rank, rounded; and buffers that the
forward pass changes."""
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.parametrizations import weight_norm

from common import integers, normal, program


def rows(n, classes=5):
    return (normal(n, 12),), integers(classes, n)


class WeightNormalized(nn.Module):
    def __init__(self, classes=5):
        super().__init__()
        self.body = nn.Sequential(weight_norm(nn.Linear(12, 24)), nn.ReLU(), weight_norm(nn.Linear(24, 16), dim=None))
        self.head = weight_norm(nn.Conv1d(1, classes, 16))

    def forward(self, x):
        return self.head(self.body(x).unsqueeze(1)).squeeze(-1)


class Symmetric(nn.Module):
    def forward(self, x):
        return x.triu() + x.triu(1).transpose(-1, -2)


class Skewed(nn.Module):
    def forward(self, x):
        return torch.matrix_exp(x.triu(1) - x.triu(1).mT)


class Parametrized(nn.Module):
    """The weight of one layer always stays symmetric, and the weight of the other layer orthogonal."""

    def __init__(self, classes=5):
        super().__init__()
        self.symmetric = nn.utils.parametrize.register_parametrization(nn.Linear(12, 12), "weight", Symmetric())
        self.orthogonal = nn.utils.parametrize.register_parametrization(nn.Linear(12, 12), "weight", Skewed())
        self.head = nn.Linear(12, classes)

    def forward(self, x):
        return self.head(torch.tanh(self.orthogonal(torch.tanh(self.symmetric(x)))))


class Siamese(nn.Module):
    """Uses one encoder twice. The output scores how similar the two results are."""

    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Conv2d(1, 6, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(6 * 9, 12))
        self.scale = nn.Linear(2, 1)

    def forward(self, pair):
        left, right = (self.encoder(image) for image in pair)
        near = torch.stack([F.cosine_similarity(left, right), -F.pairwise_distance(left, right)], dim=1)
        return torch.sigmoid(self.scale(near)).squeeze(1)


class LayerSharing(nn.Module):
    """ALBERT: one transformer layer applied three times, factorised embeddings."""

    def __init__(self, vocabulary=40, width=16, classes=3):
        super().__init__()
        self.small, self.enlarge = nn.Embedding(vocabulary, 4), nn.Linear(4, width)
        self.layer = nn.TransformerEncoderLayer(width, 2, 32, dropout=0.0, activation=F.gelu, batch_first=True)
        self.head = nn.Linear(width, classes)

    def forward(self, ids):
        x = self.enlarge(self.small(ids))
        for _ in range(3):
            x = self.layer(x)
        return self.head(x[:, 0])


class HyperNetwork(nn.Module):
    """Generates each sample's own convolution from its code, and computes all as one grouped convolution over the
    batch."""

    def __init__(self, channels=4, classes=5):
        super().__init__()
        self.channels = channels
        self.generate = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, channels * 9 + channels))
        self.head = nn.Linear(channels, classes)

    def forward(self, image, code):
        n, _, height, width = image.shape
        weight, bias = self.generate(code).split([self.channels * 9, self.channels], dim=1)
        weight = weight.reshape(n * self.channels, 1, 3, 3)
        out = F.conv2d(image.reshape(1, n, height, width), weight, bias.reshape(-1), padding=1, groups=n)
        return self.head(out.view(n, self.channels, height, width).relu().mean((2, 3)))


class LowRank(nn.Module):
    """A frozen network with trained low-rank additions, as in the fine-tuning of large models (LoRA)."""

    def __init__(self, rank=2, classes=5):
        super().__init__()
        self.base = nn.Sequential(nn.Linear(12, 24), nn.BatchNorm1d(24), nn.ReLU(), nn.Linear(24, classes))
        self.base.requires_grad_(False)
        self.down = nn.ParameterList(torch.randn(rank, size) * 0.2 for size in (12, 24))
        self.up = nn.ParameterList(torch.randn(size, rank) * 0.02 for size in (24, classes))

    def forward(self, x):
        first, norm, act, second = self.base
        x = act(norm(first(x) + x @ self.down[0].T @ self.up[0].T * 2.0))
        return second(x) + F.linear(F.linear(x, self.down[1]), self.up[1]) * 2.0


class FineTuned(nn.Module):
    """A frozen backbone in eval mode with a new head that is trained."""

    def __init__(self, classes=5):
        super().__init__()
        self.backbone = nn.Sequential(nn.Conv2d(1, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.AdaptiveAvgPool2d(2))
        self.backbone.requires_grad_(False)
        self.head = nn.Sequential(nn.Flatten(), nn.Linear(32, classes))

    def train(self, mode=True):
        super().train(mode)
        self.backbone.eval()
        return self

    def forward(self, x):
        with torch.no_grad():
            features = self.backbone(x)
        return self.head(features)


class Quantized(nn.Module):
    """Quantization-aware training: rounding with straight-through gradients, scales learned or measured."""

    def __init__(self, classes=5):
        super().__init__()
        self.first, self.second = nn.Linear(12, 24), nn.Linear(24, classes)
        self.step = nn.Parameter(torch.tensor(0.1))

    def rounded(self, weight):
        scale = weight.detach().abs().amax(dim=1, keepdim=True) / 7
        return weight + ((weight / scale).round().clamp(-8, 7) * scale - weight).detach()

    def forward(self, x):
        x = torch.clamp(x / self.step, -128, 127)
        x = (x + (x.round() - x).detach()) * self.step
        x = F.relu6(F.linear(x, self.rounded(self.first.weight), self.first.bias))
        return F.linear(x, self.rounded(self.second.weight), self.second.bias)


class MovingPrototypes(nn.Module):
    """A buffer of class centres follows the features: the forward pass writes it by index."""

    def __init__(self, classes=5, width=8):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(12, 16), nn.ReLU(), nn.Linear(16, width))
        self.register_buffer("centers", torch.randn(classes, width))
        self.register_buffer("count", torch.zeros(classes))

    def forward(self, x, label):
        features = self.encoder(x)
        logits = -torch.cdist(features, self.centers.clone())
        self.centers.index_copy_(0, label, 0.9 * self.centers[label] + 0.1 * features.detach())
        self.count.index_add_(0, label, torch.ones_like(label, dtype=torch.float))
        return F.cross_entropy(logits, label), logits


class MomentumContrast(nn.Module):
    """MoCo: buffers have a slowly following copy of the encoder, and a queue of its earlier keys as negatives."""

    def __init__(self, width=8, queue=16, momentum=0.9):
        super().__init__()
        self.momentum = momentum
        self.query = nn.Linear(12, width)
        self.register_buffer("slow_weight", self.query.weight.detach().clone())
        self.register_buffer("slow_bias", self.query.bias.detach().clone())
        self.register_buffer("queue", F.normalize(torch.randn(queue, width), dim=1))

    def forward(self, view, other):
        self.slow_weight.mul_(self.momentum).add_(self.query.weight.detach(), alpha=1 - self.momentum)
        self.slow_bias.copy_(self.momentum * self.slow_bias + (1 - self.momentum) * self.query.bias.detach())
        queries = F.normalize(self.query(view), dim=1)
        keys = F.normalize(F.linear(other, self.slow_weight, self.slow_bias), dim=1).detach()
        positive = torch.einsum("nc,nc->n", queries, keys).unsqueeze(-1)
        logits = torch.cat([positive, queries @ self.queue.clone().t()], dim=1) / 0.2
        self.queue.copy_(torch.cat([keys[:4], self.queue[:-4]]))
        return F.cross_entropy(logits, torch.zeros(logits.size(0), dtype=torch.long))


def pair_data(n):
    return ((normal(n, 1, 8, 8), normal(n, 1, 8, 8)),), integers(2, n).float()


def labelled(n):
    label = integers(5, n)
    return (normal(n, 12), label), label


def views(n):
    x = normal(n, 12)
    return (x + 0.1 * normal(n, 12), x), x


program("weight_norm", "weights", WeightNormalized, rows)
program("parametrized_weights", "weights", Parametrized, rows)
program("siamese_pair", "weights", Siamese, pair_data, loss="mse")
program("layer_sharing", "weights", LayerSharing, lambda n: ((integers(40, n, 7),), integers(3, n)))
program("hypernetwork", "weights", HyperNetwork, lambda n: ((normal(n, 1, 6, 6), normal(n, 6)), integers(5, n)))
program("low_rank_adapters", "weights", LowRank, rows)
program("frozen_backbone", "weights", FineTuned, lambda n: ((normal(n, 1, 8, 8),), integers(5, n)))
program("quantization_aware", "weights", Quantized, rows)
program("moving_prototypes", "weights", MovingPrototypes, labelled, loss="output", dynamic=False)
program("momentum_contrast", "weights", MomentumContrast, views, loss="output",
        dynamic=lambda _: {name: {0: torch.export.Dim("batch", min=4)} for name in ("view", "other")})
