"""Exports ten small models with dropout or other random numbers inside, with stock PyTorch: program_models.py OUT.

Models of IMAGES take [batch, 1, 8, 8] and classify into 5 classes. Models of TEXT take [batch, 12] of 9 characters and
predict the next character at every position. "vae" returns its loss.
"""
import pathlib
import sys
import warnings

import torch
from torch import nn
from torch.nn import functional as F

CLASSES, CHARACTERS, WINDOW = 5, 9, 12


class Residual(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(channels, channels, 3, padding=1), nn.BatchNorm2d(channels), nn.ReLU(),
                                  nn.Dropout2d(0.1), nn.Conv2d(channels, channels, 3, padding=1), nn.BatchNorm2d(channels))

    def forward(self, x):
        return F.relu(x + self.body(x))


class Patches(nn.Module):
    """[batch, 1, 8, 8] -> [batch, 16, width]"""

    def __init__(self, width):
        super().__init__()
        self.cut, self.place = nn.Conv2d(1, width, 2, stride=2), nn.Parameter(torch.zeros(16, width))

    def forward(self, x):
        return self.cut(x).flatten(2).transpose(1, 2) + self.place


class Vit(nn.Module):
    def __init__(self, layers=2, width=16):
        super().__init__()
        self.patches = Patches(width)
        layer = nn.TransformerEncoderLayer(width, 2, 32, dropout=0.1, batch_first=True, norm_first=True)
        self.body = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.head = nn.Linear(width, CLASSES)

    def forward(self, x):
        return self.head(self.body(self.patches(x)).mean(1))


class Mixer(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.patches, self.norm = Patches(width), nn.LayerNorm(width)
        self.across = nn.Sequential(nn.Linear(16, 24), nn.GELU(), nn.Dropout(0.1), nn.Linear(24, 16))
        self.head = nn.Linear(width, CLASSES)

    def forward(self, x):
        x = self.patches(x)
        x = x + self.across(self.norm(x).transpose(1, 2)).transpose(1, 2)
        return self.head(x.mean(1))


class Recurrent(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.embedding = nn.Embedding(CHARACTERS, 8)
        self.body = kind(8, 16, num_layers=2, dropout=0.1, batch_first=True)
        self.head = nn.Linear(16, CHARACTERS)

    def forward(self, tokens):
        return self.head(self.body(self.embedding(tokens))[0])


class Gpt(nn.Module):
    def __init__(self, width=16, heads=2, dropout=0.1):
        super().__init__()
        self.tokens, self.places = nn.Embedding(CHARACTERS, width), nn.Embedding(WINDOW, width)
        self.norm, self.qkv, self.out = nn.LayerNorm(width), nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 32), nn.GELU(), nn.Linear(32, width), nn.Dropout(dropout))
        self.head = nn.Linear(width, CHARACTERS, bias=False)
        self.head.weight = self.tokens.weight
        self.heads, self.dropout = heads, dropout

    def forward(self, tokens):
        x = self.tokens(tokens) + self.places(torch.arange(tokens.shape[1]))
        batch, time, width = x.shape
        q, k, v = (part.view(batch, time, self.heads, -1).transpose(1, 2) for part in self.qkv(self.norm(x)).chunk(3, -1))
        seen = F.scaled_dot_product_attention(q, k, v, dropout_p=self.dropout, is_causal=True)
        x = x + self.out(seen.transpose(1, 2).reshape(batch, time, width))
        return self.head(x + self.mlp(x))


class Vae(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder, self.decoder = nn.Linear(64, 16), nn.Linear(8, 64)

    def forward(self, x):
        x = x.flatten(1)
        mean, deviation = self.encoder(x).chunk(2, 1)
        made = self.decoder(mean + torch.randn_like(mean) * deviation.exp())
        apart = F.mse_loss(made, x, reduction="none").sum(1)
        return (apart + 0.1 * (mean.square() + deviation.exp().square() - 2 * deviation).sum(1)).mean()


class Experts(nn.Module):
    def __init__(self, count=4):
        super().__init__()
        self.gate, self.head = nn.Linear(64, count), nn.Linear(16, CLASSES)
        self.experts = nn.ModuleList(nn.Sequential(nn.Linear(64, 16), nn.ReLU(), nn.Dropout(0.1)) for _ in range(count))

    def forward(self, x):
        x = x.flatten(1)
        weight, chosen = self.gate(x).softmax(-1).topk(2)
        all_of_them = torch.stack([expert(x) for expert in self.experts], 1)
        picked = all_of_them.gather(1, chosen.unsqueeze(-1).expand(-1, -1, 16))
        return self.head((picked * weight.unsqueeze(-1)).sum(1))


IMAGES = {
    "mlp": lambda: nn.Sequential(nn.Flatten(), nn.Linear(64, 48), nn.BatchNorm1d(48), nn.ReLU(), nn.Dropout(0.2),
                                 nn.Linear(48, CLASSES)),
    "cnn": lambda: nn.Sequential(nn.Conv2d(1, 6, 3, padding=1), nn.BatchNorm2d(6), nn.ReLU(), nn.MaxPool2d(2),
                                 nn.Flatten(), nn.Dropout(0.1), nn.Linear(96, CLASSES)),
    "resnet": lambda: nn.Sequential(nn.Conv2d(1, 6, 3, padding=1), Residual(6), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                                    nn.Linear(6, CLASSES)),
    "vit": Vit, "mixer": Mixer, "experts": Experts, "vae": Vae,
}
TEXT = {"lstm": lambda: Recurrent(nn.LSTM), "gru": lambda: Recurrent(nn.GRU), "gpt": Gpt}


def main():
    warnings.filterwarnings("ignore")
    folder = pathlib.Path(sys.argv[1])
    for name, make in {**IMAGES, **TEXT}.items():
        torch.manual_seed(1)
        example = torch.randn(4, 1, 8, 8) if name in IMAGES else torch.randint(CHARACTERS, (4, WINDOW))
        program = torch.export.export(make().train(), (example,), dynamic_shapes=({0: torch.export.Dim("batch")},))
        torch.export.save(program, folder / f"{name}.pt2")


if __name__ == "__main__":
    main()
