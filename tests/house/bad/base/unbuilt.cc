// A file that no target compiles.  // expect: unbuilt
