// The canonical request, the text over its hash, and the chain of keys from the secret to today's.
#include "store/s3/sign.h"

#include <algorithm>
#include <map>

#include "base/hmac.h"
#include "base/text.h"
#include "store/s3/hashes.h"
#include "store/s3/percent.h"
#include "store/s3/times.h"

namespace keel {
namespace {

std::string Lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return lower;
}

// Blanks around a value do not count, and several within it count as one.
std::string Squeezed(std::string_view value) {
  std::string squeezed;
  for (const char c : Trim(value)) {
    if (c != ' ' || squeezed.empty() || squeezed.back() != ' ') squeezed += c;
  }
  return squeezed;
}

std::map<std::string, std::string> SortedHeaders(const HttpPairs& headers) {
  std::map<std::string, std::string> sorted;
  for (const auto& [name, value] : headers) {
    std::string& held = sorted[Lower(name)];
    held += (held.empty() ? "" : ",") + Squeezed(value);
  }
  return sorted;
}

std::string SignedNames(const HttpPairs& headers) {
  std::string names;
  for (const auto& [name, value] : SortedHeaders(headers)) {
    names += (names.empty() ? "" : ";") + name;
  }
  return names;
}

}  // namespace

std::string CanonicalQuery(const HttpPairs& query) {
  HttpPairs encoded;
  for (const auto& [name, value] : query) {
    encoded.emplace_back(PercentEncoded(name), PercentEncoded(value));
  }
  std::sort(encoded.begin(), encoded.end());
  std::string text;
  for (const auto& [name, value] : encoded) {
    text += (text.empty() ? "" : "&") + name + "=" + value;
  }
  return text;
}

std::string CanonicalRequest(const RequestToSign& request) {
  std::string text = request.method + "\n" + request.path + "\n" +
                     CanonicalQuery(request.query) + "\n";
  for (const auto& [name, value] : SortedHeaders(request.headers)) {
    text += name + ":" + value + "\n";
  }
  return text + "\n" + SignedNames(request.headers) + "\n" + request.payload;
}

std::string Authorization(const RequestToSign& request, const S3Credentials& credentials,
                          const SigningScope& scope) {
  const std::string when = AmzDateText(scope.wall_ns);
  const std::string day = when.substr(0, 8);
  const std::string algorithm(scope.dialect->algorithm);
  const std::string_view terminator = scope.dialect->terminator;
  const std::string where =
      day + "/" + scope.region + "/" + scope.service + "/" + std::string(terminator);
  const std::string text = algorithm + "\n" + when + "\n" + where + "\n" +
                           HexText(Sha256Of(CanonicalRequest(request)));
  std::string key = HmacSha256(std::string(scope.dialect->key_prefix) + credentials.secret, day);
  for (const std::string_view part : {std::string_view(scope.region),
                                      std::string_view(scope.service), terminator}) {
    key = HmacSha256(key, part);
  }
  return algorithm + " Credential=" + credentials.key_id + "/" + where +
         ", SignedHeaders=" + SignedNames(request.headers) +
         ", Signature=" + HexText(HmacSha256(key, text));
}

}  // namespace keel
