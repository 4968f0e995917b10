"""Define functions of one vector, and apply them to tensors with torch.vmap."""

import torch


def dot_product_similarity(q, k):
    one_query = torch.vmap(torch.dot, in_dims=(None, 0))
    one_matrix = torch.vmap(one_query, in_dims=(0, None))
    for _ in range(q.dim() - 2):
        one_matrix = torch.vmap(one_matrix)
    return one_matrix(q, k)


def _softmax_of_vector(x):
    e = torch.exp(x - x.max().detach())
    return e / e.sum()


def softmax(x, dim=-1):
    x = x.movedim(dim, 0)
    function = _softmax_of_vector
    for _ in range(x.dim() - 1):
        function = torch.vmap(function, in_dims=1, out_dims=1)
    return function(x).movedim(0, dim)
