// Sanitizers: whether a test runs under one, where everything takes many times as long.
//
// All rounds of a test, without a sanitizer, show that the program does what is right. A sanitizer
// looks for wrong uses of memory, or of threads, on the way, and a share of the rounds goes every
// such way. The builds of tests/run.sh --nightly define KEEL_ALL_ROUNDS, and make all of them.
#pragma once

namespace keel {

#ifdef KEEL_UNDER_ADDRESS_SANITIZER
inline constexpr bool kUnderAddressSanitizer = true;
#else
inline constexpr bool kUnderAddressSanitizer = false;
#endif
#ifdef KEEL_UNDER_THREAD_SANITIZER
inline constexpr bool kUnderThreadSanitizer = true;
#else
inline constexpr bool kUnderThreadSanitizer = false;
#endif
inline constexpr bool kUnderSanitizer = kUnderAddressSanitizer || kUnderThreadSanitizer;

#ifdef KEEL_ALL_ROUNDS
inline constexpr bool kAllRounds = true;
#else
inline constexpr bool kAllRounds = !kUnderSanitizer;
#endif

// How many rounds a test makes: all of them, or so many under a sanitizer.
template <class Number>
constexpr Number Rounds(Number all, Number sanitized) {
  return kAllRounds ? all : sanitized;
}

// From one point at which a fault may come to the next one that is tried.
inline constexpr int kPointStride = Rounds(1, 3);

}  // namespace keel
