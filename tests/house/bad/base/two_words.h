//  // expect: purpose
#pragma once
