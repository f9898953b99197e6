// A header that is installed, and includes one that is not.
#pragma once

#include "trainer/loop/trainer.h"  // expect: include-public
