"""Trains a small BERT of Hugging Face's transformers to tell two made-up languages apart.

    pip install transformers accelerate
    keelrun --standalone --nproc-per-node 3 examples/python/fine_tune.py
"""
import sys

import evenkeel.hf            # before PyTorch computes anything
import torch
import transformers

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 40


class Languages(torch.utils.data.Dataset):
    """Sentences of different lengths; each language prefers half of the words."""

    def __init__(self, count, seed):
        draw = torch.Generator().manual_seed(seed)
        self.samples = []
        for _ in range(count):
            language = int(torch.randint(2, (1,), generator=draw))
            length = int(torch.randint(6, 16, (1,), generator=draw))
            words = torch.randint(5, 35, (length,), generator=draw) + 30 * language
            self.samples.append({"input_ids": words.tolist(), "labels": language})

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, index):
        return self.samples[index]


def padded(samples):
    longest = max(len(one["input_ids"]) for one in samples)
    rows = [one["input_ids"] + [0] * (longest - len(one["input_ids"])) for one in samples]
    ids = torch.tensor(rows)
    return {"input_ids": ids, "attention_mask": (ids != 0).long(),
            "labels": torch.tensor([one["labels"] for one in samples])}


transformers.set_seed(0)      # before the model: all workers make the same one
model = transformers.BertForSequenceClassification(transformers.BertConfig(
    vocab_size=70, hidden_size=32, num_hidden_layers=2, num_attention_heads=2,
    intermediate_size=64, max_position_embeddings=32))
arguments = transformers.TrainingArguments(
    "runs/languages", max_steps=STEPS, per_device_train_batch_size=4, learning_rate=1e-3,
    warmup_steps=5, eval_strategy="steps", eval_steps=20, save_strategy="no", report_to=[],
    use_cpu=True)
trainer = transformers.Trainer(model, arguments, train_dataset=Languages(200, 1),
                               eval_dataset=Languages(50, 2), data_collator=padded)
print(evenkeel.hf.train(trainer, lanes=4))
