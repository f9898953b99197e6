"""One lane is a plain loop: the same script twice in one process, by a job and by PyTorch alone."""
import evenkeel as ek
import torch
from torch import nn
from torch.nn import functional as F

STEPS, BATCH, SAMPLES = 40, 8, 64


def made():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(),
                          nn.Linear(4 * 36, 10))
    return model, torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)


job = ek.Job(steps=STEPS, lanes=1, lane_batch=BATCH, log_every=0)
data, target = torch.ops.evenkeel.synthetic_classes(0, SAMPLES, [3, 8, 8], 10)
batches = []
model, optimizer = made()
job.prepare(model, optimizer, torch.utils.data.TensorDataset(data, target))
for x, y in job:
    batches.append((x, y))
    job.backward(F.cross_entropy(model(x), y))

plain, optimizer = made()
for x, y in batches:
    optimizer.zero_grad()
    F.cross_entropy(plain(x), y).backward()
    optimizer.step()
ours, theirs = model.state_dict(), plain.state_dict()
for name, tensor in ours.items():
    assert torch.equal(tensor, theirs[name]), name
print("the same bits after", len(batches), "steps")
print("PyTorch's compiler", "was imported" if ek._compiler.is_imported() else "was left out")
