#pragma once  // expect: purpose
