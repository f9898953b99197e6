// UnusedGloo: a member that lets itself be found, and then does nothing any more.
// Promises   as long as it lives, others that know its card connect to it, or wait for it.
// Threads    one.
#pragma once

#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include <string>

#include "store/torch_shim.h"
#include "trainer/group/address_book.h"
#include "trainer/group/address_store.h"

namespace keel {

class UnusedGloo {
 public:
  explicit UnusedGloo(const std::string& address, int rank = 0, int size = 1)
      : rank_(rank),
        addresses_(c10::make_intrusive<AddressStore>([] { return false; })),
        gloo_(c10::make_intrusive<c10d::ProcessGroupGloo>(addresses_, rank, size,
                                                          OptionsOf(address))) {}

  MemberCard card() const { return {addresses_->Of(rank_), {}, {}}; }

 private:
  static c10::intrusive_ptr<c10d::ProcessGroupGloo::Options> OptionsOf(const std::string& address) {
    auto options = c10d::ProcessGroupGloo::Options::create();
    options->threads = 1;
    options->devices.push_back(MakeGlooDevice(address, /*lazy=*/true).device);
    return options;
  }

  const int rank_;
  const c10::intrusive_ptr<AddressStore> addresses_;
  const c10::intrusive_ptr<c10d::ProcessGroupGloo> gloo_;
};

}  // namespace keel
