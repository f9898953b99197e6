// Reads two small files.
#include "store/s3/profile.h"

#include <initializer_list>

#include "base/file_helpers.h"
#include "base/text.h"
#include "store/s3/ini.h"

namespace keel {
namespace {

constexpr uint64_t kFileBytesMax = uint64_t{1} << 20;

std::string FirstOf(const Environment& environment, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (std::string value = VariableOf(environment, name); !value.empty()) return value;
  }
  return "";
}

Result<IniSections> ReadIni(const Environment& environment, Files& files, const char* variable,
                            const char* usual) {
  std::string path = VariableOf(environment, variable);
  const std::string home = VariableOf(environment, "HOME");
  if (path.empty() && home.empty()) return IniSections();
  if (path.empty()) path = JoinPath(home, usual);
  const Result<std::string> text = ReadWhole(files, path, kFileBytesMax);
  if (text.ok()) return ParseIni(*text);
  if (text.error().code == Code::kNotFound) return IniSections();
  return text.error().Doing("reading AWS's settings");
}

}  // namespace

std::string AwsProfile::Get(const std::string& value) const {
  const auto found = values.find(value);
  return found == values.end() ? "" : found->second;
}

Result<AwsProfile> ReadAwsProfile(const Environment& environment, Files& files) {
  AwsProfile profile;
  const std::string asked = FirstOf(environment, {"AWS_PROFILE", "AWS_DEFAULT_PROFILE"});
  if (!asked.empty()) profile.name = asked;
  KEEL_TRY_ASSIGN(const IniSections keys, ReadIni(environment, files,
                                                  "AWS_SHARED_CREDENTIALS_FILE",
                                                  ".aws/credentials"));
  KEEL_TRY_ASSIGN(const IniSections config,
                  ReadIni(environment, files, "AWS_CONFIG_FILE", ".aws/config"));
  const auto of_keys = keys.find(profile.name);
  auto of_config = config.find("profile " + profile.name);
  if (of_config == config.end() && profile.name == "default") of_config = config.find("default");
  if (of_keys != keys.end()) profile.values = of_keys->second;
  if (of_config != config.end()) {
    profile.values.insert(of_config->second.begin(), of_config->second.end());
  }
  if (!asked.empty() && of_keys == keys.end() && of_config == config.end()) {
    return Error{Code::kInvalid, "AWS_PROFILE asks for the profile " + Shown(asked) +
                                     ", which neither ~/.aws/credentials nor ~/.aws/config has; "
                                     "correct the name, or unset AWS_PROFILE"};
  }
  return profile;
}

std::string AwsRegion(const Environment& environment, const AwsProfile& profile) {
  std::string region = FirstOf(environment, {"AWS_REGION", "AWS_DEFAULT_REGION"});
  if (region.empty()) region = profile.Get("region");
  return region.empty() ? "us-east-1" : region;
}

Result<S3Address> AddressOf(const std::string& bucket, const Environment& environment,
                            const AwsProfile& profile) {
  S3Address address{bucket, AwsRegion(environment, profile)};
  for (const char* name : {"AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"}) {
    const std::string url = VariableOf(environment, name);
    if (url.empty()) continue;
    KEEL_TRY_ASSIGN(address.own, ParseStoreUrl(url, name));
    return address;
  }
  if (const std::string url = profile.Get("endpoint_url"); !url.empty()) {
    KEEL_TRY_ASSIGN(address.own, ParseStoreUrl(url, "endpoint_url of the profile " + profile.name));
  }
  return address;
}

Result<S3Address> GoogleAddressOf(const std::string& bucket, const Environment& environment) {
  // A signature names no place there.
  S3Address address{.bucket = bucket, .region = "auto", .dialect = &kGoogleDialect};
  address.own = {"https", "storage.googleapis.com"};
  const std::string other = VariableOf(environment, "STORAGE_EMULATOR_HOST");
  if (other.empty()) return address;
  KEEL_TRY_ASSIGN(address.own, ParseStoreUrl(other, "STORAGE_EMULATOR_HOST"));
  return address;
}

}  // namespace keel
