"""What all starters say last: in one write, since ranks share a file."""
import hashlib

import torch


def tell(model, note=""):
    whole = hashlib.sha256()
    for name, value in sorted(model.state_dict().items()):
        data = value.detach().cpu().contiguous().view(torch.uint8) if value.dim() else value
        whole.update(name.encode() + str(data.flatten().tolist()).encode())
    print(f"ended: {whole.hexdigest()[:16]} {note}\n", end="", flush=True)
