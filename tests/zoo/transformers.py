"""Defines encoders and encoder-decoders: BERT and similar models, and those of torch.nn."""
import math

import torch
import torch.nn.functional as F
from torch import nn

from common import integers, normal, padded_ids, program


class SelfAttention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.size = heads, width // heads
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))
        self.out = nn.Linear(width, width)
        self.dropout = nn.Dropout(0.0)

    def split(self, x):
        return x.view(x.size(0), -1, self.heads, self.size).transpose(1, 2)

    def forward(self, x, mask):
        q, k, v = self.split(self.query(x)), self.split(self.key(x)), self.split(self.value(x))
        scores = torch.matmul(q, k.transpose(-1, -2)) / math.sqrt(self.size) + mask
        context = torch.matmul(self.dropout(F.softmax(scores, dim=-1)), v)
        return self.out(context.transpose(1, 2).reshape(x.shape))


class BertLayer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.attention = SelfAttention(width, heads)
        self.norm1, self.norm2 = nn.LayerNorm(width, eps=1e-12), nn.LayerNorm(width, eps=1e-12)
        self.intermediate, self.output = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x, mask):
        x = self.norm1(x + self.attention(x, mask))
        return self.norm2(x + self.output(F.gelu(self.intermediate(x))))


class Bert(nn.Module):
    def __init__(self, vocabulary=50, width=24, heads=3, depth=2, longest=16):
        super().__init__()
        self.words = nn.Embedding(vocabulary, width, padding_idx=0)
        self.positions = nn.Embedding(longest, width)
        self.segments = nn.Embedding(2, width)
        self.register_buffer("position_ids", torch.arange(longest).expand(1, -1), persistent=False)
        self.norm = nn.LayerNorm(width, eps=1e-12)
        self.layers = nn.ModuleList(BertLayer(width, heads) for _ in range(depth))

    def forward(self, input_ids, attention_mask, token_type_ids):
        mask = (1.0 - attention_mask[:, None, None, :].to(torch.float32)) * torch.finfo(torch.float32).min
        x = self.words(input_ids) + self.positions(self.position_ids[:, :input_ids.size(1)])
        x = self.norm(x + self.segments(token_type_ids))
        for layer in self.layers:
            x = layer(x, mask)
        return x


class BertClassifier(nn.Module):
    def __init__(self, classes=3, width=24):
        super().__init__()
        self.bert = Bert(width=width)
        self.pooler = nn.Linear(width, width)
        self.classifier = nn.Linear(width, classes)

    def forward(self, input_ids, attention_mask, token_type_ids):
        x = self.bert(input_ids, attention_mask, token_type_ids)
        return self.classifier(torch.tanh(self.pooler(x[:, 0])))


class BertMaskedLanguage(nn.Module):
    """The loss over the masked positions, as in BERT's training. The decoder is tied to the embedding."""

    def __init__(self, vocabulary=50, width=24):
        super().__init__()
        self.bert = Bert(vocabulary, width)
        self.transform = nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.LayerNorm(width))
        self.decoder = nn.Linear(width, vocabulary)
        self.decoder.weight = self.bert.words.weight

    def forward(self, input_ids, attention_mask, token_type_ids, labels):
        logits = self.decoder(self.transform(self.bert(input_ids, attention_mask, token_type_ids)))
        loss = F.cross_entropy(logits.view(-1, logits.size(-1)), labels.view(-1), ignore_index=-100)
        return {"loss": loss, "logits": logits}


class TorchEncoder(nn.Module):
    """torch.nn.TransformerEncoder with sinusoidal positions and a padding mask, averaged over the words."""

    def __init__(self, vocabulary=50, width=24, classes=3, longest=16, **options):
        super().__init__()
        position = torch.arange(longest).unsqueeze(1)
        frequency = torch.exp(torch.arange(0, width, 2) * (-math.log(10000.0) / width))
        table = torch.zeros(1, longest, width)
        table[0, :, 0::2], table[0, :, 1::2] = torch.sin(position * frequency), torch.cos(position * frequency)
        self.register_buffer("table", table)
        self.embedding = nn.Embedding(vocabulary, width, padding_idx=0)
        layer = nn.TransformerEncoderLayer(width, 4, 48, dropout=0.0, batch_first=True, **options)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(width, classes)

    def forward(self, ids):
        padding = ids == 0
        x = self.embedding(ids) * math.sqrt(self.embedding.embedding_dim) + self.table[:, :ids.size(1)]
        x = self.encoder(x, src_key_padding_mask=padding)
        words = (~padding).unsqueeze(-1).float()
        return self.head((x * words).sum(1) / words.sum(1).clamp(min=1.0))


class Translator(nn.Module):
    def __init__(self, vocabulary=30, width=16, longest=12, dropout=0.0):
        super().__init__()
        self.source = nn.Embedding(vocabulary, width)
        self.target = nn.Embedding(vocabulary, width)
        self.position = nn.Parameter(torch.randn(longest, width) * 0.02)
        self.transformer = nn.Transformer(width, 2, 1, 2, 32, dropout=dropout, batch_first=True)
        self.head = nn.Linear(width, vocabulary)

    def forward(self, source, target):
        mask = nn.Transformer.generate_square_subsequent_mask(target.size(1))
        out = self.transformer(self.source(source) + self.position[:source.size(1)],
                               self.target(target) + self.position[:target.size(1)], tgt_mask=mask, tgt_is_causal=True)
        return self.head(out)


def bert_inputs(n, length=10, vocabulary=50):
    ids = padded_ids(vocabulary, n, length)
    segments = (torch.arange(length).expand(n, -1) >= integers(length, n, 1)).long()
    return {"input_ids": ids, "attention_mask": (ids != 0).long(), "token_type_ids": segments}


def masked_language_data(n):
    inputs = bert_inputs(n)
    masked = (torch.rand(n, 10) < 0.3) & (inputs["input_ids"] != 0)
    masked[:, 0] = True
    labels = torch.where(masked, inputs["input_ids"], -100)
    inputs["input_ids"] = torch.where(masked, 1, inputs["input_ids"])
    return inputs | {"labels": labels}, labels


def translation(n):
    words = integers(30, n, 8)
    return (integers(30, n, 9), words[:, :-1].contiguous()), words[:, 1:].contiguous()


program("bert_classifier", "encoder", BertClassifier, lambda n: (bert_inputs(n), integers(3, n)))
program("bert_masked_language", "encoder", BertMaskedLanguage, masked_language_data, loss="output", batch=4, other=6)
program("transformer_encoder", "encoder", TorchEncoder, lambda n: ((padded_ids(50, n, 10),), integers(3, n)),
        variants=["decomposed"])
program("transformer_encoder_prenorm", "encoder", lambda: TorchEncoder(norm_first=True, activation="gelu", bias=False),
        lambda n: ((padded_ids(50, n, 10),), integers(3, n)))
program("transformer_translator", "encoder-decoder", Translator, translation)
