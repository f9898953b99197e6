// The keys of torchrun's two etcd backends, which name the same things differently.
#include "elastic/launch/etcd_values.h"

#include "base/text.h"

namespace keel {

const std::vector<std::string>& EtcdKeysOfConf() {
  static const std::vector<std::string> keys = {"protocol", "cacert",       "cert",   "key",
                                                "ca_cert",  "ssl_cert_key", "ssl_cert"};
  return keys;
}

Status TakeEtcdValue(const std::string& key, const std::string& value, LaunchConfig::Etcd& etcd) {
  if (key == "protocol") {
    etcd.is_tls = value == "https";
    if (etcd.is_tls || value == "http") return Ok();
    return Error{Code::kInvalid, "protocol=" + Shown(value) + " must be http or https"};
  }
  if (value.empty()) return Error{Code::kInvalid, key + " must name a file"};
  if (key == "cacert" || key == "ca_cert") etcd.ca_file = value;
  if (key == "cert" || key == "ssl_cert") etcd.cert_file = value;
  if (key == "key" || key == "ssl_cert_key") etcd.key_file = value;
  return Ok();
}

Status CompleteEtcd(const Environment& environment, LaunchConfig::Etcd& etcd) {
  etcd.user = VariableOf(environment, kEtcdUserVariable);
  etcd.password = VariableOf(environment, kEtcdPasswordVariable);
  const bool any_file = !(etcd.ca_file + etcd.cert_file + etcd.key_file).empty();
  if (any_file && !etcd.is_tls) {
    return Error{Code::kInvalid, "cacert, cert and key need protocol=https beside them"};
  }
  if (etcd.cert_file.empty() != etcd.key_file.empty()) {
    return Error{Code::kInvalid, "cert and key belong together: give both, or neither"};
  }
  if (etcd.user.empty() && !etcd.password.empty()) {
    return Error{Code::kInvalid, std::string(kEtcdPasswordVariable) + " is set, but " +
                                     kEtcdUserVariable + " is not: set both, or neither"};
  }
  return Ok();
}

}  // namespace keel
