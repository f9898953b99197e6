// What training programs link knows too much of the launcher, and of those who save.
#include "elastic/protocol/link.h"
#include "elastic/status/page.h"   // expect: include-wing
#include "elastic/supervisor.h"    // expect: include-wing
#include "trainer/loop/trainer.h"  // expect: include-wing
