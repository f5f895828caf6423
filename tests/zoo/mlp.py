"""Defines multilayer perceptrons: normalisation, activations, residuals, gates, and losses inside the graph."""
import math

import torch
import torch.nn.functional as F
from torch import nn

from common import integers, normal, program, uniform


def classification(n):
    return (normal(n, 20),), integers(5, n)


def regression(n):
    x = normal(n, 12)
    return (x,), torch.stack([x[:, :4].sum(1), x[:, 4:8].prod(1)], 1)


class Classifier(nn.Module):
    """Blocks of linear, norm and activation, as in most code for tables."""

    def __init__(self, norm, activation, widths=(64, 32), inputs=20, classes=5):
        super().__init__()
        layers = []
        for width in widths:
            layers += [nn.Linear(inputs, width), norm(width), activation(), nn.Dropout(0.0)]
            inputs = width
        self.body = nn.Sequential(*layers)
        self.head = nn.Linear(inputs, classes)

    def forward(self, x):
        return self.head(self.body(x))


class CumulativeBatchNorm(nn.Module):
    """BatchNorm1d with momentum=None, written in tensors: torch.nn's version turns the number of batches into a Python
    number."""

    def __init__(self, width, eps=1e-5):
        super().__init__()
        self.weight, self.bias, self.eps = nn.Parameter(torch.ones(width)), nn.Parameter(torch.zeros(width)), eps
        self.register_buffer("running_mean", torch.zeros(width))
        self.register_buffer("running_var", torch.ones(width))
        self.register_buffer("num_batches_tracked", torch.tensor(0, dtype=torch.long))

    def forward(self, x):
        if not self.training:
            return F.batch_norm(x, self.running_mean, self.running_var, self.weight, self.bias, False, 0.0, self.eps)
        self.num_batches_tracked.add_(1)
        factor = 1.0 / self.num_batches_tracked.float()
        self.running_mean.lerp_(x.detach().mean(0), factor)
        self.running_var.lerp_(x.detach().var(0), factor)
        return F.batch_norm(x, None, None, self.weight, self.bias, True, 0.0, self.eps)


class ResidualBlock(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 2 * width)
        self.down = nn.Linear(2 * width, width)

    def forward(self, x):
        return x + self.down(F.silu(self.up(self.norm(x))))


class ResidualRegressor(nn.Module):
    def __init__(self, inputs=12, width=32, depth=3, outputs=2):
        super().__init__()
        self.stem = nn.Linear(inputs, width)
        self.blocks = nn.ModuleList(ResidualBlock(width) for _ in range(depth))
        self.head = nn.Sequential(nn.LayerNorm(width), nn.SiLU(inplace=True), nn.Linear(width, outputs))

    def forward(self, x):
        x = self.stem(x)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


class ActivationMixture(nn.Module):
    """One branch for each activation, mixed by learned weights."""

    def __init__(self, width=16):
        super().__init__()
        self.stem = nn.Linear(20, width)
        self.activations = nn.ModuleDict({
            "relu6": nn.ReLU6(), "leaky": nn.LeakyReLU(0.1), "elu": nn.ELU(), "selu": nn.SELU(), "celu": nn.CELU(0.5),
            "prelu": nn.PReLU(width), "softplus": nn.Softplus(), "mish": nn.Mish(), "tanh": nn.Tanh(),
            "hardtanh": nn.Hardtanh(), "softsign": nn.Softsign(), "logsigmoid": nn.LogSigmoid(),
            "hardsigmoid": nn.Hardsigmoid(), "hardswish": nn.Hardswish(), "gelu_tanh": nn.GELU(approximate="tanh"),
            "tanhshrink": nn.Tanhshrink(), "softshrink": nn.Softshrink(0.2), "threshold": nn.Threshold(0.1, 0.0),
        })
        self.mixture = nn.Parameter(torch.randn(len(self.activations)) * 0.1)
        self.head = nn.Linear(width, 5)

    def forward(self, x):
        x = self.stem(x)
        branches = torch.stack([activation(x) for activation in self.activations.values()], dim=1)
        return self.head((branches * self.mixture.softmax(0)[:, None]).sum(1))


class Highway(nn.Module):
    def __init__(self, width=24, depth=3):
        super().__init__()
        self.stem = nn.Linear(12, width)
        self.values = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self.gates = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        for gate in self.gates:
            nn.init.constant_(gate.bias, -1.0)
        self.head = nn.Linear(width, 2)

    def forward(self, x):
        x = torch.tanh(self.stem(x))
        for value, gate in zip(self.values, self.gates):
            t = torch.sigmoid(gate(x))
            x = t * torch.relu(value(x)) + (1 - t) * x
        return self.head(x)


class Siren(nn.Module):
    """An image as a function of coordinates: sine activations, and Fourier features in a buffer that is not saved."""

    def __init__(self, width=32, frequencies=4):
        super().__init__()
        self.register_buffer("frequencies", math.pi * 2.0 ** torch.arange(frequencies), persistent=False)
        self.layers = nn.ModuleList([nn.Linear(2 + 4 * frequencies, width), nn.Linear(width, width)])
        self.out = nn.Linear(width, 3)

    def forward(self, position):
        angles = (position.unsqueeze(-1) * self.frequencies).flatten(1)
        x = torch.cat([position, angles.sin(), angles.cos()], dim=-1)
        for layer in self.layers:
            x = torch.sin(3.0 * layer(x))
        return self.out(x).sigmoid()


class MixtureDensity(nn.Module):
    """Predicts a distribution of the target. The graph returns its negative log likelihood."""

    def __init__(self, components=4):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(3, 32), nn.Tanh(), nn.Linear(32, 3 * components))

    def forward(self, x, y):
        weights, mean, log_scale = self.body(x).chunk(3, dim=-1)
        z = (y.unsqueeze(-1) - mean) * torch.exp(-log_scale)
        log_density = -0.5 * z.square() - log_scale - 0.5 * math.log(2 * math.pi)
        nll = -torch.logsumexp(F.log_softmax(weights, dim=-1) + log_density, dim=-1).mean()
        return nll, mean


class QuantileRegressor(nn.Module):
    """Pinball and Huber losses in the graph. The quantiles are a tensor made in forward."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 4))

    def forward(self, x, target):
        quantiles = torch.tensor([0.1, 0.5, 0.9], dtype=x.dtype, device=x.device)
        predicted = self.body(x)
        error = target.unsqueeze(1) - predicted[:, :3]
        pinball = torch.maximum(quantiles * error, (quantiles - 1) * error).mean()
        huber = F.huber_loss(predicted[:, 3], target, delta=0.5)
        smooth = F.smooth_l1_loss(predicted[:, 1], target.clamp(-1.0, 1.0), beta=0.3)
        return pinball + 0.5 * huber + 0.1 * smooth


program("mlp_relu", "mlp", lambda: nn.Sequential(nn.Flatten(), nn.Linear(36, 32), nn.ReLU(), nn.Linear(32, 16),
                                                 nn.ReLU(inplace=True), nn.Linear(16, 5)),
        lambda n: ((normal(n, 1, 6, 6),), integers(5, n)))
program("mlp_batchnorm", "mlp", lambda: Classifier(nn.BatchNorm1d, nn.ReLU), classification, batch=16, other=9,
        variants=["decomposed"])
program("mlp_batchnorm_cumulative", "mlp", lambda: Classifier(CumulativeBatchNorm, nn.ReLU), classification, batch=16)
program("mlp_layernorm", "mlp", lambda: Classifier(nn.LayerNorm, nn.GELU), classification)
program("mlp_rmsnorm", "mlp", lambda: Classifier(nn.RMSNorm, nn.SiLU, widths=(48,)), classification)
program("mlp_residual", "mlp", ResidualRegressor, regression, loss="mse")
program("mlp_activations", "mlp", ActivationMixture, classification)
program("mlp_highway", "mlp", Highway, regression, loss="mse")
program("mlp_siren", "mlp", Siren, lambda n: ((uniform(n, 2) * 2 - 1,), uniform(n, 3)), loss="mse", batch=16)


def mixture_data(n):
    y = normal(n)[:, None]
    return (normal(n, 3), y), y


def quantile_data(n):
    target = normal(n)
    return (normal(n, 12), target), target


program("mlp_mixture_density", "mlp", MixtureDensity, mixture_data, loss="output")
program("mlp_quantile_loss", "mlp", QuantileRegressor, quantile_data, loss="output")
