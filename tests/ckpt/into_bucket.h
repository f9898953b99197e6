// CopyIntoBucket(): a directory as objects, as `aws s3 sync DIR s3://bucket/PREFIX` copies it.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "base/file_helpers.h"
#include "base/objects.h"
#include "tests/harness/expect_ok.h"

namespace keel {

inline void CopyIntoBucket(Files& files, const std::string& dir, Objects& bucket,
                           const std::string& prefix) {
  const auto entries = files.List(dir);
  ASSERT_OK(entries);
  for (const DirEntry& entry : *entries) {
    const std::string path = JoinPath(dir, entry.name), key = prefix + "/" + entry.name;
    if (entry.kind == FileKind::kDirectory) {
      CopyIntoBucket(files, path, bucket, key);
    } else {
      ASSERT_OK(bucket.Replace(key, *ReadWhole(files, path, 1 << 24)));
    }
  }
}

}  // namespace keel
