// Empty on purpose: a precompiled header needs a file to belong to.
