// Two folders that must not know each other.
#include "ckpt/manifest.h"        // expect: include-direction
#include "trainer/engine.h"       // expect: include-direction
#include <c10/util/Exception.h>   // expect: include-torch
