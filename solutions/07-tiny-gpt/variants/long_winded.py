"""Write one step per line with long names. Use log_softmax, gather, and a dict of pairs."""

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn


@dataclass
class GPTConfig:
    vocab_size: int = 50257
    n_positions: int = 1024
    n_embd: int = 768
    n_layer: int = 12
    n_head: int = 12
    dropout: float = 0.0
    bias: bool = True


class CausalSelfAttention(nn.Module):
    def __init__(self, n_embd: int, n_head: int, dropout: float = 0.0, bias: bool = True) -> None:
        super().__init__()
        self.n_head = n_head
        self.dropout = dropout
        self.c_attn = nn.Linear(n_embd, 3 * n_embd, bias=bias)
        self.c_proj = nn.Linear(n_embd, n_embd, bias=bias)
        self.resid_dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        heads = self.c_attn(x).unflatten(-1, (3, self.n_head, -1))
        q, k, v = heads.permute(2, 0, 3, 1, 4)
        dropout = self.dropout if self.training else 0.0
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, dropout_p=dropout)
        return self.resid_dropout(self.c_proj(y.transpose(1, 2).flatten(2)))


class MLP(nn.Module):
    def __init__(self, n_embd: int, dropout: float = 0.0, bias: bool = True) -> None:
        super().__init__()
        self.c_fc = nn.Linear(n_embd, 4 * n_embd, bias=bias)
        self.gelu = nn.GELU(approximate="tanh")
        self.c_proj = nn.Linear(4 * n_embd, n_embd, bias=bias)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        return self.dropout(self.c_proj(self.gelu(self.c_fc(x))))


class Block(nn.Module):
    def __init__(self, n_embd: int, n_head: int, dropout: float = 0.0, bias: bool = True) -> None:
        super().__init__()
        self.ln_1 = nn.LayerNorm(n_embd, bias=bias)
        self.attn = CausalSelfAttention(n_embd, n_head, dropout, bias)
        self.ln_2 = nn.LayerNorm(n_embd, bias=bias)
        self.mlp = MLP(n_embd, dropout, bias)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


def initialise(model, n_layer):
    for name, parameter in model.named_parameters():
        if name.endswith(".bias"):
            nn.init.zeros_(parameter)
        elif ".ln_" in name:
            nn.init.ones_(parameter)
        elif name.endswith("c_proj.weight"):
            nn.init.normal_(parameter, 0.0, 0.02 / (2 * n_layer) ** 0.5)
        else:
            nn.init.normal_(parameter, 0.0, 0.02)


class GPT(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        token_embedding = nn.Embedding(config.vocab_size, config.n_embd)
        position_embedding = nn.Embedding(config.n_positions, config.n_embd)
        list_of_blocks = nn.ModuleList()
        for layer in range(config.n_layer):
            block = Block(
                n_embd=config.n_embd,
                n_head=config.n_head,
                dropout=config.dropout,
                bias=config.bias,
            )
            list_of_blocks.append(block)
        final_norm = nn.LayerNorm(config.n_embd, bias=config.bias)
        self.transformer = nn.ModuleDict(
            {
                "wte": token_embedding,
                "wpe": position_embedding,
                "drop": nn.Dropout(config.dropout),
                "h": list_of_blocks,
                "ln_f": final_norm,
            }
        )
        self.lm_head = nn.Linear(config.n_embd, config.vocab_size, bias=False)
        self.lm_head.weight = token_embedding.weight
        initialise(self, config.n_layer)

    def forward(self, idx, targets=None):
        batch_size, seq_len = idx.shape
        if seq_len > self.config.n_positions:
            raise ValueError("The sequence is longer than n_positions.")
        token_vectors = self.transformer["wte"](idx)
        positions = torch.arange(seq_len).unsqueeze(0)
        position_vectors = self.transformer["wpe"](positions)
        x = token_vectors + position_vectors
        x = self.transformer["drop"](x)
        for i in range(len(self.transformer["h"])):
            x = self.transformer["h"][i](x)
        x = self.transformer["ln_f"](x)
        logits = self.lm_head(x)
        if targets is None:
            return logits, None
        log_probabilities = torch.log_softmax(logits, dim=-1)
        counted = targets != -100
        safe_targets = torch.where(counted, targets, 0)
        picked = log_probabilities.gather(2, safe_targets.unsqueeze(2)).squeeze(2)
        loss = -(picked * counted).sum() / counted.sum()
        return logits, loss

    def generate(self, idx, max_new_tokens):
        training_before = self.training
        self.eval()
        tokens = idx.clone()
        with torch.no_grad():
            for step in range(max_new_tokens):
                context = tokens[:, -self.config.n_positions :]
                logits, loss = self.forward(context)
                last_logits = logits[:, -1, :]
                best = last_logits.max(dim=-1).indices
                tokens = torch.cat([tokens, best.unsqueeze(1)], dim=1)
        if training_before:
            self.train()
        return tokens


def get_batch(data, n_positions, batch_size, generator=None):
    number_of_starts = data.shape[0] - n_positions
    if number_of_starts <= 0:
        raise ValueError("There are not enough tokens for one row.")
    inputs = []
    targets = []
    for row in range(batch_size):
        start = torch.randint(0, number_of_starts, (1,), generator=generator).item()
        inputs.append(data[start : start + n_positions])
        targets.append(data[start + 1 : start + n_positions + 1])
    return torch.stack(inputs), torch.stack(targets)


def bigram_loss(data, vocab_size):
    tokens = data.tolist()
    pair_counts = {}
    first_counts = {}
    for first, second in zip(tokens[:-1], tokens[1:]):
        pair_counts[first, second] = pair_counts.get((first, second), 0) + 1
        first_counts[first] = first_counts.get(first, 0) + 1
    total = 0.0
    for (first, second), count in pair_counts.items():
        total -= count * math.log(count / first_counts[first])
    return total / (len(tokens) - 1)
