"""Defines models of graphs and sets: message passing over edge lists and matrices, point clouds, and pooling that
ignores order."""
import torch
import torch.nn.functional as F
from torch import nn

from common import integers, normal, program, uniform


def sparse_graph(n, classes=4):
    """Returns the inputs (the features of n nodes, and 4 n edges as node numbers of shape (2, 4 n)), and a label for
    each node."""
    return {"x": normal(n, 8), "edge_index": integers(n, 2, 4 * n)}, integers(classes, n)


class MessagePassing(nn.Module):
    """Mean of the neighbours' messages by index_select and index_add."""

    def __init__(self, width=16, classes=4):
        super().__init__()
        self.embed, self.head = nn.Linear(8, width), nn.Linear(width, classes)
        self.message, self.update = nn.Linear(2 * width, width), nn.GRUCell(width, width)

    def forward(self, x, edge_index):
        source, target = edge_index[0], edge_index[1]
        h = torch.relu(self.embed(x))
        degree = torch.zeros(x.size(0)).index_add(0, target, torch.ones(target.size(0))).clamp(min=1)
        for _ in range(2):
            messages = F.relu(self.message(torch.cat([h.index_select(0, source), h.index_select(0, target)], dim=1)))
            total = torch.zeros_like(h).index_add_(0, target, messages)
            h = self.update(total / degree.unsqueeze(1), h)
        return self.head(h)


class GraphAttention(nn.Module):
    """Softmax over the edges into each node, by scatter_reduce and scatter_add."""

    def __init__(self, width=12, heads=2, classes=4):
        super().__init__()
        self.heads = heads
        self.project = nn.Linear(8, heads * width, bias=False)
        self.source, self.target = (nn.Parameter(torch.randn(heads, width) * 0.3) for _ in range(2))
        self.head = nn.Linear(heads * width, classes)

    def forward(self, x, edge_index):
        source, target = edge_index
        h = self.project(x).view(x.size(0), self.heads, -1)
        scores = F.leaky_relu((h * self.source).sum(-1)[source] + (h * self.target).sum(-1)[target], 0.2)
        index = target.unsqueeze(1).expand_as(scores)
        most = torch.full((x.size(0), self.heads), float("-inf")).scatter_reduce(0, index, scores, reduce="amax")
        weights = torch.exp(scores - most.detach()[target])
        total = torch.zeros(x.size(0), self.heads).scatter_add(0, index, weights)
        messages = h[source] * (weights / total[target]).unsqueeze(-1)
        out = torch.zeros_like(h).index_add(0, target, messages)
        return self.head(F.elu(out.flatten(1)))


class DenseGcn(nn.Module):
    """Adjacency as a matrix, normalised on both sides."""

    def __init__(self, width=16, classes=3):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(6, width), nn.Linear(width, width)])
        self.norms = nn.ModuleList(nn.BatchNorm1d(width) for _ in self.layers)
        self.head = nn.Linear(width, classes)

    def forward(self, x, adjacency):
        loops = adjacency + torch.eye(adjacency.size(-1))
        scale = loops.sum(-1).rsqrt()
        loops = scale.unsqueeze(-1) * loops * scale.unsqueeze(-2)
        for layer, norm in zip(self.layers, self.norms):
            x = F.relu(norm(torch.bmm(loops, layer(x)).transpose(1, 2)).transpose(1, 2))
        return self.head(x.mean(dim=1))


class PaddedGraphs(nn.Module):
    """A batch of graphs as one graph: edges are shifted to their graph's nodes, and nodes are averaged for each graph.
    """

    def __init__(self, width=16):
        super().__init__()
        self.atoms = nn.Embedding(6, width)
        self.bonds = nn.Embedding(3, width)
        self.mlp = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width))
        self.eps = nn.Parameter(torch.zeros(1))
        self.head = nn.Linear(width, 1)

    def forward(self, graph):
        n, nodes = graph["atoms"].shape
        offsets = torch.arange(n).view(n, 1, 1) * nodes
        source, target = (graph["edges"] + offsets).flatten(0, 1).unbind(1)
        h = self.atoms(graph["atoms"]).flatten(0, 1)
        for _ in range(2):
            messages = F.relu(h[source] + self.bonds(graph["bonds"].flatten()))
            h = self.mlp((1 + self.eps) * h + torch.zeros_like(h).index_add(0, target, messages))
        owner = torch.arange(n).repeat_interleave(nodes)
        mean = torch.zeros(n, h.size(1)).scatter_reduce(0, owner[:, None].expand_as(h), h, "mean", include_self=False)
        return self.head(mean)


class EdgeConv(nn.Module):
    """Finds the nearest neighbours of every point by distance and takes the maximum over them."""

    def __init__(self, k=4, classes=4):
        super().__init__()
        self.k = k
        self.edge = nn.Sequential(nn.Conv2d(6, 16, 1, bias=False), nn.BatchNorm2d(16), nn.LeakyReLU(0.2))
        self.head = nn.Linear(32, classes)

    def forward(self, points):
        distance = torch.cdist(points, points)
        index = distance.topk(self.k + 1, dim=-1, largest=False).indices[:, :, 1:]
        n, count, _ = points.shape
        flat = index.reshape(n, -1, 1).expand(-1, -1, 3)
        neighbours = points.gather(1, flat).view(n, count, self.k, 3)
        center = points.unsqueeze(2).expand_as(neighbours)
        x = self.edge(torch.cat([center, neighbours - center], dim=-1).permute(0, 3, 1, 2)).max(dim=-1)[0]
        return self.head(torch.cat([x.amax(dim=-1), x.mean(dim=-1)], dim=1))


class PointNet(nn.Module):
    """A learned alignment of the points, shared layers, and the maximum over points."""

    def __init__(self, classes=4):
        super().__init__()
        self.align = nn.Sequential(nn.Conv1d(3, 12, 1), nn.ReLU(), nn.AdaptiveMaxPool1d(1), nn.Flatten(),
                                   nn.Linear(12, 9))
        self.shared = nn.Sequential(nn.Conv1d(3, 16, 1), nn.BatchNorm1d(16), nn.ReLU(), nn.Conv1d(16, 24, 1))
        self.head = nn.Linear(24, classes)

    def forward(self, points):
        transform = self.align(points).view(-1, 3, 3) + torch.eye(3, device=points.device).unsqueeze(0)
        x = torch.bmm(points.transpose(2, 1), transform).transpose(2, 1)
        return self.head(torch.max(self.shared(x), 2)[0]), transform


class DeepSets(nn.Module):
    """Sum, mean, maximum and standard deviation over the elements that are not masked."""

    def __init__(self, width=12):
        super().__init__()
        self.element = nn.Sequential(nn.Linear(3, width), nn.ELU(), nn.Linear(width, width))
        self.whole = nn.Sequential(nn.Linear(4 * width, 16), nn.ELU(), nn.Linear(16, 1))

    def forward(self, elements, there):
        x = self.element(elements)
        mask = there.unsqueeze(-1)
        count = mask.sum(dim=1).clamp(min=1)
        total = (x * mask).sum(dim=1)
        mean = total / count
        most = x.masked_fill(~mask, -1e9).amax(dim=1)
        deviation = (((x - mean.unsqueeze(1)) * mask).square().sum(1) / count + 1e-6).sqrt()
        return self.whole(torch.cat([total, mean, most, deviation], dim=-1))


class SortPooling(nn.Module):
    """Sorts every feature over the set and weights it by rank. Also orders the elements by their first feature."""

    def __init__(self, width=8, count=6, classes=4):
        super().__init__()
        self.element, self.ranks = nn.Linear(3, width), nn.Parameter(torch.randn(count, width) * 0.3)
        self.scan, self.head = nn.Conv1d(width, width, 3), nn.Linear(2 * width + count, classes)

    def forward(self, x):
        x = torch.tanh(self.element(x))
        pooled = (x.sort(dim=1, descending=True).values * self.ranks).sum(1)
        order = x[..., 0].argsort(dim=1, stable=True)
        ordered = x.gather(1, order.unsqueeze(-1).expand_as(x))
        middle = x.median(dim=2).values + x.topk(2, dim=2, largest=False).values[..., 1]
        return self.head(torch.cat([pooled, self.scan(ordered.transpose(1, 2)).amax(-1), middle], dim=1))


def dense_graph(n):
    upper = (uniform(n, 7, 7) < 0.4).float().triu(1)
    return (normal(n, 7, 6), upper + upper.mT), integers(3, n)


def padded_graphs(n):
    return ({"atoms": integers(6, n, 7), "edges": integers(7, n, 12, 2), "bonds": integers(3, n, 12)},), normal(n, 1)


def partly_there(n):
    there = uniform(n, 6) < 0.7
    there[:, 0] = True
    return (normal(n, 6, 3), there), normal(n, 1)


def nodes_and_edges(batch):
    return {"x": {0: batch}, "edge_index": {1: torch.export.Dim("edges")}}


program("graph_message_passing", "graph", MessagePassing, sparse_graph, batch=12, other=9, dynamic=nodes_and_edges,
        batched=False)
program("graph_attention", "graph", GraphAttention, sparse_graph, batch=12, dynamic=False)
program("graph_dense_gcn", "graph", DenseGcn, dense_graph)
program("graph_padded_batch", "graph", PaddedGraphs, padded_graphs, loss="mse")
program("points_edge_conv", "set", EdgeConv, lambda n: ((normal(n, 10, 3),), integers(4, n)))
program("points_pointnet", "set", PointNet, lambda n: ((normal(n, 3, 10),), integers(4, n)))
program("set_deepsets", "set", DeepSets, partly_there, loss="mse")
program("set_sort_pooling", "set", SortPooling, lambda n: ((normal(n, 6, 3),), integers(4, n)))
