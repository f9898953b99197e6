// A library that includes programs' files and NCCL's.
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>  // expect: include-nccl
#include "tools/main.h"                                      // expect: include-direction
