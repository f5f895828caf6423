"""Defines decoder-only language models: GPT, Llama-like, ALiBi, sliding windows, dynamic lengths."""
import math

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

from common import integers, program

VOCABULARY = 40


def text(n, length=8):
    ids = integers(VOCABULARY, n, length + 1)
    return (ids[:, :-1].contiguous(),), ids[:, 1:].contiguous()


class CausalSelfAttention(nn.Module):
    def __init__(self, width, heads, dropout=0.0):
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.c_attn, self.c_proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.resid_dropout = nn.Dropout(dropout)

    def forward(self, x):
        n, length, width = x.size()
        q, k, v = (part.view(n, length, self.heads, width // self.heads).transpose(1, 2)
                   for part in self.c_attn(x).split(width, dim=2))
        y = F.scaled_dot_product_attention(q, k, v, dropout_p=self.dropout if self.training else 0.0, is_causal=True)
        return self.resid_dropout(self.c_proj(y.transpose(1, 2).contiguous().view(n, length, width)))


class GptBlock(nn.Module):
    def __init__(self, width, heads, dropout=0.0):
        super().__init__()
        self.ln_1, self.attn = nn.LayerNorm(width), CausalSelfAttention(width, heads, dropout)
        self.ln_2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(approximate="tanh"), nn.Linear(4 * width, width),
                                 nn.Dropout(dropout))

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class Gpt(nn.Module):
    """GPT as in nanoGPT, with the head tied to the embedding."""

    def __init__(self, width=24, heads=3, depth=2, block_size=16, dropout=0.0, recompute=False):
        super().__init__()
        self.recompute = recompute
        self.transformer = nn.ModuleDict({
            "wte": nn.Embedding(VOCABULARY, width), "wpe": nn.Embedding(block_size, width), "drop": nn.Dropout(dropout),
            "h": nn.ModuleList([GptBlock(width, heads, dropout) for _ in range(depth)]), "ln_f": nn.LayerNorm(width)})
        self.lm_head = nn.Linear(width, VOCABULARY, bias=False)
        self.transformer.wte.weight = self.lm_head.weight
        self.apply(self.init_weights)

    def init_weights(self, module):
        if isinstance(module, (nn.Linear, nn.Embedding)):
            nn.init.normal_(module.weight, mean=0.0, std=0.02)
        if isinstance(module, nn.Linear) and module.bias is not None:
            nn.init.zeros_(module.bias)

    def forward(self, idx):
        pos = torch.arange(0, idx.size(1), dtype=torch.long, device=idx.device)
        x = self.transformer.drop(self.transformer.wte(idx) + self.transformer.wpe(pos))
        for block in self.transformer.h:
            x = checkpoint(block, x, use_reentrant=False) if self.recompute else block(x)
        return self.lm_head(self.transformer.ln_f(x))


class RMSNorm(nn.Module):
    def __init__(self, width, eps=1e-6):
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.ones(width)), eps

    def forward(self, x):
        normed = x.float() * torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + self.eps)
        return normed.type_as(x) * self.weight


def rotate_half(x):
    first, second = x.chunk(2, dim=-1)
    return torch.cat((-second, first), dim=-1)


class GroupedQueryAttention(nn.Module):
    def __init__(self, width, heads, kv_heads):
        super().__init__()
        self.heads, self.kv_heads, self.size = heads, kv_heads, width // heads
        self.q_proj = nn.Linear(width, width, bias=False)
        self.k_proj, self.v_proj = (nn.Linear(width, kv_heads * self.size, bias=False) for _ in range(2))
        self.o_proj = nn.Linear(width, width, bias=False)

    def forward(self, x, cos, sin):
        n, length, _ = x.shape
        q = self.q_proj(x).view(n, length, self.heads, -1).transpose(1, 2)
        k = self.k_proj(x).view(n, length, self.kv_heads, -1).transpose(1, 2)
        v = self.v_proj(x).view(n, length, self.kv_heads, -1).transpose(1, 2)
        q, k = q * cos + rotate_half(q) * sin, k * cos + rotate_half(k) * sin
        repeats = self.heads // self.kv_heads
        k, v = (part[:, :, None].expand(-1, -1, repeats, -1, -1).flatten(1, 2) for part in (k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.o_proj(y.transpose(1, 2).reshape(n, length, -1))


class LlamaBlock(nn.Module):
    def __init__(self, width, heads, kv_heads):
        super().__init__()
        self.input_norm, self.post_norm = RMSNorm(width), RMSNorm(width)
        self.attention = GroupedQueryAttention(width, heads, kv_heads)
        self.gate_proj, self.up_proj = (nn.Linear(width, 2 * width, bias=False) for _ in range(2))
        self.down_proj = nn.Linear(2 * width, width, bias=False)

    def forward(self, x, cos, sin):
        x = x + self.attention(self.input_norm(x), cos, sin)
        y = self.post_norm(x)
        return x + self.down_proj(F.silu(self.gate_proj(y)) * self.up_proj(y))


class Llama(nn.Module):
    """Rotary positions, RMSNorm, SwiGLU, grouped queries."""

    def __init__(self, width=24, heads=4, kv_heads=2, depth=2, theta=10000.0):
        super().__init__()
        size = width // heads
        self.embed_tokens = nn.Embedding(VOCABULARY, width)
        self.layers = nn.ModuleList(LlamaBlock(width, heads, kv_heads) for _ in range(depth))
        self.norm, self.lm_head = RMSNorm(width), nn.Linear(width, VOCABULARY, bias=False)
        self.register_buffer("inv_freq", 1.0 / theta ** (torch.arange(0, size, 2).float() / size), persistent=False)

    def forward(self, input_ids):
        positions = torch.arange(input_ids.shape[1], device=input_ids.device).float()
        angles = torch.outer(positions, self.inv_freq)
        angles = torch.cat((angles, angles), dim=-1)
        cos, sin = angles.cos(), angles.sin()
        x = self.embed_tokens(input_ids)
        for layer in self.layers:
            x = layer(x, cos, sin)
        return self.lm_head(self.norm(x))


class Alibi(nn.Module):
    """Linear biases for distance as a float mask, or a sliding window as a boolean one."""

    def __init__(self, width=24, heads=4, window=None):
        super().__init__()
        self.heads, self.window = heads, window
        self.embedding, self.norm = nn.Embedding(VOCABULARY, width), nn.LayerNorm(width)
        self.qkv, self.proj = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width)
        slopes = torch.tensor([2 ** (-8 * (head + 1) / heads) for head in range(heads)])
        self.register_buffer("slopes", slopes.view(heads, 1, 1))
        self.head = nn.Linear(width, VOCABULARY)

    def forward(self, ids):
        x = self.embedding(ids)
        places = torch.arange(ids.size(1), device=ids.device)
        distance = places[:, None] - places[None, :]
        if self.window is None:
            mask = (-distance * self.slopes).masked_fill(distance < 0, -math.inf)
        else:
            mask = (distance >= 0) & (distance < self.window)
        q, k, v = self.qkv(self.norm(x)).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=0.3)
        return self.head(x + self.proj(y.transpose(1, 2).flatten(2)))


program("gpt", "decoder", Gpt, text, batch=4, other=6, variants=["decomposed"])
program("gpt_checkpointed", "decoder", lambda: Gpt(recompute=True), text, batch=4, other=6)
program("gpt_dynamic_length", "decoder", Gpt, lambda n: text(n, length=8 if n == 4 else 11), batch=4, other=6,
        dynamic=lambda batch: {"idx": {0: batch, 1: torch.export.Dim("length", min=2, max=16)}})
program("llama", "decoder", Llama, text, batch=4, other=6)
program("llama_dynamic_length", "decoder", Llama, lambda n: text(n, length=8 if n == 4 else 11), batch=4, other=6,
        dynamic=lambda batch: {"input_ids": {0: batch, 1: torch.export.Dim("length", min=2, max=64)}})
program("alibi_float_mask", "decoder", Alibi, text)
program("sliding_window_boolean_mask", "decoder", lambda: Alibi(window=3), text)
