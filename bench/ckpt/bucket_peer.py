#!/usr/bin/env python3
"""One save or one load of the state in a bucket, as PyTorch's users do it, in a process of its own.

    dcp_s3         torch.distributed.checkpoint with s3torchconnector's writer and reader
    torch_save_s3  torch.save into a file in memory, and boto3's transfer of it

Prints READY, goes on when a line comes on stdin, and prints RESULT {json}: seconds, CPU seconds,
memory above what it held before; a load says whether all is as it was.
"""
import argparse
import io
import json
import os
import sys
import time
import urllib.parse
import warnings

import torch
from common import load_state, now, reset_peak_mb, status_mb

warnings.filterwarnings("ignore")
REGION = os.environ.get("AWS_REGION", "us-east-1")


def save(system, state, url):
    if system == "dcp_s3":
        import torch.distributed.checkpoint as dcp
        from s3torchconnector.dcp import S3StorageWriter
        dcp.save(state, storage_writer=S3StorageWriter(**connection_to(url)))
        return
    whole = io.BytesIO()
    torch.save(state, whole)
    whole.seek(0)
    bucket, key = place_of(url)
    boto_client().upload_fileobj(whole, bucket, key + "/state.pt")


def load(system, state, url):
    if system == "dcp_s3":
        import torch.distributed.checkpoint as dcp
        from s3torchconnector.dcp import S3StorageReader
        dcp.load(state, storage_reader=S3StorageReader(**connection_to(url)))
        return
    whole = io.BytesIO()
    bucket, key = place_of(url)
    boto_client().download_fileobj(bucket, key + "/state.pt", whole)
    whole.seek(0)
    for name, value in torch.load(whole, weights_only=True).items():
        state[name].copy_(value)


def connection_to(url):
    """What s3torchconnector's writer and reader are told."""
    from s3torchconnector import S3ClientConfig
    return {"region": REGION, "path": url,
            "s3client_config": S3ClientConfig(force_path_style=True)}


def place_of(url):
    parts = urllib.parse.urlsplit(url)
    return parts.netloc, parts.path.strip("/")


def boto_client():
    import boto3
    return boto3.client("s3")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("save", "load"))
    parser.add_argument("--system", required=True, choices=("dcp_s3", "torch_save_s3"))
    parser.add_argument("--state", required=True, help="the file state.safetensors")
    parser.add_argument("--url", required=True)
    args = parser.parse_args()
    state = load_state(args.state)
    if args.what == "load":
        for value in state.values():
            value.zero_()
    print("READY", flush=True)
    sys.stdin.readline()
    before_mb, start, cpu = reset_peak_mb(), now(), time.process_time()
    (save if args.what == "save" else load)(args.system, state, args.url)
    result = {"s": now() - start, "cpu_s": time.process_time() - cpu,
              "peak_mb": status_mb("VmHWM") - before_mb}
    if args.what == "load":
        expected = load_state(args.state)
        result["ok"] = all(torch.equal(expected[name], state[name]) for name in expected)
    print("RESULT " + json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
