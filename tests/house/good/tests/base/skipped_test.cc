// Tests that are switched off for a reason.

// Fails with the older compiler: #12.
TEST(Clock, DISABLED_GoesBack) {
  if (!HasGpu()) GTEST_SKIP() << "this machine has no GPU";
  if (fork() == 0) ::_exit(3);
  setenv("HOME", "/", 1);
}
