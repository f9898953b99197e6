#!/usr/bin/env python3
"""A pair of sentences is classified by a small BERT that is made here, by the Trainer of
transformers, which reads the launcher's environment itself, and evaluated.
"""
import os

import torch
import transformers

import ending

LABELS, WORDS, LENGTH = 2, 120, 16


class Sentences(torch.utils.data.Dataset):
    """The label says whether a pair begins with the same word."""

    def __init__(self, count, seed):
        draw = torch.Generator().manual_seed(seed)
        self.rows = torch.randint(5, WORDS, (count, LENGTH), generator=draw)
        alike = torch.rand(count, generator=draw) < 0.5
        half = LENGTH // 2
        self.rows[alike, half] = self.rows[alike, 0]
        self.labels = (self.rows[:, half] == self.rows[:, 0]).long()

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        kinds = torch.tensor([0] * (LENGTH // 2) + [1] * (LENGTH // 2))
        return {"input_ids": self.rows[index], "token_type_ids": kinds,
                "attention_mask": torch.ones(LENGTH, dtype=torch.long),
                "labels": self.labels[index]}


def accuracy(found):
    return {"accuracy": float((found.predictions.argmax(-1) == found.label_ids).mean())}


def main():
    transformers.set_seed(42)
    model = transformers.BertForSequenceClassification(transformers.BertConfig(
        vocab_size=WORDS, hidden_size=16, num_hidden_layers=2, num_attention_heads=2,
        intermediate_size=32, max_position_embeddings=LENGTH, num_labels=LABELS))
    arguments = transformers.TrainingArguments(
        output_dir=os.path.join(os.environ["OUT"], "run"), max_steps=30,
        per_device_train_batch_size=8, learning_rate=1e-3, save_strategy="no", report_to=[],
        use_cpu=True, ddp_backend="gloo", disable_tqdm=True, logging_strategy="no")
    trainer = transformers.Trainer(model, arguments, train_dataset=Sentences(400, 1),
                                   eval_dataset=Sentences(80, 2), compute_metrics=accuracy)
    trainer.train()
    found = trainer.evaluate()
    ending.tell(model, f"loss {found['eval_loss']:.9g} accuracy {found['eval_accuracy']:.9g}")


if __name__ == "__main__":
    main()
