// TorchStoreOf: our TcpStore in c10d's terms, for process groups, which know nothing else.
// Promises   the same connection; it lives as long as somebody holds it.
// Does not   keep the checks on sizes and the meaning of errors that store/store.h gives.
#pragma once

#include <torch/csrc/distributed/c10d/Store.hpp>

#include "store/tcp_store.h"

namespace keel {

c10::intrusive_ptr<c10d::Store> TorchStoreOf(const TcpStore& store);

}  // namespace keel
