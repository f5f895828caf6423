"""Defines models that read images as sequences: ViT, windows, mixers, latents, queries, masked autoencoders."""
import torch
import torch.nn.functional as F
from torch import nn

from common import integers, normal, program, uniform


def images(n):
    return (normal(n, 3, 8, 8),), integers(10, n)


class Attention(nn.Module):
    def __init__(self, width, heads=2, dropout=0.0):
        super().__init__()
        self.heads, self.scale, self.dropout = heads, (width // heads) ** -0.5, dropout
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x, bias=None):
        n, length, width = x.shape
        qkv = self.qkv(x).reshape(n, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        q, k, v = qkv.unbind(0)
        scores = (q * self.scale) @ k.transpose(-2, -1)
        weights = (scores if bias is None else scores + bias).softmax(dim=-1)
        weights = F.dropout(weights, self.dropout, self.training)
        return self.proj((weights @ v).transpose(1, 2).reshape(n, length, width))


class Block(nn.Module):
    def __init__(self, width, dropout=0.0):
        super().__init__()
        self.norm1, self.attention, self.norm2 = nn.LayerNorm(width), Attention(width, 2, dropout), nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Dropout(dropout),
                                 nn.Linear(2 * width, width), nn.Dropout(dropout))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class VisionTransformer(nn.Module):
    def __init__(self, width=16, depth=2, patch=2, classes=10, dropout=0.0):
        super().__init__()
        self.patches = nn.Conv2d(3, width, patch, stride=patch)
        self.cls = nn.Parameter(torch.zeros(1, 1, width))
        self.position = nn.Parameter(torch.randn(1, 17, width) * 0.02)
        self.blocks = nn.Sequential(*(Block(width, dropout) for _ in range(depth)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, classes)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.cls.expand(x.shape[0], -1, -1), x], dim=1) + self.position
        return self.head(self.norm(self.blocks(x))[:, 0])


class WindowBlock(nn.Module):
    """Attention within windows of a rolled image, with a learned bias for every relative position."""

    def __init__(self, width, size=8, window=4, shift=0, heads=2):
        super().__init__()
        self.window, self.shift = window, shift
        self.norm, self.attention = nn.LayerNorm(width), Attention(width, heads)
        self.table = nn.Parameter(torch.randn((2 * window - 1) ** 2, heads) * 0.02)
        places = torch.stack(torch.meshgrid(torch.arange(window), torch.arange(window), indexing="ij")).flatten(1)
        relative = places[:, :, None] - places[:, None, :] + window - 1
        self.register_buffer("index", relative[0] * (2 * window - 1) + relative[1])
        regions = torch.zeros(1, size, size, 1)
        parts = (slice(0, -window), slice(-window, -shift or None), slice(-shift or size, None))
        for i, rows in enumerate(parts):
            for j, columns in enumerate(parts):
                regions[:, rows, columns] = 3 * i + j
        regions = self.split(regions).squeeze(-1)
        mask = regions[:, None, :] != regions[:, :, None]
        self.register_buffer("mask", torch.zeros(mask.shape).masked_fill(mask, -100.0), persistent=False)

    def split(self, x):
        n, height, width, channels = x.shape
        w = self.window
        x = x.view(n, height // w, w, width // w, w, channels).permute(0, 1, 3, 2, 4, 5)
        return x.reshape(-1, w * w, channels)

    def forward(self, x):
        n, height, width, channels = x.shape
        shifted = torch.roll(self.norm(x), (-self.shift, -self.shift), dims=(1, 2))
        bias = self.table[self.index].permute(2, 0, 1) + self.mask.unsqueeze(1)
        windows = self.attention(self.split(shifted), bias.repeat(n, 1, 1, 1))
        w = self.window
        windows = windows.view(n, height // w, width // w, w, w, channels).permute(0, 1, 3, 2, 4, 5)
        return x + torch.roll(windows.reshape(n, height, width, channels), (self.shift, self.shift), dims=(1, 2))


class PatchMerging(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm, self.reduce = nn.LayerNorm(4 * width), nn.Linear(4 * width, 2 * width, bias=False)

    def forward(self, x):
        x = torch.cat([x[:, 0::2, 0::2], x[:, 1::2, 0::2], x[:, 0::2, 1::2], x[:, 1::2, 1::2]], -1)
        return self.reduce(self.norm(x))


class WindowTransformer(nn.Module):
    def __init__(self, width=8, classes=10):
        super().__init__()
        self.embed = nn.Conv2d(3, width, 1)
        self.stages = nn.Sequential(WindowBlock(width), WindowBlock(width, shift=2), PatchMerging(width))
        self.head = nn.Linear(2 * width, classes)

    def forward(self, x):
        return self.head(self.stages(self.embed(x).permute(0, 2, 3, 1)).mean(dim=(1, 2)))


class MixerBlock(nn.Module):
    def __init__(self, width, length, hidden=24):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.tokens = nn.Sequential(nn.Linear(length, hidden), nn.GELU(), nn.Linear(hidden, length))
        self.channels = nn.Sequential(nn.Linear(width, hidden), nn.GELU(), nn.Linear(hidden, width))

    def forward(self, x):
        x = x + self.tokens(self.norm1(x).mT).mT
        return x + self.channels(self.norm2(x))


class Mixer(nn.Module):
    def __init__(self, width=16, classes=10):
        super().__init__()
        self.embed = nn.Linear(12, width)
        self.blocks = nn.ModuleList(MixerBlock(width, 16) for _ in range(2))
        self.head = nn.Linear(width, classes)

    def forward(self, x):
        n = x.shape[0]
        x = x.reshape(n, 3, 4, 2, 4, 2).permute(0, 2, 4, 1, 3, 5).reshape(n, 16, 12)
        x = self.embed(x)
        for block in self.blocks:
            x = block(x)
        return self.head(x.mean(1))


class Perceiver(nn.Module):
    """A few latents attend to every pixel, then to each other. The same weights are applied twice."""

    def __init__(self, width=16, latents=4, classes=10):
        super().__init__()
        self.latents = nn.Parameter(torch.randn(latents, width) * 0.1)
        axis = torch.linspace(-1, 1, 8)
        self.register_buffer("grid", torch.stack(torch.meshgrid(axis, axis, indexing="xy")), persistent=False)
        self.pixels = nn.Conv2d(5, width, 1)
        self.cross = nn.MultiheadAttention(width, 2, batch_first=True)
        self.block = Block(width)
        self.head = nn.Linear(width, classes)

    def forward(self, x):
        n = x.size(0)
        x = self.pixels(torch.cat([x, self.grid.expand(n, -1, -1, -1)], dim=1)).flatten(2).transpose(1, 2)
        latents = self.latents.repeat(n, 1, 1)
        for _ in range(2):
            seen, _ = self.cross(latents, x, x, need_weights=False)
            latents = self.block(latents + seen)
        return self.head(latents.mean(dim=1))


class Detector(nn.Module):
    """Object queries on a transformer decoder, auxiliary outputs of every layer, and boxes beside classes."""

    def __init__(self, width=16, queries=3, classes=4):
        super().__init__()
        self.backbone = nn.Sequential(nn.Conv2d(3, width, 3, stride=2, padding=1), nn.ReLU())
        self.rows, self.columns = (nn.Parameter(torch.rand(4, width // 2)) for _ in range(2))
        self.queries = nn.Embedding(queries, width)
        self.layers = nn.ModuleList(
            nn.TransformerDecoderLayer(width, 2, 32, dropout=0.0, batch_first=True) for _ in range(2))
        self.classes, self.boxes = nn.Linear(width, classes), nn.Linear(width, 4)

    def forward(self, x):
        x = self.backbone(x)
        position = torch.cat([self.columns.unsqueeze(0).repeat(4, 1, 1), self.rows.unsqueeze(1).repeat(1, 4, 1)], -1)
        memory = x.flatten(2).transpose(1, 2) + position.flatten(0, 1)
        queries = self.queries.weight.unsqueeze(0).expand(x.size(0), -1, -1)
        auxiliary = []
        for layer in self.layers:
            queries = layer(queries, memory)
            auxiliary.append({"logits": self.classes(queries), "boxes": self.boxes(queries).sigmoid()})
        return {"logits": auxiliary[-1]["logits"], "boxes": auxiliary[-1]["boxes"], "auxiliary": auxiliary[:-1]}


class MaskedAutoencoder(nn.Module):
    """Keeps a quarter of the patches; an input of noise chooses them. The loss is over the other patches."""

    def __init__(self, width=16, patches=16):
        super().__init__()
        self.embed, self.position = nn.Linear(12, width), nn.Parameter(torch.randn(1, patches, width) * 0.02)
        self.encoder, self.decoder = Block(width), Block(width)
        self.mask_token, self.head = nn.Parameter(torch.zeros(1, 1, width)), nn.Linear(width, 12)

    def forward(self, patches, noise):
        order = torch.argsort(noise, dim=1)
        back = torch.argsort(order, dim=1)
        kept = order[:, :4].unsqueeze(-1)
        x = self.embed(patches) + self.position
        x = self.encoder(torch.gather(x, 1, kept.expand(-1, -1, x.size(2))))
        x = torch.cat([x, self.mask_token.expand(x.size(0), 12, -1)], dim=1)
        x = torch.gather(x, 1, back.unsqueeze(-1).expand(-1, -1, x.size(2))) + self.position
        hidden = (back >= 4).float()
        error = (self.head(self.decoder(x)) - patches).square().mean(-1)
        return (error * hidden).sum() / hidden.sum()


def masked_data(n):
    patches = normal(n, 16, 12)
    return (patches, uniform(n, 16)), patches


program("vit", "vision-transformer", VisionTransformer, images)
program("swin_windows", "vision-transformer", WindowTransformer, images, batch=4, other=3)
program("mlp_mixer", "mixer", Mixer, images)
program("perceiver", "vision-transformer", Perceiver, images)
program("detection_transformer", "vision-transformer", Detector, lambda n: ((normal(n, 3, 8, 8),), integers(4, n, 3)))
program("masked_autoencoder", "vision-transformer", MaskedAutoencoder, masked_data, loss="output")
