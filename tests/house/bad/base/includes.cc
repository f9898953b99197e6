// Includes that point upwards, or to what this folder must not know.
#include "base/result.h"
#include "store/store.h"          // expect: include-direction
#include "result.h"               // expect: include-direction
#include <torch/torch.h>          // expect: include-torch
#  include <gloo/algorithm.h>     // expect: include-torch
#include <nccl.h>                 // expect: include-nccl
