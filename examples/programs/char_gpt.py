"""Writes char_gpt.pt2: a small GPT over characters, for char-gpt.yaml. `python char_gpt.py [VOCABULARY]`, with PyTorch 2.13.

VOCABULARY is the number of different characters in the text (65 in Tiny Shakespeare). sinew reports a wrong number.
"""
import sys

import torch
from torch import nn
from torch.nn import functional as F

WINDOW, WIDTH, HEADS, LAYERS, DROPOUT = 64, 96, 4, 3, 0.1


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH), nn.Dropout(DROPOUT))

    def forward(self, x):
        batch, time, _ = x.shape
        q, k, v = (part.view(batch, time, HEADS, -1).transpose(1, 2) for part in self.qkv(self.norm1(x)).chunk(3, -1))
        seen = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(seen.transpose(1, 2).reshape(batch, time, WIDTH))
        return x + self.mlp(self.norm2(x))


class CharGpt(nn.Module):
    def __init__(self, vocabulary):
        super().__init__()
        self.tokens, self.places = nn.Embedding(vocabulary, WIDTH), nn.Embedding(WINDOW, WIDTH)
        self.blocks, self.norm = nn.Sequential(*(Block() for _ in range(LAYERS))), nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, vocabulary, bias=False)
        for parameter in self.parameters():
            if parameter.dim() > 1:
                nn.init.normal_(parameter, std=0.02)
        self.head.weight = self.tokens.weight  # tied

    def forward(self, tokens):  # [batch, time] -> [batch, time, vocabulary]
        x = self.tokens(tokens) + self.places(torch.arange(tokens.shape[1]))
        return self.head(self.norm(self.blocks(x)))


if __name__ == "__main__":
    torch.manual_seed(0)
    vocabulary = int(sys.argv[1]) if len(sys.argv) > 1 else 65
    example = torch.randint(vocabulary, (4, WINDOW))
    program = torch.export.export(CharGpt(vocabulary).train(), (example,), dynamic_shapes=({0: torch.export.Dim("batch")},))
    torch.export.save(program, "char_gpt.pt2")
