"""Defines models of long sequences without attention: state spaces, Fourier convolutions, scans, differential
equations."""
import math

import torch
import torch.nn.functional as F
from torch import nn

from common import integers, normal, program


def signals(n, length=16, classes=4):
    return (normal(n, length, 4),), integers(classes, n)


def tokens(n, vocabulary=30, length=8):
    ids = integers(vocabulary, n, length + 1)
    return (ids[:, :-1].contiguous(),), ids[:, 1:].contiguous()


class DiagonalStateSpace(nn.Module):
    """S4D in real numbers: a kernel from its parameters, applied by FFT."""

    def __init__(self, width=12, states=8):
        super().__init__()
        self.log_step = nn.Parameter(torch.rand(width) * 2 - 3)
        self.log_decay = nn.Parameter(torch.log(0.5 * torch.ones(width, states)))
        self.frequency = nn.Parameter(math.pi * torch.arange(states).repeat(width, 1))
        self.read = nn.Parameter(torch.randn(width, states) * 0.5)
        self.skip = nn.Parameter(torch.ones(width))

    def forward(self, x):
        length = x.size(-1)
        steps = torch.arange(length, device=x.device) * self.log_step.exp().unsqueeze(-1)
        decay = torch.exp(-self.log_decay.exp().unsqueeze(-1) * steps.unsqueeze(1))
        kernel = (self.read.unsqueeze(-1) * decay * torch.cos(self.frequency.unsqueeze(-1) * steps.unsqueeze(1))).sum(1)
        spectrum = torch.fft.rfft(x, n=2 * length) * torch.fft.rfft(kernel, n=2 * length)
        return torch.fft.irfft(spectrum, n=2 * length)[..., :length] + x * self.skip.unsqueeze(-1)


class StateSpaceClassifier(nn.Module):
    def __init__(self, width=12, classes=4):
        super().__init__()
        self.embed, self.state = nn.Linear(4, width), DiagonalStateSpace(width)
        self.mix, self.head = nn.Conv1d(width, 2 * width, 1), nn.Linear(width, classes)

    def forward(self, x):
        x = self.embed(x).transpose(1, 2)
        x = x + F.glu(self.mix(F.gelu(self.state(x))), dim=1)
        return self.head(x.mean(-1))


class FourierMixer(nn.Module):
    """FNet's mixing: the real part of a transform over length and width."""

    def __init__(self, width=12, classes=4):
        super().__init__()
        self.embed, self.norm, self.head = nn.Linear(4, width), nn.LayerNorm(width), nn.Linear(width, classes)
        self.feed = nn.Sequential(nn.Linear(width, 24), nn.GELU(), nn.Linear(24, width))

    def forward(self, x):
        x = self.embed(x)
        x = self.norm(x + torch.fft.fft(torch.fft.fft(x, dim=-1), dim=-2).real * 0.1)
        return self.head((x + self.feed(x)).mean(1))


class SelectiveScan(nn.Module):
    """A Mamba block: projections determine the step size, and a loop does the scan."""

    def __init__(self, vocabulary=30, width=12, states=4):
        super().__init__()
        self.embedding, self.norm = nn.Embedding(vocabulary, width), nn.RMSNorm(width)
        self.in_proj, self.conv = nn.Linear(width, 2 * width), nn.Conv1d(width, width, 3, padding=2, groups=width)
        self.x_proj, self.dt_proj = nn.Linear(width, 2 + 2 * states, bias=False), nn.Linear(2, width)
        self.states = states
        self.A_log = nn.Parameter(torch.log(torch.arange(1, states + 1).float()).repeat(width, 1))
        self.D, self.out_proj = nn.Parameter(torch.ones(width)), nn.Linear(width, width)
        self.head = nn.Linear(width, vocabulary)

    def scan(self, u, delta, b, c):
        decay = torch.exp(delta.unsqueeze(-1) * -torch.exp(self.A_log))
        drive = delta.unsqueeze(-1) * b.unsqueeze(2) * u.unsqueeze(-1)
        state, out = torch.zeros_like(drive[:, 0]), []
        for step in range(u.size(1)):
            state = decay[:, step] * state + drive[:, step]
            out.append(torch.einsum("nds,ns->nd", state, c[:, step]))
        return torch.stack(out, dim=1) + u * self.D

    def forward(self, ids):
        x = self.embedding(ids)
        u, gate = self.in_proj(self.norm(x)).chunk(2, dim=-1)
        u = F.silu(self.conv(u.transpose(1, 2))[..., :ids.size(1)].transpose(1, 2))
        step, b, c = torch.split(self.x_proj(u), [2, self.states, self.states], dim=-1)
        y = self.scan(u, F.softplus(self.dt_proj(step)), b, c) * F.silu(gate)
        return self.head(x + self.out_proj(y))


class CumulativeScan(nn.Module):
    """A linear recurrence in closed form: cumulative sums in log space, running maxima and products."""

    def __init__(self, width=12, classes=4):
        super().__init__()
        self.gate, self.value, self.head = nn.Linear(4, width), nn.Linear(4, width), nn.Linear(3 * width, classes)

    def forward(self, x):
        log_keep = F.logsigmoid(self.gate(x) + 2.0).cumsum(1)
        state = torch.exp(log_keep) * torch.cumsum(self.value(x) * torch.exp(-log_keep), dim=1)
        peak = torch.cummax(state, dim=1).values
        fade = torch.cumprod(torch.sigmoid(state), dim=1)
        flow = torch.logcumsumexp(state.flip(1), dim=1).flip(1)
        return self.head(torch.cat([peak[:, -1], fade[:, 3], flow.mean(1)], dim=-1)) + state.diff(dim=1).mean()


class TimeMixing(nn.Module):
    """RWKV's time mixing: tokens shifted by one, decayed sums of exponentials, a running maximum for stability."""

    def __init__(self, vocabulary=30, width=12):
        super().__init__()
        self.embedding, self.norm = nn.Embedding(vocabulary, width), nn.LayerNorm(width)
        self.shift = nn.ZeroPad2d((0, 0, 1, -1))
        self.mix = nn.Parameter(torch.rand(3, 1, 1, width))
        self.key, self.value, self.receptance = (nn.Linear(width, width, bias=False) for _ in range(3))
        self.decay, self.first = nn.Parameter(torch.rand(width)), nn.Parameter(torch.rand(width))
        self.head = nn.Linear(width, vocabulary, bias=False)

    def forward(self, ids):
        x = self.norm(self.embedding(ids))
        k, v, r = torch.lerp(self.shift(x), x, self.mix).unbind(0)
        k, v, r = self.key(k), self.value(v), torch.sigmoid(self.receptance(r))
        top, bottom, most = torch.zeros_like(k[:, 0]), torch.zeros_like(k[:, 0]), torch.full_like(k[:, 0], -1e38)
        out = []
        for step in range(ids.size(1)):
            now = torch.maximum(most, self.first + k[:, step])
            old, new = torch.exp(most - now), torch.exp(self.first + k[:, step] - now)
            out.append((old * top + new * v[:, step]) / (old * bottom + new))
            now = torch.maximum(most - self.decay.exp(), k[:, step])
            old, new = torch.exp(most - self.decay.exp() - now), torch.exp(k[:, step] - now)
            top, bottom, most = old * top + new * v[:, step], old * bottom + new, now
        return self.head(x + r * torch.stack(out, 1))


class NeuralOde(nn.Module):
    """Classical Runge-Kutta with fixed steps. Every stage uses the same small network."""

    def __init__(self, width=8, steps=4):
        super().__init__()
        self.field = nn.Sequential(nn.Linear(width + 1, 16), nn.Tanh(), nn.Linear(16, width))
        self.encode, self.decode, self.steps = nn.Linear(4, width), nn.Linear(width, 2), steps

    def slope(self, time, y):
        return self.field(torch.cat([y, torch.full_like(y[:, :1], time)], dim=1))

    def forward(self, x):
        y, h = self.encode(x), 1.0 / self.steps
        for step in range(self.steps):
            t = step * h
            k1 = self.slope(t, y)
            k2 = self.slope(t + h / 2, y + h / 2 * k1)
            k3 = self.slope(t + h / 2, y + h / 2 * k2)
            k4 = self.slope(t + h, torch.add(y, k3, alpha=h))
            y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        return self.decode(y)


program("s4_fft", "sequence", StateSpaceClassifier, signals)
program("fourier_mixer", "sequence", FourierMixer, signals)
program("selective_scan", "sequence", SelectiveScan, tokens)
program("cumulative_scan", "sequence", CumulativeScan, signals)
program("time_mixing", "sequence", TimeMixing, tokens)
program("neural_ode", "sequence", NeuralOde, lambda n: ((normal(n, 4),), normal(n, 2)), loss="mse")
