// The stores that this build of keelrun has.
#pragma once

#include <memory>

#include "base/result.h"
#include "store/store_maker.h"

namespace keel {

// kInvalid: this build has none.
Result<std::unique_ptr<StoreMaker>> MakeStores();

}  // namespace keel
