// AwaitListener, AwaitAnswer: wait until something accepts TCP connections at an address, or says
// something there.
// c10d waits for its store up to twice the limit that it was given, and longer. So the address is
// tried first, and c10d connects only once it answers.
// Promises   ends within its limit, and at once when it is cancelled; tells "nobody listens there"
//            from "no way to that host".
// Does not   know whether what listens is a store.
// Threads    any.
// Errors     kTimeout: the limit passed; its message holds the last reason. kCancelled.
#pragma once

#include <netdb.h>

#include <cstdint>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "store/cancel.h"

namespace keel {

// One attempt, given up at `end`. The descriptor does not block and is the caller's. -1: `cause` is
// the errno, ETIMEDOUT if nothing answered, ECANCELED.
int ConnectOnce(const addrinfo& address, TimePoint end, int* cause,
                const CancelToken& cancel = CancelToken::Never());

// What one attempt to connect finds. Only the kernel of a machine that is there refuses.
enum class Reached { kListener, kRefused, kNothing };
// `number` is a numeric address; anything else is never reached.
Reached ReachOnce(const std::string& number, uint16_t port, Duration limit,
                  const CancelToken& cancel = CancelToken::Never());

// The same of a numeric address with its port, as AddressText() writes it.
Reached ReachOnce(const std::string& endpoint, Duration limit);

// `number` is a numeric address.
Status AwaitListener(const std::string& number, uint16_t port, Duration limit,
                     const CancelToken& cancel = CancelToken::Never());

// The same, and then until what listens answers to the first words of a store's client
// (store/store_hail.h). Whoever connects then finds out what it is.
Status AwaitAnswer(const std::string& number, uint16_t port, Duration limit,
                   const CancelToken& cancel = CancelToken::Never());

}  // namespace keel
