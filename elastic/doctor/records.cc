// One list of fields for each record serves both directions.
#include "elastic/doctor/records.h"

#include "base/json.h"
#include "base/json_fields.h"

namespace keel {
namespace {

// Names and addresses of interfaces are two lists, of which the names are read first.
struct InterfaceNames {
  static Json Write(const std::vector<HostInterface>& interfaces) {
    Json names = Json::array();
    for (const HostInterface& one : interfaces) names.push_back(one.name);
    return names;
  }
  static Status Read(const Json& object, const char* name, std::vector<HostInterface>& into) {
    KEEL_TRY_ASSIGN(const auto names, Field<std::vector<std::string>>(object, name));
    for (const std::string& one : names) into.push_back({one, ""});
    return Ok();
  }
};

struct InterfaceAddresses {
  static Json Write(const std::vector<HostInterface>& interfaces) {
    Json addresses = Json::array();
    for (const HostInterface& one : interfaces) addresses.push_back(one.address);
    return addresses;
  }
  static Status Read(const Json& object, const char* name, std::vector<HostInterface>& into) {
    KEEL_TRY_ASSIGN(const auto addresses, Field<std::vector<std::string>>(object, name));
    if (addresses.size() != into.size()) {
      return Error{Code::kInvalid, "as many interfaces as addresses were expected"};
    }
    for (size_t i = 0; i < into.size(); ++i) into[i].address = addresses[i];
    return Ok();
  }
};

// What is not known is null.
struct MaybeKnown {
  static Json Write(const std::optional<bool>& value) { return value ? Json(*value) : Json(); }
  static Status Read(const Json& object, const char* name, std::optional<bool>& into) {
    if (object.contains(name) && object[name].is_null()) return Ok();
    KEEL_TRY_ASSIGN(into, Field<bool>(object, name));
    return Ok();
  }
};

}  // namespace

template <>
struct JsonFields<BucketFacts> {
  static void Visit(auto& field, auto& b) {
    field("place", b.place);
    field("trouble", b.trouble);
    field("clock_ahead_ns", b.clock_ahead_ns);
    field("other_region", b.other_region);
    field("ends_unfinished", b.ends_unfinished, MaybeKnown());
    field("keeps_versions", b.keeps_versions, MaybeKnown());
  }
};

namespace {

struct BucketList {
  static Json Write(const std::vector<BucketFacts>& buckets) {
    Json list = Json::array();
    for (const BucketFacts& one : buckets) WriteFields(list.emplace_back(Json::object()), one);
    return list;
  }
  static Status Read(const Json& object, const char* name, std::vector<BucketFacts>& into) {
    KEEL_TRY_ASSIGN(const Json* const list, ArrayField(object, name));
    for (const Json& one : *list) KEEL_TRY(ReadFields(one, into.emplace_back()));
    return Ok();
  }
};

}  // namespace

template <>
struct JsonFields<DoctorFacts> {
  static void Visit(auto& field, auto& f) {
    field("host", f.host);
    field("version", f.version);
    field("protocol", f.protocol);
    field("address", f.address);
    field("port", f.port);
    field("last_port", f.last_port);
    field("machine", f.machine);
    field("node_rank", f.node_rank);
    field("hosts_least", f.hosts_least);
    field("hosts_most", f.hosts_most);
    field("workers", f.workers);
    field("hosts_file_number", f.hosts_file_number);
    field("name_number", f.name_number);
    field("name_trouble", f.name_trouble);
    field("address_name", f.address_name);
    field("address_trouble", f.address_trouble);
    field("address_silent", f.address_silent);
    field("files_limit", f.files_limit);
    field("files_wanted", f.files_wanted);
    field("directory", f.directory);
    field("directory_trouble", f.directory_trouble);
    field("lease", f.lease);
    field("is_lease_found", f.is_lease_found);
    field("lease_trouble", f.lease_trouble);
    field("buckets", f.buckets, BucketList());
    field("log_directory", f.log_directory);
    field("gpus", f.gpus);
    field("driver", f.driver);
    field("kernels", f.kernels);
    field("environment", f.environment);
    field("torch", f.torch);
    field("store_trouble", f.store_trouble);
    field("store_nanos", f.store_nanos);
    field("program", f.program);
    field("program_digest", f.program_digest);
    field("program_trouble", f.program_trouble);
    field("shared_memory_total", f.shared_memory.total);
    field("shared_memory_free", f.shared_memory.free);
    field("directory_total", f.directory_space.total);
    field("directory_free", f.directory_space.free);
    field("log_total", f.log_space.total);
    field("log_free", f.log_space.free);
    field("interfaces", f.interfaces, InterfaceNames());
    field("addresses", f.interfaces, InterfaceAddresses());
    // Doctors of earlier versions neither tell nor read these.
    field.Optional("is_lease_missing", f.is_lease_missing, f.is_lease_missing);
    field.Optional("log_trouble", !f.log_trouble.empty(), f.log_trouble);
    field.Optional("status", !f.status.empty(), f.status);
    field.Optional("status_trouble", !f.status_trouble.empty(), f.status_trouble);
    field.Optional("has_health_check", f.has_health_check, f.has_health_check);
    field.Optional("health_trouble", !f.health_trouble.empty(), f.health_trouble);
    for (const int64_t port : {f.port, f.last_port}) {
      field.Expect(port >= 0 && port <= 65535,
                   [&] { return "there is no port " + std::to_string(port); });
    }
  }
};

template <>
struct JsonFields<DoctorSight> {
  static void Visit(auto& field, auto& s) {
    field("name_number", s.name_number);
    field("name_trouble", s.name_trouble);
    field("reach_trouble", s.reach_trouble);
    field("round_trip_ns", s.round_trip_ns);
    field("clock_ahead_ns", s.clock_ahead_ns);
    field("clock_doubt_ns", s.clock_doubt_ns);
    field("probe_trouble", s.probe_trouble);
  }
};

template <>
struct JsonFields<DoctorSum> {
  static void Visit(auto& field, auto& s) {
    field("trouble", s.trouble);
    field("nanos", s.nanos);
    field("bytes", s.bytes);
  }
};

namespace {

template <class T>
std::string TextOf(const T& record) {
  Json json;
  WriteFields(json, record);
  return DumpJson(json);
}

template <class T>
Result<T> Parse(const std::string& text) {
  KEEL_TRY_ASSIGN(const Json json, ParseJson(text));
  T record;
  KEEL_TRY(ReadFields(json, record));
  return record;
}

}  // namespace

std::string DoctorFactsText(const DoctorFacts& facts) { return TextOf(facts); }
Result<DoctorFacts> ParseDoctorFacts(const std::string& text) { return Parse<DoctorFacts>(text); }

std::string DoctorSightsText(const std::vector<DoctorSight>& sights) {
  Json texts = Json::array();
  for (const DoctorSight& sight : sights) texts.push_back(TextOf(sight));
  return DumpJson({{"sights", std::move(texts)}});
}

Result<std::vector<DoctorSight>> ParseDoctorSights(const std::string& text) {
  KEEL_TRY_ASSIGN(const Json json, ParseJson(text));
  KEEL_TRY_ASSIGN(const auto texts, Field<std::vector<std::string>>(json, "sights"));
  std::vector<DoctorSight> sights;
  for (const std::string& one : texts) {
    KEEL_TRY_ASSIGN(DoctorSight sight, Parse<DoctorSight>(one));
    sights.push_back(std::move(sight));
  }
  return sights;
}

std::string DoctorSumText(const DoctorSum& sum) { return TextOf(sum); }
Result<DoctorSum> ParseDoctorSum(const std::string& text) { return Parse<DoctorSum>(text); }

}  // namespace keel
