// Two folders that must not know each other.
#include "elastic/link.h"         // expect: include-direction
#include <ATen/ATen.h>            // expect: include-torch
