"""A bucket of a real SeaweedFS as the tests of faults see it, and the way to it through a proxy."""
import urllib.parse

import proxy as proxies
import weed

BUCKET = "faults"


class Bucket:
    def __init__(self):
        self.server = weed.Weed()
        self.client = self.server.make_bucket(BUCKET)

    def close(self):
        self.server.close()

    def objects(self, prefix):
        """By key: what tells whether it was written again."""
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=BUCKET,
                                                                      Prefix=prefix + "/")
        return {one["Key"]: (one["ETag"], one["LastModified"], one["Size"])
                for page in pages for one in page.get("Contents", [])}

    def uploads(self, prefix):
        answer = self.client.list_multipart_uploads(Bucket=BUCKET, Prefix=prefix + "/")
        return [one["Key"] for one in answer.get("Uploads", [])]

    def copy(self, source, prefix, is_wanted):
        for key in self.objects(source):
            if is_wanted(key):
                self.client.copy_object(Bucket=BUCKET, Key=prefix + key[len(source):],
                                        CopySource={"Bucket": BUCKET, "Key": key})

    def proxy(self):
        proxy = proxies.Proxy(self.server.port)
        bucket = f"/{BUCKET}/"

        def whole(path):
            key = urllib.parse.unquote(path[len(bucket):])
            try:
                return self.client.get_object(Bucket=BUCKET, Key=key)["Body"].read()
            except self.client.exceptions.NoSuchKey:
                return None

        proxy.whole = whole
        proxy.restart_server = lambda: self.server.restart(BUCKET)
        return proxy
