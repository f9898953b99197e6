// Of the terms, their text.
#include "trainer/save/terms.h"

namespace keel {

std::string SaveTerms::Text() const {
  return "--save-every " + std::to_string(every_steps) + ", --codec " +
         std::string(CodecName(codec));
}

}  // namespace keel
