// Jobs that are given one token have seals of their own.
#include "elastic/launch/token.h"

#include "base/file_helpers.h"
#include "base/hmac.h"
#include "base/text.h"

namespace keel {
namespace {

constexpr size_t kTokenBytesMin = 16;
constexpr uint64_t kTokenBytesMax = 64 << 10;

Result<std::string> ReadToken(Files& files, const std::string& file,
                              const Environment& environment) {
  const auto variable = environment.find(kTokenVariable);
  const std::string given = variable == environment.end() ? "" : variable->second;
  if (file.empty()) {
    // A secret that has gone missing must not open the job.
    if (variable != environment.end() && Trim(given).empty()) {
      return Error{Code::kInvalid, std::string("the job's token (") + kTokenVariable +
                                       ") is empty: give one, or unset the variable"};
    }
    return std::string(Trim(given));
  }
  if (!given.empty()) {
    return Error{Code::kInvalid, std::string("the job's token is given twice: by --token-file and "
                                             "by ") + kTokenVariable + "; give one of them"};
  }
  const Result<std::string> text = ReadWhole(files, file, kTokenBytesMax);
  // Who has given the token itself must not see it in a log.
  if (!text.ok()) {
    return Error{text.error().code, "the file of the job's token (--token-file) cannot be read: is "
                                    "it there, and may this user read it?"};
  }
  if (Trim(*text).empty()) {
    return Error{Code::kInvalid, "the file of the job's token (--token-file) is empty"};
  }
  return std::string(Trim(*text));
}

}  // namespace

Result<std::optional<Seal>> ReadJobSeal(Files& files, const LaunchConfig& config,
                                        const Environment& environment) {
  KEEL_TRY_ASSIGN(const std::string token, ReadToken(files, config.token_file, environment));
  if (token.empty()) return std::optional<Seal>();
  if (token.size() < kTokenBytesMin) {
    return Error{Code::kInvalid, "the job's token has " + std::to_string(token.size()) +
                                     " characters, of which strangers could try all; give it " +
                                     std::to_string(kTokenBytesMin) +
                                     " or more: `openssl rand -hex 32` makes one"};
  }
  KEEL_TRY(HmacReady());
  return std::optional(Seal(token).For({"evenkeel", config.run_id}));
}

}  // namespace keel
