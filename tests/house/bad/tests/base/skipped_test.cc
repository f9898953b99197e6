// Tests that are switched off in silence.

TEST(Clock, DISABLED_GoesBack) {  // expect: disabled
  GTEST_SKIP();                   // expect: disabled
  GTEST_SKIP() << "flaky";        // expect: disabled
}

void Helper() { exit(3); }        // expect: exit
