"""Defines models of tables and recommendations: embeddings of categories, bags, hashes, feature crosses, towers,
histories."""
import torch
import torch.nn.functional as F
from torch import nn

from common import integers, normal, padded_ids, program


class WideAndDeep(nn.Module):
    """Takes several categorical inputs and numbers as keyword arguments."""

    def __init__(self, sizes=(7, 11, 5), width=6, numbers=4):
        super().__init__()
        self.wide = nn.ModuleList(nn.Embedding(size, 1) for size in sizes)
        self.deep = nn.ModuleList(nn.Embedding(size, width) for size in sizes)
        self.norm = nn.BatchNorm1d(numbers)
        self.body = nn.Sequential(nn.Linear(width * len(sizes) + numbers, 24), nn.ReLU(), nn.Linear(24, 1))
        self.bias = nn.Parameter(torch.zeros(1))

    def forward(self, city, device, hour, numbers):
        categories = (city, device, hour)
        wide = sum(table(category) for table, category in zip(self.wide, categories))
        deep = torch.cat([table(category) for table, category in zip(self.deep, categories)] + [self.norm(numbers)], 1)
        return torch.sigmoid(wide + self.body(deep) + self.bias).squeeze(1)


class FactorizationMachine(nn.Module):
    """All fields share one table, each from its own offset. The square of the sum gives the products of pairs. A deep
    part is on top."""

    def __init__(self, sizes=(6, 9, 4, 5), width=6):
        super().__init__()
        self.register_buffer("offsets", torch.tensor([0, *sizes[:-1]]).cumsum(0))
        self.linear, self.factors = nn.Embedding(sum(sizes), 1), nn.Embedding(sum(sizes), width)
        nn.init.xavier_uniform_(self.factors.weight)
        self.deep = nn.Sequential(nn.Linear(width * len(sizes), 16), nn.ReLU(), nn.Linear(16, 1))
        self.bias = nn.Parameter(torch.zeros(()))

    def forward(self, fields):
        fields = fields + self.offsets
        x = self.factors(fields)
        pairs = 0.5 * (x.sum(1).pow(2) - x.pow(2).sum(1)).sum(1)
        return self.bias + self.linear(fields).sum((1, 2)) + pairs + self.deep(x.flatten(1)).squeeze(-1)


class TwoTower(nn.Module):
    """Embeds users and items in one space, with the other items of the batch as negatives. Returns the loss."""

    def __init__(self, width=12):
        super().__init__()
        self.users, self.items = nn.Embedding(30, width), nn.EmbeddingBag(40, width, mode="mean", padding_idx=0)
        self.user_tower, self.item_tower = nn.Linear(width, 8), nn.Linear(width, 8)
        self.temperature = nn.Parameter(torch.tensor(0.1).log())

    def forward(self, user, item_words):
        users = F.normalize(self.user_tower(self.users(user)), dim=-1)
        items = F.normalize(self.item_tower(self.items(item_words)), dim=-1)
        logits = users @ items.t() * torch.exp(-self.temperature)
        right = torch.arange(user.size(0), device=user.device)
        return 0.5 * (F.cross_entropy(logits, right) + F.cross_entropy(logits.t(), right))


class BagClassifier(nn.Module):
    """fastText: hashed words in a bag, with a layer on top."""

    def __init__(self, mode, buckets=50, width=16, classes=4):
        super().__init__()
        self.embedding = nn.EmbeddingBag(buckets, width, mode=mode)
        self.fc = nn.Linear(width, classes)

    def forward(self, text, offsets=None, weights=None):
        return self.fc(self.embedding(text, offsets, per_sample_weights=weights))


class HashedClicks(nn.Module):
    """Hashes large integers to buckets by the remainders of products. A second table uses the quotients."""

    def __init__(self, buckets=16, width=8):
        super().__init__()
        self.buckets = buckets
        self.remainder, self.quotient = nn.Embedding(buckets, width), nn.Embedding(buckets, width)
        self.crosses = nn.Embedding(buckets, width)
        self.head = nn.Linear(3 * width, 2)

    def forward(self, user_id, ad_id):
        mixed = (user_id * 2654435761 + ad_id * 40503) % 1048573
        low = torch.remainder(mixed, self.buckets)
        high = torch.div(mixed, self.buckets, rounding_mode="floor") % self.buckets
        cross = torch.bitwise_xor(user_id, ad_id) & (self.buckets - 1)
        return self.head(F.relu(torch.cat([self.remainder(low), self.quotient(high), self.crosses(cross)], dim=-1)))


class CrossNetwork(nn.Module):
    """DCN's crosses beside a deep part, and DLRM's pairwise products."""

    def __init__(self, fields=4, width=6):
        super().__init__()
        self.tables = nn.Embedding(20, width)
        size = fields * width
        self.cross = nn.ModuleList(nn.Linear(size, size) for _ in range(2))
        rows, columns = torch.tril_indices(fields, fields, offset=-1)
        self.register_buffer("rows", rows, persistent=False)
        self.register_buffer("columns", columns, persistent=False)
        self.head = nn.Linear(size + len(rows), 2)

    def forward(self, fields):
        embedded = self.tables(fields)
        x0 = embedded.flatten(1)
        x = x0
        for cross in self.cross:
            x = torch.addcmul(x, x0, cross(x))
        products = torch.bmm(embedded, embedded.transpose(1, 2))[:, self.rows, self.columns]
        return self.head(torch.cat([x, products], dim=1))


class InterestNetwork(nn.Module):
    """Weights a history by its similarity to the candidate. Takes a dict and returns a dict of two tasks."""

    def __init__(self, width=8):
        super().__init__()
        self.items, self.places = nn.Embedding(40, width, padding_idx=0), nn.Embedding(6, width)
        self.score = nn.Sequential(nn.Linear(4 * width, 16), nn.PReLU(), nn.Linear(16, 1))
        self.click, self.price = nn.Linear(3 * width, 2), nn.Linear(3 * width, 1)

    def forward(self, batch):
        candidate = self.items(batch["candidate"])
        history = self.items(batch["history"])
        repeated = candidate.unsqueeze(1).expand(-1, history.size(1), -1)
        scores = self.score(torch.cat([repeated, history, repeated - history, repeated * history], dim=-1)).squeeze(-1)
        scores = torch.where(batch["history"] > 0, scores, torch.full_like(scores, -1e4))
        interest = torch.einsum("nl,nld->nd", scores.softmax(-1), history)
        x = torch.cat([candidate, interest, self.places(batch["context"]["place"])], dim=-1)
        return {"click": self.click(x), "price": F.softplus(self.price(x)).squeeze(-1)}


class FeatureTokens(nn.Module):
    """FT-Transformer: one token for each column, categorical or numeric, and a CLS token."""

    def __init__(self, width=12, numbers=5, classes=3):
        super().__init__()
        self.scale, self.shift = (nn.Parameter(torch.randn(numbers, width) * 0.2) for _ in range(2))
        self.categories = nn.ModuleList(nn.Embedding(size, width) for size in (4, 7))
        self.cls = nn.Parameter(torch.randn(width) * 0.1)
        self.layer = nn.TransformerEncoderLayer(width, 2, 24, 0.0, "gelu", batch_first=True, norm_first=True)
        self.head = nn.Sequential(nn.LayerNorm(width), nn.ReLU(), nn.Linear(width, classes))

    def forward(self, numbers, categories):
        tokens = [self.cls.expand(numbers.size(0), 1, -1), numbers.unsqueeze(-1) * self.scale + self.shift]
        tokens += [table(column).unsqueeze(1) for table, column in zip(self.categories, categories.unbind(dim=1))]
        return self.head(self.layer(torch.cat(tokens, dim=1))[:, 0])


def wide_data(n):
    inputs = {"city": integers(7, n), "device": integers(11, n), "hour": integers(5, n), "numbers": normal(n, 4)}
    return inputs, integers(2, n).float()


def fields(*sizes):
    return lambda n: torch.stack([integers(size, n) for size in sizes], dim=1)


def tower_data(n):
    user = integers(30, n)
    return (user, padded_ids(40, n, 5)), user


def history_data(n):
    return ({"candidate": integers(40, n, least=1), "history": padded_ids(40, n, 6),
             "context": {"place": integers(6, n)}},), integers(2, n)


program("wide_and_deep", "recommender", WideAndDeep, wide_data, loss="mse", batch=16)
program("factorization_machine", "recommender", FactorizationMachine,
        lambda n: ((fields(6, 9, 4, 5)(n),), normal(n)), loss="mse")
program("two_tower", "recommender", TwoTower, tower_data, loss="output")
program("embedding_bag_mean", "recommender", lambda: BagClassifier("mean"),
        lambda n: ((integers(50, n, 6),), integers(4, n)))
program("embedding_bag_max", "recommender", lambda: BagClassifier("max"),
        lambda n: ((integers(50, n, 6),), integers(4, n)))
program("embedding_bag_weighted", "recommender", lambda: BagClassifier("sum"),
        lambda n: ({"text": integers(50, n, 6), "weights": normal(n, 6)}, integers(4, n)))
program("embedding_bag_offsets", "recommender", lambda: BagClassifier("sum"),
        lambda n: ((integers(50, 3 * n), 3 * torch.arange(n)), integers(4, n)),
        dynamic=lambda batch: {"text": {0: 3 * batch}, "offsets": {0: batch}}, batched=False)
program("hashed_clicks", "recommender", HashedClicks,
        lambda n: ((integers(2 ** 31, n), integers(2 ** 20, n)), integers(2, n)))
program("cross_network", "recommender", CrossNetwork, lambda n: ((integers(20, n, 4),), integers(2, n)))
program("interest_network", "recommender", InterestNetwork, history_data)
program("feature_tokens", "recommender", FeatureTokens,
        lambda n: ((normal(n, 5), fields(4, 7)(n)), integers(3, n)))
