// Without LibTorch there is no store that other programs could use.
#include "tools/keelrun/stores.h"

namespace keel {

Result<std::unique_ptr<StoreMaker>> MakeStores() {
  return Error{Code::kInvalid, "this keelrun was built without LibTorch, whose store its workers "
                               "meet at; build it with LibTorch to launch jobs"};
}

}  // namespace keel
