// The bytes of what doctors tell each other, and what is said of texts that are none.
#include <gtest/gtest.h>

#include "elastic/doctor/records.h"
#include "tests/support/json_faults.h"

namespace keel {
namespace {

DoctorFacts SomeFacts() {
  DoctorFacts facts;
  facts.host = "node \"0\"\n\xff";
  facts.address = "10.0.0.1";
  facts.port = 65535;
  facts.last_port = 65534;
  facts.machine = "m";
  facts.node_rank = 3;
  facts.hosts_least = 2;
  facts.hosts_most = 4;
  facts.workers = 8;
  facts.interfaces = {{"lo", "127.0.0.1"}, {"eth0", "fd00::2"}};
  facts.hosts_file_number = "127.0.1.1";
  facts.name_number = "10.0.0.1";
  facts.name_trouble = "nt";
  facts.address_name = "n0";
  facts.address_trouble = "at";
  facts.address_silent = true;
  facts.files_limit = 1024;
  facts.files_wanted = 4096;
  facts.shared_memory = {UINT64_MAX, 3};
  facts.directory = "/d";
  facts.directory_trouble = "dt";
  facts.directory_space = {7, 6};
  facts.lease = "/e";
  facts.is_lease_found = true;
  facts.lease_trouble = "et";
  facts.buckets = {{"s3://b/run", "bt", -5, "eu-west-3", false, std::nullopt}, {}};
  facts.log_directory = "/l";
  facts.log_space = {5, 4};
  facts.gpus = {"", "NVIDIA H200"};
  facts.driver = "550";
  facts.kernels = "AVX2";
  facts.environment = "A=b\nC=d\n";
  facts.version = "1.0";
  facts.protocol = 2;
  facts.torch = "2.11";
  facts.store_trouble = "st";
  facts.store_nanos = 12345;
  facts.program = "train";
  facts.program_digest = "abcd";
  facts.program_trouble = "pt";
  facts.is_lease_missing = true;
  facts.log_trouble = "lt";
  facts.status = "127.0.0.1:8090";
  facts.status_trouble = "pt";
  facts.has_health_check = true;
  facts.health_trouble = "ht";
  return facts;
}

const DoctorSight kSight{"10.0.0.2", "nt", "refused", 1, -2, 3, "no such file"};
const DoctorSum kSum{"no", 7, 8};

// A code and a message, where it is refused.
template <class T>
std::string SaidOf(const Result<T>& result) {
  if (result.ok()) return "";
  return std::string(CodeName(result.error().code)) + ": " + result.error().message;
}
std::string SaidOfFacts(const std::string& text) { return SaidOf(ParseDoctorFacts(text)); }
std::string SaidOfSights(const std::string& text) { return SaidOf(ParseDoctorSights(text)); }
std::string SaidOfSum(const std::string& text) { return SaidOf(ParseDoctorSum(text)); }

TEST(DoctorWire, Facts) {
  EXPECT_EQ(DoctorFactsText(SomeFacts()),
            R"({"host":"node \"0\"\n�","version":"1.0","protocol":2,"address":"10.0.0.1","por)"
            R"(t":65535,"last_port":65534,"machine":"m","node_rank":3,"hosts_)"
            R"(least":2,"hosts_most":4,"workers":8,"hosts_file_number")"
            R"(:"127.0.1.1","name_number":"10.0.0.1","name_trouble":"nt")"
            R"(,"address_name":"n0","address_trouble":"at","address_silent":true,"files_limit)"
            R"(":1024,"files_wanted":4096,"directory":"/d","directory_trouble":"dt",)"
            R"("lease":"/e","is_lease_found":true,"lease_trouble":"et",)"
            R"("buckets":[{"place":"s3://b/run","trouble":"bt","clock_ahead_ns":-5,"other_reg)"
            R"(ion":"eu-west-3","ends_unfinished":false,"keeps_versions":null},{"place":"","tr)"
            R"(ouble":"","clock_ahead_ns":0,"other_region":"","ends_unfinished":null,"keeps_ve)"
            R"(rsions":null}],)"
            R"("log_directory":"/l","gpus":["","NVIDIA H200"],"driver":"550","kernels":"AVX2",)"
            R"("environ)"
            R"(ment":"A=b\nC=d\n","torch":"2.11","store_trouble":"st","store_nanos":12345,"pr)"
            R"(ogram":"train","program_digest":"abcd","program_trouble":"pt","shared_memory_t)"
            R"(otal":18446744073709551615,"shared_memory_free":3,"directory_total":7,"directo)"
            R"(ry_free":6,"log_total":5,"log_free":4,"interfaces":["lo","eth0"],"addresses":[)"
            R"("127.0.0.1","fd00::2"],"is_lease_missing":true,"log_trouble":"lt",)"
            R"("status":"127.0.0.1:8090","status_trouble":"pt","has_health_check":true,)"
            R"("health_trouble":"ht"})");
  EXPECT_EQ(DoctorFactsText({}),
            R"({"host":"","version":"","protocol":0,"address":"","port":0,"last_port":0,"mac)"
            R"(hine":"","node_)"
            R"(rank":-1,"hosts_least":1,"hosts_most":1,"workers":1,"hosts_file_number":"","na)"
            R"(me_number":"","name_trouble":"","address_name":"","address_trouble":"","addres)"
            R"(s_silent":false,"files_limit":0,"files_wanted":0,"directory":"","directory_tro)"
            R"(uble":"","lease":"","is_lease_found":false,"lease_trouble":"","buckets":[],)"
            R"("log_directory":"","gpus":[],"driver":"","kernels":"","environment":")"
            R"(","torch":"","store_trouble":"","store_nanos":0,"program":"","program_digest":)"
            R"("","program_trouble":"","shared_memory_total":0,"shared_memory_free":0,"direct)"
            R"(ory_total":0,"directory_free":0,"log_total":0,"log_free":0,"interfaces":[],"ad)"
            R"(dresses":[]})");
}

TEST(DoctorWire, SightsAndASum) {
  EXPECT_EQ(DoctorSightsText({{}, kSight}),
            R"({"sights":["{\"name_number\":\"\",\"name_trouble\":\"\",\"reach_trouble\":\"\")"
            R"(,\"round_trip_ns\":0,\"clock_ahead_ns\":0,\"clock_doubt_ns\":0,\"probe_trouble)"
            R"(\":\"\"}","{\"name_number\":\"10.0.0.2\",\"name_trouble\":\"nt\",\"reach_troub)"
            R"(le\":\"refused\",\"round_trip_ns\":1,\"clock_ahead_ns\":-2,\"clock_doubt_ns\":)"
            R"(3,\"probe_trouble\":\"no such file\"}"]})");
  EXPECT_EQ(DoctorSightsText({}),
            R"({"sights":[]})");
  EXPECT_EQ(DoctorSumText(kSum),
            R"({"trouble":"no","nanos":7,"bytes":8})");
  EXPECT_EQ(DoctorSumText({}),
            R"({"trouble":"","nanos":0,"bytes":0})");
}

constexpr const char* kFactsFaults =
    R"(host: not-found: @ is missing; invalid: @: expected a string, found null
version: not-found: @ is missing; invalid: @: expected a string, found null
protocol: not-found: @ is missing; invalid: @: expected a whole number, found null
  -9223372036854775808: taken
  9223372036854775807: taken
address: not-found: @ is missing; invalid: @: expected a string, found null
port: not-found: @ is missing; invalid: @: expected a whole number, found null
  -9223372036854775808: invalid: there is no port -9223372036854775808
  9223372036854775807: invalid: there is no port 9223372036854775807
last_port: not-found: @ is missing; invalid: @: expected a whole number, found null
  -9223372036854775808: invalid: there is no port -9223372036854775808
  9223372036854775807: invalid: there is no port 9223372036854775807
machine: not-found: @ is missing; invalid: @: expected a string, found null
node_rank: not-found: @ is missing; invalid: @: expected a whole number, found null
  -9223372036854775808: taken
  9223372036854775807: taken
hosts_least: not-found: @ is missing; invalid: @: expected a whole number, found null
  -9223372036854775808: taken
  9223372036854775807: taken
hosts_most: not-found: @ is missing; invalid: @: expected a whole number, found null
  -9223372036854775808: taken
  9223372036854775807: taken
workers: not-found: @ is missing; invalid: @: expected a whole number, found null
  -9223372036854775808: taken
  9223372036854775807: taken
hosts_file_number: not-found: @ is missing; invalid: @: expected a string, found null
name_number: not-found: @ is missing; invalid: @: expected a string, found null
name_trouble: not-found: @ is missing; invalid: @: expected a string, found null
address_name: not-found: @ is missing; invalid: @: expected a string, found null
address_trouble: not-found: @ is missing; invalid: @: expected a string, found null
address_silent: not-found: @ is missing; invalid: @: expected true or false, found null
files_limit: not-found: @ is missing; invalid: @: expected a whole number, found null
  -9223372036854775808: taken
  9223372036854775807: taken
files_wanted: not-found: @ is missing; invalid: @: expected a whole number, found null
  -9223372036854775808: taken
  9223372036854775807: taken
directory: not-found: @ is missing; invalid: @: expected a string, found null
directory_trouble: not-found: @ is missing; invalid: @: expected a string, found null
lease: not-found: @ is missing; invalid: @: expected a string, found null
is_lease_found: not-found: @ is missing; invalid: @: expected true or false, found null
lease_trouble: not-found: @ is missing; invalid: @: expected a string, found null
buckets: not-found: @ is missing; invalid: @: expected an array, found null
log_directory: not-found: @ is missing; invalid: @: expected a string, found null
gpus: not-found: @ is missing; invalid: @: expected an array, found null
driver: not-found: @ is missing; invalid: @: expected a string, found null
kernels: not-found: @ is missing; invalid: @: expected a string, found null
environment: not-found: @ is missing; invalid: @: expected a string, found null
torch: not-found: @ is missing; invalid: @: expected a string, found null
store_trouble: not-found: @ is missing; invalid: @: expected a string, found null
store_nanos: not-found: @ is missing; invalid: @: expected a whole number, found null
  -9223372036854775808: taken
  9223372036854775807: taken
program: not-found: @ is missing; invalid: @: expected a string, found null
program_digest: not-found: @ is missing; invalid: @: expected a string, found null
program_trouble: not-found: @ is missing; invalid: @: expected a string, found null
shared_memory_total: not-found: @ is missing; invalid: @: expected a whole number that is )"
    R"(not negative, found null
  -9223372036854775808: invalid: @: expected a whole number that is not negative, found th)"
    R"(e number -9223372036854775808
  9223372036854775807: taken
shared_memory_free: not-found: @ is missing; invalid: @: expected a whole number that is n)"
    R"(ot negative, found null
  -9223372036854775808: invalid: @: expected a whole number that is not negative, found th)"
    R"(e number -9223372036854775808
  9223372036854775807: taken
directory_total: not-found: @ is missing; invalid: @: expected a whole number that is not )"
    R"(negative, found null
  -9223372036854775808: invalid: @: expected a whole number that is not negative, found th)"
    R"(e number -9223372036854775808
  9223372036854775807: taken
directory_free: not-found: @ is missing; invalid: @: expected a whole number that is not n)"
    R"(egative, found null
  -9223372036854775808: invalid: @: expected a whole number that is not negative, found th)"
    R"(e number -9223372036854775808
  9223372036854775807: taken
log_total: not-found: @ is missing; invalid: @: expected a whole number that is not negati)"
    R"(ve, found null
  -9223372036854775808: invalid: @: expected a whole number that is not negative, found th)"
    R"(e number -9223372036854775808
  9223372036854775807: taken
log_free: not-found: @ is missing; invalid: @: expected a whole number that is not negativ)"
    R"(e, found null
  -9223372036854775808: invalid: @: expected a whole number that is not negative, found th)"
    R"(e number -9223372036854775808
  9223372036854775807: taken
interfaces: not-found: @ is missing; invalid: @: expected an array, found null
addresses: not-found: @ is missing; invalid: @: expected an array, found null
is_lease_missing: taken; invalid: @: expected true or false, found null
log_trouble: taken; invalid: @: expected a string, found null
status: taken; invalid: @: expected a string, found null
status_trouble: taken; invalid: @: expected a string, found null
has_health_check: taken; invalid: @: expected true or false, found null
health_trouble: taken; invalid: @: expected a string, found null
buckets/0/place: not-found: @ is missing; invalid: @: expected a string, found null
buckets/0/trouble: not-found: @ is missing; invalid: @: expected a string, found null
buckets/0/clock_ahead_ns: not-found: @ is missing; invalid: @: expected a whole number, )"
    R"(found null
  -9223372036854775808: taken
  9223372036854775807: taken
buckets/0/other_region: not-found: @ is missing; invalid: @: expected a string, found null
buckets/0/ends_unfinished: not-found: @ is missing; taken
buckets/0/keeps_versions: not-found: @ is missing; taken
one more in '': taken
one more in '/buckets/0': taken
order in '': host version protocol address port last_port machine node_rank hosts_least hosts)"
    R"(_most workers hosts_file_number name_number name_trouble address_name)"
    R"( address_trouble address_sil)"
    R"(ent files_limit files_wanted directory directory_trouble lease is_lease_found)"
    R"( lease_trouble buckets log_directory gpus driver kernels)"
    R"( environment torch store_trouble store_nanos program program_digest program_trouble shared)"
    R"(_memory_total shared_memory_free directory_total directory_free log_total log_free interfa)"
    R"(ces addresses is_lease_missing log_trouble status status_trouble has_health_check)"
    R"( health_trouble
order in '/buckets/0': place trouble clock_ahead_ns other_region - -
)";

TEST(DoctorWire, FaultsOfFacts) {
  EXPECT_EQ(JsonFaults(DoctorFactsText(SomeFacts()), SaidOfFacts), kFactsFaults);
}

constexpr const char* kSumFaults =
    R"(trouble: not-found: @ is missing; invalid: @: expected a string, found null
nanos: not-found: @ is missing; invalid: @: expected a whole number, found null
  -9223372036854775808: taken
  9223372036854775807: taken
bytes: not-found: @ is missing; invalid: @: expected a whole number, found null
  -9223372036854775808: taken
  9223372036854775807: taken
one more in '': taken
order in '': trouble nanos bytes
)";

TEST(DoctorWire, FaultsOfASum) {
  EXPECT_EQ(JsonFaults(DoctorSumText(kSum), SaidOfSum), kSumFaults);
}

constexpr const char* kDoctorOtherFaults =
    R"(invalid: line 1, column 1: unexpected end of input; expected '[', '{', or a literal
invalid: line 1, column 1: unexpected end of input; expected '[', '{', or a literal
invalid: line 1, column 1: unexpected end of input; expected '[', '{', or a literal
invalid: field 'host': expected an object, found an array
invalid: field 'sights': expected an object, found an array
invalid: field 'trouble': expected an object, found an array
invalid: field 'host': expected an object, found the number 7
invalid: field 'sights': expected an object, found the number 7
invalid: field 'trouble': expected an object, found the number 7
not-found: field 'host' is missing
not-found: field 'sights' is missing
not-found: field 'trouble' is missing
invalid: field 'sights': expected an array, found the number 7
invalid: field 'sights': item 0: expected a string, found the number 7
invalid: line 1, column 2: unexpected end of input; expected string literal
invalid: field 'name_number': expected an object, found an array
not-found: field 'name_number' is missing
invalid: field 'name_number': expected a string, found the number 7
invalid: there is no port 65536
invalid: there is no port -1
invalid: as many interfaces as addresses were expected
invalid: field 'interfaces': item 0: expected a string, found the number 7
invalid: field 'shared_memory_total': expected a whole number that is not negative, found )"
    R"(the number -1
)";

TEST(DoctorWire, OtherFaults) {
  std::string said;
  for (const char* text : {"", "[]", "7", "{}"}) {
    said += SaidOfFacts(text) + "\n" + SaidOfSights(text) + "\n" + SaidOfSum(text) + "\n";
  }
  for (const char* text : {R"({"sights":7})", R"({"sights":[7]})", R"({"sights":["{"]})",
                           R"({"sights":["[]"]})", R"({"sights":["{}"]})",
                           R"({"sights":["{\"name_number\":7}"]})"}) {
    said += SaidOfSights(text) + "\n";
  }
  const auto facts = [&](const std::string& old, const std::string& put) {
    std::string text = DoctorFactsText(SomeFacts());
    EXPECT_NE(text.find(old), std::string::npos) << text;
    said += SaidOfFacts(text.replace(text.find(old), old.size(), put)) + "\n";
  };
  facts("\"port\":65535", "\"port\":65536");
  facts("\"port\":65535", "\"port\":-1");
  facts("[\"lo\",", "[");
  facts("[\"lo\",", "[7,");
  facts("\"shared_memory_total\":18446744073709551615", "\"shared_memory_total\":-1");
  EXPECT_EQ(said, kDoctorOtherFaults);
}

}  // namespace
}  // namespace keel
