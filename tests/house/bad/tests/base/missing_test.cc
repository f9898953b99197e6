// A test that nobody runs.  // expect: unbuilt
