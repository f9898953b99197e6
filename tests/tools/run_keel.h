// Runs the real `keel`, or another program, for tests.
// Promises   what it prints and its exit code, as a user sees them; no terminal is involved.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdio>
#include <string>

#include "base/json.h"

namespace keel {

struct Ran {
  int exit_code = -1;
  std::string out;  // stdout, then stderr
};

inline Ran RunShell(const std::string& command) {
  Ran ran;
  FILE* const pipe = ::popen(("exec 2>&1; " + command).c_str(), "r");
  if (pipe == nullptr) return ran;
  char buffer[4096];
  for (size_t got; (got = std::fread(buffer, 1, sizeof buffer, pipe)) > 0;) {
    ran.out.append(buffer, got);
  }
  const int status = ::pclose(pipe);
  if (WIFEXITED(status)) ran.exit_code = WEXITSTATUS(status);
  return ran;
}

// `arguments` go through the shell: paths of TempDir need no quotes.
inline Ran RunKeel(const std::string& arguments) {
  return RunShell(KEEL_BIN_DIR "/keel " + arguments);
}

// The JSON that a command prints, which must succeed in parsing.
inline Json KeelJson(const std::string& arguments, int exit_code = 0) {
  const Ran ran = RunKeel(arguments + " --json");
  EXPECT_EQ(ran.exit_code, exit_code) << ran.out;
  const auto json = ParseJson(ran.out);
  EXPECT_TRUE(json.ok()) << ran.out;
  return json.ok() ? *json : Json();
}

}  // namespace keel
