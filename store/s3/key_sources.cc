// One function for each place; the services are asked three times at most.
#include "store/s3/key_sources.h"

#include <algorithm>

#include "base/file_helpers.h"
#include "base/json.h"
#include "base/text.h"
#include "store/s3/percent.h"
#include "store/s3/program_output.h"
#include "store/s3/times.h"
#include "store/s3/xml.h"

namespace keel {
namespace {

const Duration kPause = std::chrono::milliseconds(200);
// On a machine that is no instance nobody may answer at all.
const Duration kInstanceConnectLimit = std::chrono::seconds(1);
constexpr uint64_t kTokenBytesMax = uint64_t{64} << 10;
constexpr const char* kContainerHost = "http://169.254.170.2";
constexpr const char* kInstanceHost = "http://169.254.169.254";
constexpr const char* kGoogleMetadataHost = "metadata.google.internal";
constexpr int64_t kTokenMaxS = 7 * 24 * 3600;

// What came of a question that a machine without such a service cannot answer.
struct Answered {
  bool once_if_silent = false;
  bool is_there = false;   // it has answered at least once
  int status = 0;          // of the last answer; 0: there was none
};

// The body of the answer; an answer that is no 200 is refused without its body, which may hold
// what was sent.
Result<std::string> AskService(const KeyPlaces& places, TransportRequest request,
                               const std::string& what, Answered* answered = nullptr) {
  request.cancel = places.cancel;
  Error error;
  for (int i = 0; i < places.patience.tries; ++i) {
    if (i > 0) RealClock().SleepFor(kPause);
    HttpOutcome outcome = places.transport.Ask(request);
    const bool is_there = outcome.end == HttpEnd::kAnswered;
    if (answered != nullptr) answered->status = is_there ? outcome.answer.status : 0;
    if (answered != nullptr) answered->is_there |= is_there;
    if (outcome.end == HttpEnd::kAnswered && outcome.answer.status == 200) {
      return std::move(outcome.answer.body);
    }
    if (outcome.end == HttpEnd::kCancelled) return Error{Code::kCancelled, outcome.words};
    if (outcome.end != HttpEnd::kAnswered) {
      error = {outcome.end == HttpEnd::kTimedOut ? Code::kTimeout : Code::kPeerLost,
               what + ": " + outcome.words};
      if (answered != nullptr && answered->once_if_silent && !answered->is_there) break;
      continue;
    }
    const int status = outcome.answer.status;
    const bool is_busy = status >= 500 || status == 429;
    error = {is_busy ? Code::kPeerLost : Code::kInvalid,
             what + " answered with status " + std::to_string(status)};
    if (!is_busy) break;
  }
  return error;
}

Result<std::string> TokenOfFile(Files& files, const std::string& path) {
  const Result<std::string> text = ReadWhole(files, path, kTokenBytesMax);
  if (!text.ok()) return text.error().Doing("reading a token for AWS credentials");
  return std::string(Trim(*text));
}

std::string FirstOf(const std::string& one, const std::string& other) {
  return one.empty() ? other : one;
}

// Plain HTTP would show the keys to whoever listens, so it is for hosts that are this machine.
bool IsOwnHost(const StoreUrl& url) {
  const std::string host = url.host.substr(0, url.host.rfind(':'));
  return host == "localhost" || host.starts_with("127.") || url.host.starts_with("[::1]") ||
         host == "169.254.170.2" || host == "169.254.170.23" ||
         url.host.starts_with("[fd00:ec2::23]");
}

FoundKeys KeysOfVariables(const Environment& environment, const std::string& id_name,
                          const std::string& secret_name, const std::string& token) {
  const std::string id = VariableOf(environment, id_name);
  const std::string secret = VariableOf(environment, secret_name);
  if (id.empty() && secret.empty()) return std::optional<S3Credentials>();
  if (id.empty() || secret.empty()) {
    return Error{Code::kInvalid, "only one of " + id_name + " and " + secret_name +
                                     " is set; set both, or none"};
  }
  return std::optional(S3Credentials{id, secret, token});
}

}  // namespace

FoundKeys KeysOfEnvironment(const KeyPlaces& places) {
  return KeysOfVariables(places.environment, "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY",
                         VariableOf(places.environment, "AWS_SESSION_TOKEN"));
}

FoundKeys KeysOfWebIdentity(const KeyPlaces& places) {
  const auto setting = [&](const char* variable, const char* value) {
    return FirstOf(VariableOf(places.environment, variable), places.profile.Get(value));
  };
  const std::string file = setting("AWS_WEB_IDENTITY_TOKEN_FILE", "web_identity_token_file");
  const std::string role = setting("AWS_ROLE_ARN", "role_arn");
  if (file.empty() || role.empty()) return std::optional<S3Credentials>();
  KEEL_TRY_ASSIGN(const std::string token, TokenOfFile(places.files, file));
  const std::string region = AwsRegion(places.environment, places.profile);
  const std::string domain = region.starts_with("cn-") ? ".amazonaws.com.cn" : ".amazonaws.com";
  // Stores that are not AWS's answer for it at their own address.
  std::string given = FirstOf(VariableOf(places.environment, "AWS_ENDPOINT_URL_STS"),
                              setting("AWS_ENDPOINT_URL", "endpoint_url"));
  while (given.ends_with('/')) given.pop_back();   // the path follows
  const std::string url = FirstOf(given, "https://sts." + region + domain);
  const std::string session = FirstOf(setting("AWS_ROLE_SESSION_NAME", "role_session_name"),
                                      "evenkeel");
  const std::string form = "Action=AssumeRoleWithWebIdentity&Version=2011-06-15&RoleArn=" +
                           PercentEncoded(role) + "&RoleSessionName=" + PercentEncoded(session) +
                           "&WebIdentityToken=" + PercentEncoded(token);
  const std::string what = "STS at " + url + ", asked for the role " + role;
  KEEL_TRY_ASSIGN(const std::string body,
                  AskService(places,
                             {.method = "POST",
                              .url = url + "/",
                              .headers = {{"Content-Type", "application/x-www-form-urlencoded"}},
                              .body = BytesOf(form),
                              .limit = places.patience.service_limit},
                             what));
  const Result<XmlElement> answer = ParseXml(body);
  const XmlElement* result =
      answer.ok() ? answer->Find("AssumeRoleWithWebIdentityResult") : nullptr;
  const XmlElement* keys = result == nullptr ? nullptr : result->Find("Credentials");
  if (keys == nullptr || keys->TextOf("AccessKeyId").empty()) {
    return Error{Code::kInvalid, what + ", gave no credentials"};
  }
  return std::optional(S3Credentials{keys->TextOf("AccessKeyId"), keys->TextOf("SecretAccessKey"),
                                     keys->TextOf("SessionToken"),
                                     ParseIsoTime(keys->TextOf("Expiration")).value_or(0)});
}

FoundKeys KeysOfProfile(const KeyPlaces& places) {
  const AwsProfile& profile = places.profile;
  const std::string id = profile.Get("aws_access_key_id");
  const std::string secret = profile.Get("aws_secret_access_key");
  if (!id.empty() && !secret.empty()) {
    return std::optional(S3Credentials{id, secret, profile.Get("aws_session_token")});
  }
  const std::string command = profile.Get("credential_process");
  if (command.empty()) {
    // The keys of somebody else, such as the machine, are not what its user meant.
    for (const char* kind : {"source_profile", "credential_source", "sso_session",
                             "sso_start_url"}) {
      if (profile.Get(kind).empty()) continue;
      return Error{Code::kInvalid,
                   "the profile " + Shown(profile.name) + " says " + kind +
                       ", which is not understood here: name a profile whose credential_process "
                       "is `aws configure export-credentials --profile " + profile.name + "`"};
    }
    return std::optional<S3Credentials>();
  }
  const std::string what = "the credential_process of the profile " + Shown(profile.name);
  const Result<std::string> output = OutputOfProgram(command, places.patience.program_limit);
  if (!output.ok()) return output.error().Doing("asking " + what);
  KEEL_TRY_ASSIGN(S3Credentials keys, KeysOfJson(*output, what));
  return std::optional(std::move(keys));
}

FoundKeys KeysOfContainer(const KeyPlaces& places) {
  const Environment& environment = places.environment;
  const std::string relative = VariableOf(environment, "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
  const std::string full = VariableOf(environment, "AWS_CONTAINER_CREDENTIALS_FULL_URI");
  if (relative.empty() && full.empty()) return std::optional<S3Credentials>();
  const std::string url = relative.empty() ? full : kContainerHost + relative;
  const std::string named_by = "AWS_CONTAINER_CREDENTIALS_FULL_URI";
  // The query, which a store's address has not, is not looked at.
  KEEL_TRY_ASSIGN(const StoreUrl parts, ParseStoreUrl(url.substr(0, url.find('?')), named_by));
  if (parts.scheme == "http" && !IsOwnHost(parts)) {
    return Error{Code::kInvalid, named_by + " is " + Shown(url) +
                                     ": plain http is only for this machine; use https"};
  }
  std::string token = VariableOf(environment, "AWS_CONTAINER_AUTHORIZATION_TOKEN");
  const std::string file = VariableOf(environment, "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE");
  if (!file.empty()) {
    KEEL_TRY_ASSIGN(token, TokenOfFile(places.files, file));
  }
  TransportRequest request{.method = "GET", .url = url, .limit = places.patience.service_limit};
  request.avoids_proxies = parts.scheme == "http";
  if (!token.empty()) request.headers = {{"Authorization", token}};
  const std::string what = "the container's credentials service at " + parts.host;
  KEEL_TRY_ASSIGN(const std::string body, AskService(places, request, what));
  KEEL_TRY_ASSIGN(S3Credentials keys, KeysOfJson(body, what));
  return std::optional(std::move(keys));
}

FoundKeys KeysOfInstance(const KeyPlaces& places) {
  const Result<bool> is_off =
      ParseBool(FirstOf(VariableOf(places.environment, "AWS_EC2_METADATA_DISABLED"), "false"));
  if (is_off.ok() && *is_off) return std::optional<S3Credentials>();
  std::string host = VariableOf(places.environment, "AWS_EC2_METADATA_SERVICE_ENDPOINT");
  if (host.empty()) host = kInstanceHost;
  while (host.ends_with('/')) host.pop_back();
  TransportRequest request{.method = "PUT",
                           .url = host + "/latest/api/token",
                           .limit = places.patience.service_limit};
  request.connect_limit = kInstanceConnectLimit;
  request.avoids_proxies = true;
  request.headers = {{"X-aws-ec2-metadata-token-ttl-seconds", "21600"}};
  const std::string what = "the instance's metadata service";
  Answered answered{.once_if_silent = !places.has_given};
  const Result<std::string> token = AskService(places, request, what, &answered);
  const bool is_refused = !token.ok() && token.error().code == Code::kInvalid;
  const bool is_busy = answered.is_there && !is_refused;
  if (!token.ok() && (is_busy || places.has_given)) return token.error();
  if (!token.ok()) return std::optional<S3Credentials>();   // no instance of EC2
  request.method = "GET";
  request.headers = {{"X-aws-ec2-metadata-token", *token}};
  const std::string roles = host + "/latest/meta-data/iam/security-credentials/";
  request.url = roles;
  answered = {};
  const Result<std::string> role = AskService(places, request, what, &answered);
  if (!role.ok() && answered.status != 404) return role.error();
  if (!role.ok() || Trim(*role).empty()) return std::optional<S3Credentials>();  // it has no role
  const std::string name(Trim(std::string_view(*role).substr(0, role->find('\n'))));
  request.url = roles + PercentEncoded(name);
  KEEL_TRY_ASSIGN(const std::string body, AskService(places, request, what));
  KEEL_TRY_ASSIGN(S3Credentials keys, KeysOfJson(body, what + ", asked for the role " + name));
  return std::optional(std::move(keys));
}

FoundKeys GoogleKeysOfEnvironment(const KeyPlaces& places) {
  return KeysOfVariables(places.environment, "GS_ACCESS_KEY_ID", "GS_SECRET_ACCESS_KEY", "");
}

FoundKeys GoogleTokenOfMachine(const KeyPlaces& places) {
  const std::string host =
      FirstOf(VariableOf(places.environment, "GCE_METADATA_HOST"), kGoogleMetadataHost);
  TransportRequest request{
      .method = "GET",
      .url = "http://" + host + "/computeMetadata/v1/instance/service-accounts/default/token",
      .headers = {{"Metadata-Flavor", "Google"}},
      .limit = places.patience.service_limit};
  request.connect_limit = kInstanceConnectLimit;
  request.avoids_proxies = true;
  const std::string what = "the metadata service at " + host;
  Answered answered;
  const Result<std::string> body = AskService(places, request, what, &answered);
  // Where nobody answers to that name, this is no machine of Google's.
  const bool is_nobody = !body.ok() && body.error().code == Code::kPeerLost;
  if (is_nobody && !answered.is_there && !places.has_given) return std::optional<S3Credentials>();
  KEEL_TRY(body);
  const Result<Json> json = ParseJson(*body);
  const auto token = json.ok() ? FieldOr<std::string>(*json, "access_token", "") : json.error();
  const auto seconds = json.ok() ? FieldOr<int64_t>(*json, "expires_in", 0) : json.error();
  if (!token.ok() || !seconds.ok() || token->empty() || *seconds < 0 || *seconds > kTokenMaxS) {
    return Error{Code::kInvalid, what + " gave no access_token with a number of expires_in"};
  }
  S3Credentials keys{.key_id = "", .secret = "", .token = *token, .is_bearer = true};
  keys.ends_at_ns = places.clock.WallNanos() + *seconds * 1'000'000'000;
  return std::optional(std::move(keys));
}

}  // namespace keel
