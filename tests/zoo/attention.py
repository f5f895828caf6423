"""Defines programs with less usual kinds of attention: linear, with relative positions, with its weights as an output,
with convolutions."""
import math

import torch
import torch.nn.functional as F
from torch import nn

from common import integers, normal, padded_ids, program


def sequences(n, classes=4):
    return (normal(n, 8, 12),), integers(classes, n)


def tokens(n, vocabulary=30, length=8):
    ids = integers(vocabulary, n, length + 1)
    return (ids[:, :-1].contiguous(),), ids[:, 1:].contiguous()


class LinearAttention(nn.Module):
    """Causal attention by cumulative sums of outer products."""

    def __init__(self, vocabulary=30, width=16, heads=2):
        super().__init__()
        self.heads = heads
        self.embedding = nn.Embedding(vocabulary, width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.head = nn.Linear(width, vocabulary)

    def forward(self, ids):
        x = self.embedding(ids)
        q, k, v = (part.unflatten(-1, (self.heads, -1)) for part in self.qkv(x).chunk(3, dim=-1))
        q, k = F.elu(q) + 1, F.elu(k) + 1
        memory = torch.einsum("nlhd,nlhe->nlhde", k, v).cumsum(dim=1)
        weight = torch.einsum("nlhd,nlhd->nlh", q, k.cumsum(dim=1)).clamp_min(1e-6)
        y = torch.einsum("nlhd,nlhde->nlhe", q, memory) / weight.unsqueeze(-1)
        return self.head(x + self.out(y.flatten(2)))


class RandomFeatures(nn.Module):
    """Softmax attention approximated with fixed random features."""

    def __init__(self, width=12, features=16, classes=4):
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))
        self.register_buffer("projection", torch.randn(features, width))
        self.head = nn.Linear(width, classes)

    def feature(self, x):
        x = x * x.size(-1) ** -0.25
        logits = x @ self.projection.T - 0.5 * x.square().sum(-1, keepdim=True)
        return torch.exp(logits - logits.amax(dim=(-2, -1), keepdim=True)) + 1e-4

    def forward(self, x):
        q, k = self.feature(self.query(x)), self.feature(self.key(x))
        context = k.transpose(1, 2) @ self.value(x)
        normalizer = (q @ k.sum(dim=1).unsqueeze(-1)).reciprocal()
        return self.head((q @ context * normalizer).mean(1))


class RelativeBuckets(nn.Module):
    """T5's attention: logarithmic buckets of distance, computed in integers."""

    def __init__(self, vocabulary=30, width=16, heads=2, buckets=8, most=12):
        super().__init__()
        self.heads, self.buckets, self.most = heads, buckets, most
        self.embedding, self.bias = nn.Embedding(vocabulary, width), nn.Embedding(buckets, heads)
        self.q, self.k, self.v, self.o = (nn.Linear(width, width, bias=False) for _ in range(4))
        self.head = nn.Linear(width, vocabulary)

    def bucket(self, distance):
        half = self.buckets // 2
        sign = (distance > 0).to(torch.long) * half
        distance = distance.abs()
        exact = half // 2
        large = exact + (torch.log(distance.float() / exact) / math.log(self.most / exact) * (half - exact)).long()
        return sign + torch.where(distance < exact, distance, torch.minimum(large, torch.full_like(large, half - 1)))

    def forward(self, ids):
        x = self.embedding(ids)
        n, length = ids.shape
        places = torch.arange(length)
        bias = self.bias(self.bucket(places[None, :] - places[:, None])).permute(2, 0, 1).unsqueeze(0)
        q, k, v = (f(x).view(n, length, self.heads, -1).transpose(1, 2) for f in (self.q, self.k, self.v))
        weights = F.softmax((torch.matmul(q, k.transpose(3, 2)) + bias).float(), dim=-1).type_as(x)
        return self.head(x + self.o((weights @ v).transpose(1, 2).contiguous().view(n, length, -1)))


class WeightedPooling(nn.Module):
    """nn.MultiheadAttention with a padding mask; its averaged weights are an output."""

    def __init__(self, vocabulary=30, width=16, classes=4):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width, padding_idx=0, scale_grad_by_freq=True)
        self.attention = nn.MultiheadAttention(width, 4, batch_first=True, kdim=width, vdim=width, add_bias_kv=True)
        self.query = nn.Parameter(torch.randn(1, 1, width))
        self.head = nn.Linear(width, classes)

    def forward(self, ids):
        x = self.embedding(ids)
        pooled, weights = self.attention(self.query.expand(ids.size(0), 1, -1), x, x, key_padding_mask=ids.eq(0))
        return self.head(pooled.squeeze(1)), weights.squeeze(1)


class Retention(nn.Module):
    """Decay in place of softmax, group norm over heads, and a swish gate."""

    def __init__(self, vocabulary=30, width=16, heads=4):
        super().__init__()
        self.heads = heads
        self.embedding = nn.Embedding(vocabulary, width)
        self.qkvg, self.out = nn.Linear(width, 4 * width, bias=False), nn.Linear(width, width, bias=False)
        self.norm = nn.GroupNorm(heads, width, affine=False)
        self.register_buffer("decay", (1 - torch.exp2(-5.0 - torch.arange(heads))).log())
        self.head = nn.Linear(width, vocabulary)

    def forward(self, ids):
        x = self.embedding(ids)
        n, length, width = x.shape
        q, k, v, g = self.qkvg(x).tensor_split(4, dim=-1)
        q, k, v = (part.reshape(n, length, self.heads, -1).movedim(2, 1) for part in (q, k, v))
        places = torch.arange(length)
        distance = (places.unsqueeze(1) - places).tril()
        decay = torch.tril(torch.exp(distance * self.decay[:, None, None]))
        y = (q @ k.mT * decay) @ v
        y = self.norm(y.movedim(1, 2).reshape(n * length, width)).view(n, length, width)
        return self.head(x + self.out(F.silu(g) * y))


class Conformer(nn.Module):
    """Half-step feed-forwards around attention and a gated convolution."""

    def __init__(self, width=12, classes=4):
        super().__init__()
        self.feed1, self.feed2 = (nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 24), nn.SiLU(), nn.Dropout(0.0),
                                                nn.Linear(24, width)) for _ in range(2))
        self.attention_norm, self.attention = nn.LayerNorm(width), nn.MultiheadAttention(width, 2, batch_first=True)
        self.convolution = nn.Sequential(
            nn.Conv1d(width, 2 * width, 1), nn.GLU(dim=1), nn.Conv1d(width, width, 3, padding=1, groups=width),
            nn.BatchNorm1d(width), nn.SiLU(), nn.Conv1d(width, width, 1))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, classes)

    def forward(self, x):
        x = x + 0.5 * self.feed1(x)
        y = self.attention_norm(x)
        x = x + self.attention(y, y, y)[0]
        x = x + self.convolution(x.transpose(1, 2)).transpose(1, 2)
        x = x + 0.5 * self.feed2(x)
        return self.head(self.norm(x).mean(dim=1))


class MaskedAttention(nn.Module):
    """Scaled dot products with masks as inputs: a float bias, and a boolean mask of allowed pairs."""

    def __init__(self, width=12, classes=4):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(width, width) for _ in range(3))
        self.head = nn.Linear(width, classes)

    def forward(self, x, bias, allowed):
        q, k, v = (f(x).unflatten(-1, (2, -1)).transpose(1, 2) for f in (self.q, self.k, self.v))
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=bias.unsqueeze(1))
        y = y + F.scaled_dot_product_attention(q, k, y, attn_mask=allowed[:, None])
        return self.head(y.transpose(1, 2).flatten(2).mean(1))


def masks(n):
    allowed = (torch.rand(n, 8, 8) < 0.6) | torch.eye(8, dtype=torch.bool)
    return (normal(n, 8, 12), normal(n, 8, 8), allowed), integers(4, n)


program("attention_linear", "attention", LinearAttention, tokens)
program("attention_random_features", "attention", RandomFeatures, sequences)
program("attention_relative_buckets", "attention", RelativeBuckets, tokens)
program("attention_weights_output", "attention", WeightedPooling,
        lambda n: ((padded_ids(30, n, 8),), integers(4, n)))
program("attention_retention", "attention", Retention, tokens)
program("attention_conformer", "attention", Conformer, sequences)
program("attention_masks", "attention", MaskedAttention, masks)
