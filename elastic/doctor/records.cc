// One list of fields for each record serves both directions.
#include "elastic/doctor/records.h"

#include "base/json.h"

namespace keel {
namespace {

// Visits the fields of a record: writes them, or reads them until one is wrong.
class Writer {
 public:
  template <class T>
  void operator()(const char* name, const T& value) {
    json_[name] = value;
  }
  std::string Text() const { return DumpJson(json_); }

 private:
  Json json_ = Json::object();
};

class Reader {
 public:
  explicit Reader(const Json& json) : json_(json) {}
  template <class T>
  void operator()(const char* name, T& value) {
    if (!status_.ok()) return;
    Result<T> read = Field<T>(json_, name);
    if (!read.ok()) {
      status_ = read.error();
    } else {
      value = *std::move(read);
    }
  }
  const Status& status() const { return status_; }

 private:
  const Json& json_;
  Status status_;
};

template <class Fields, class Facts>
void VisitTexts(Fields& visit, Facts& f) {
  visit("host", f.host);
  visit("version", f.version);
  visit("protocol", f.protocol);
  visit("address", f.address);
  visit("port", f.port);
  visit("machine", f.machine);
  visit("node_rank", f.node_rank);
  visit("hosts_least", f.hosts_least);
  visit("hosts_most", f.hosts_most);
  visit("workers", f.workers);
  visit("hosts_file_number", f.hosts_file_number);
  visit("name_number", f.name_number);
  visit("name_trouble", f.name_trouble);
  visit("address_name", f.address_name);
  visit("address_trouble", f.address_trouble);
  visit("address_silent", f.address_silent);
  visit("files_limit", f.files_limit);
  visit("files_wanted", f.files_wanted);
  visit("directory", f.directory);
  visit("directory_trouble", f.directory_trouble);
  visit("log_directory", f.log_directory);
  visit("gpus", f.gpus);
  visit("driver", f.driver);
  visit("kernels", f.kernels);
  visit("environment", f.environment);
  visit("torch", f.torch);
  visit("store_trouble", f.store_trouble);
  visit("store_nanos", f.store_nanos);
  visit("program", f.program);
  visit("program_digest", f.program_digest);
  visit("program_trouble", f.program_trouble);
}

template <class Fields, class Facts>
void VisitSpaces(Fields& visit, Facts& f) {
  visit("shared_memory_total", f.shared_memory.total);
  visit("shared_memory_free", f.shared_memory.free);
  visit("directory_total", f.directory_space.total);
  visit("directory_free", f.directory_space.free);
  visit("log_total", f.log_space.total);
  visit("log_free", f.log_space.free);
}

template <class Fields, class Sight>
void VisitSight(Fields& visit, Sight& s) {
  visit("name_number", s.name_number);
  visit("name_trouble", s.name_trouble);
  visit("reach_trouble", s.reach_trouble);
  visit("round_trip_ns", s.round_trip_ns);
  visit("clock_ahead_ns", s.clock_ahead_ns);
  visit("clock_doubt_ns", s.clock_doubt_ns);
  visit("probe_trouble", s.probe_trouble);
}

template <class Fields, class Sum>
void VisitSum(Fields& visit, Sum& s) {
  visit("trouble", s.trouble);
  visit("nanos", s.nanos);
  visit("bytes", s.bytes);
}

}  // namespace

std::string DoctorFactsText(const DoctorFacts& facts) {
  Writer writer;
  VisitTexts(writer, facts);
  VisitSpaces(writer, facts);
  std::vector<std::string> names;
  std::vector<std::string> addresses;
  for (const HostInterface& one : facts.interfaces) {
    names.push_back(one.name);
    addresses.push_back(one.address);
  }
  writer("interfaces", names);
  writer("addresses", addresses);
  return writer.Text();
}

Result<DoctorFacts> ParseDoctorFacts(const std::string& text) {
  KEEL_TRY_ASSIGN(const Json json, ParseJson(text));
  DoctorFacts facts;
  std::vector<std::string> names;
  std::vector<std::string> addresses;
  Reader reader(json);
  VisitTexts(reader, facts);
  VisitSpaces(reader, facts);
  reader("interfaces", names);
  reader("addresses", addresses);
  KEEL_TRY(reader.status());
  if (names.size() != addresses.size()) {
    return Error{Code::kInvalid, "as many interfaces as addresses were expected"};
  }
  if (facts.port < 0 || facts.port > 65535) {
    return Error{Code::kInvalid, "there is no port " + std::to_string(facts.port)};
  }
  for (size_t i = 0; i < names.size(); ++i) facts.interfaces.push_back({names[i], addresses[i]});
  return facts;
}

std::string DoctorSightsText(const std::vector<DoctorSight>& sights) {
  std::vector<std::string> texts;
  for (const DoctorSight& sight : sights) {
    Writer writer;
    VisitSight(writer, sight);
    texts.push_back(writer.Text());
  }
  Writer all;
  all("sights", texts);
  return all.Text();
}

Result<std::vector<DoctorSight>> ParseDoctorSights(const std::string& text) {
  KEEL_TRY_ASSIGN(const Json json, ParseJson(text));
  KEEL_TRY_ASSIGN(const std::vector<std::string> texts,
                  Field<std::vector<std::string>>(json, "sights"));
  std::vector<DoctorSight> sights;
  for (const std::string& one : texts) {
    KEEL_TRY_ASSIGN(const Json object, ParseJson(one));
    DoctorSight sight;
    Reader reader(object);
    VisitSight(reader, sight);
    KEEL_TRY(reader.status());
    sights.push_back(std::move(sight));
  }
  return sights;
}

std::string DoctorSumText(const DoctorSum& sum) {
  Writer writer;
  VisitSum(writer, sum);
  return writer.Text();
}

Result<DoctorSum> ParseDoctorSum(const std::string& text) {
  KEEL_TRY_ASSIGN(const Json json, ParseJson(text));
  DoctorSum sum;
  Reader reader(json);
  VisitSum(reader, sum);
  KEEL_TRY(reader.status());
  return sum;
}

}  // namespace keel
