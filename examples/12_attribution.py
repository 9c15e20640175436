"""Which training images helped a model to its answer, and which harmed?  Attribution with a PyTorch model's gradients.

A small network learns scikit-learn's digits, 8 x 8 images; 60 of its 1000 training images have a wrong label,
which the network does not know.  The training images that harmed a test image most turn out to be
wrongly labelled ones, mostly of its own digit; those that helped most have its label, rightly or wrongly.

Gradients of single examples come from torch.func as a dict of tensors, are masked and sketched as they are, and then
discarded.  Scores are the mean over three networks.  Needs PyTorch and scikit-learn.
"""

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch.func import functional_call, grad, vmap

import flashsketch as fs

N, QUERIES, MODELS = 1000, 100, 3
digits = load_digits()
images = torch.tensor(digits.data / 16, dtype=torch.float32)
truth = torch.tensor(digits.target)
labels, wrong = truth.clone(), np.random.default_rng(0).choice(N, 60, replace=False)
labels[wrong] = (truth[wrong] + torch.from_numpy(np.random.default_rng(1).integers(1, 10, 60))) % 10


def trained(seed):
    torch.manual_seed(seed)
    net = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    for _ in range(5):
        for batch in torch.randperm(N).split(50):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(net(images[batch]), labels[batch]).backward()
            optimizer.step()
    return net


def margin(net, parameters, image, label):
    """log p / (1 - p) of the label: TRAK's output function."""
    out = functional_call(net, parameters, (image,))
    others = torch.where(torch.arange(10) == label, -torch.inf, out)
    return (out * (torch.arange(10) == label)).sum() - others.logsumexp(0)


scores = None
for seed in range(MODELS):
    net = trained(seed)
    parameters = {name: p.detach() for name, p in net.named_parameters()}

    def gradients(first, count):
        """A dict of tensors: examples x the shape of each parameter."""
        of_one = grad(lambda parameters, image, label: margin(net, parameters, image, label))
        return vmap(of_one, (None, 0, 0))(parameters, images[first : first + count], labels[first : first + count])

    attributor = fs.attribution.Attributor(net, examples=N, k=256, mask=1024, seed=seed)
    for first in range(0, N, 128):
        attributor.add(gradients(first, min(128, N - first)))
    attributor.finish(damping=1.0)
    with torch.no_grad():
        learnt = net(images[:N]).softmax(1)[torch.arange(N), labels[:N]]
    features = attributor.project(gradients(N, QUERIES))
    scores = attributor.scores(features, weights=1 - learnt, alpha=1 / MODELS, add_to=scores)

helpful, _ = fs.attribution.top(scores, 3)
harmful, _ = fs.attribution.top(scores, 3, harmful=True)


def shown(examples):
    """Digits, and what they were called if that was something else."""
    names = [f"{r}" if r == said else f"{r} called {said}" for r, said in zip(truth[examples], labels[examples])]
    return ", ".join(names)


print("test image  helped by                          harmed by")
for query in range(8):
    print(f"{truth[N + query]:10}  {shown(helpful[query]):33}  {shown(harmful[query])}")
same = (labels[helpful] == truth[N : N + QUERIES, None]).float().mean().item()
spoilt = np.isin(harmful[:, 0], wrong).mean()
print(f"of {QUERIES} test images: {same:.0%} of the 3 that helped most have its label, a tenth of all have;")
print(f"the one that harmed most is wrongly labelled for {spoilt:.0%}, of all training images {len(wrong) / N:.0%} are")
assert same > 0.8 and spoilt > 0.8, (same, spoilt)
