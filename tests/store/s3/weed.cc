// Starts `weed server`, with one identity that may do everything.
#include "tests/store/s3/weed.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <boost/filesystem.hpp>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/check.h"
#include "elastic/process/spawn.h"
#include "tests/harness/expect_ok.h"
#include "tests/harness/free_port.h"
#include "tests/support/file_text.h"

namespace keel {
namespace {

const Duration kReadyLimit = std::chrono::seconds(120);
const Duration kTryLimit = std::chrono::seconds(10);
const Duration kLook = std::chrono::milliseconds(50);
constexpr size_t kLastWordsBytes = 3000;
constexpr const char* kIdentity =
    R"({"identities": [{"name": "test", "actions": ["Admin", "Read", "Write", "List", "Tagging"],
        "credentials": [{"accessKey": "TESTKEYID", "secretKey": "test-secret"}]}]})";

std::string FolderInMemory() {
  std::string path = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
  path += "/keel-weed-XXXXXX";
  const bool made = mkdtemp(path.data()) != nullptr;
  KEEL_CHECK(made, "making " << path << ": " << std::strerror(errno));
  return path;
}

// Beside the Python of the tests, whose packages it comes with.
std::string Program() {
  const char* const named = std::getenv("KEEL_WEED");
  if (named != nullptr) return named;
  const std::string python = KEEL_TEST_PYTHON;
  return python.substr(0, python.rfind('/')) + "/weed";
}

}  // namespace

std::string WhyNoWeed() {
  if (access(Program().c_str(), X_OK) == 0) return "";
  return "there is no " + Program() + ": tools/setup.sh --tests makes it, or KEEL_WEED names one";
}

WeedServer::WeedServer(Speaks speaks) : speaks_(speaks), folder_(FolderInMemory()) {
  for (uint16_t& port : ports_) port = FreePort();
  WriteFile(folder_ + "/identity.json", kIdentity);
  KEEL_CHECK(mkdir((folder_ + "/data").c_str(), 0700) == 0, std::strerror(errno));
  if (is_https()) MakeCertificate();
  Start();
  AwaitReady();
}

WeedServer::~WeedServer() {
  child_.reset();
  boost::system::error_code failed;
  boost::filesystem::remove_all(folder_, failed);
}

// One that is its own authority.
void WeedServer::MakeCertificate() {
  ChildSpec spec;
  spec.argv = {"openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
               "-nodes", "-days", "30", "-subj", "/CN=keel-test", "-addext",
               "subjectAltName=IP:127.0.0.1", "-keyout", folder_ + "/own.key", "-out",
               folder_ + "/own.pem"};
  spec.environment = OwnEnvironment();
  spec.err = Stream::Null();
  Result<Child> child = Spawn(spec);
  ASSERT_OK(child);
  const auto status = child->Wait(RealClock().Monotonic() + kReadyLimit);
  ASSERT_TRUE(status.ok() && status->ok()) << "openssl made no certificate";
}

void WeedServer::Start() {
  const auto port = [this](int index) { return "=" + std::to_string(ports_[index]); };
  ChildSpec spec;
  // Each server has a second port, for gRPC; by default 10,000 above, where others may listen.
  spec.argv = {Program(), "-logtostderr=true", "server", "-dir=" + folder_ + "/data",
               "-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-master.telemetry=false", "-s3",
               "-s3.port" + port(0), "-s3.port.grpc" + port(1), "-master.port" + port(2),
               "-master.port.grpc" + port(3), "-volume.port" + port(4),
               "-volume.port.grpc" + port(5), "-filer.port" + port(6),
               "-filer.port.grpc" + port(7), "-s3.config=" + folder_ + "/identity.json",
               "-filer.localSocket=" + folder_ + "/filer.sock",
               "-s3.localSocket=" + folder_ + "/s3.sock", "-s3.port.iceberg=0",
               "-s3.port.lance=0", "-s3.iam=false", "-volume.max=100",
               "-master.volumeSizeLimitMB=128"};
  if (is_https()) {
    spec.argv.push_back("-s3.cert.file=" + folder_ + "/own.pem");
    spec.argv.push_back("-s3.key.file=" + folder_ + "/own.key");
  }
  spec.environment = OwnEnvironment();
  spec.out = Stream::File(folder_ + "/log");
  spec.err = Stream::File(folder_ + "/log");
  spec.working_dir = folder_;
  Result<Child> child = Spawn(spec);
  ASSERT_OK(child);
  child_.emplace(std::move(*child));
}

std::string WeedServer::LastWords() const {
  const std::string all = ReadFile(folder_ + "/log");
  return all.substr(all.size() - std::min(all.size(), kLastWordsBytes));
}

Environment WeedServer::environment() const {
  const std::string scheme = is_https() ? "https" : "http";
  return {{"AWS_ENDPOINT_URL_S3", scheme + "://127.0.0.1:" + std::to_string(ports_[0])},
          {"AWS_CA_BUNDLE", is_https() ? folder_ + "/own.pem" : ""},
          {"AWS_ACCESS_KEY_ID", "TESTKEYID"},
          {"AWS_SECRET_ACCESS_KEY", "test-secret"},
          {"AWS_EC2_METADATA_DISABLED", "true"}};
}

S3Ending WeedServer::MakeBucket(const std::string& bucket, Duration limit) {
  const AwsProfile profile;
  const Result<S3Address> address = AddressOf(bucket, environment(), profile);
  KEEL_CHECK(address.ok(), address.error().message);
  S3Client client(*address, environment(), profile, files_, RealClock(), {});
  S3Call call{.doing = "making the bucket " + bucket, .effect = S3Effect::kSame, .method = "PUT"};
  call.limit = limit;
  return client.Send(call);
}

// Whether an object can be put and read: its parts come up one after another, and do not know of
// old objects at first.
Status WeedServer::LookWhetherReady() {
  const S3Ending made = MakeBucket("first", kTryLimit);
  if (!made.done() && made.answer.status != 409) return made.error;
  S3Options options;
  options.limit = kTryLimit;
  KEEL_TRY_ASSIGN(const auto objects, S3Objects::Open("first", environment(), files_, options));
  KEEL_TRY(objects->Replace("ready", "yes"));
  std::byte one;
  KEEL_TRY(objects->Get("ready", 0, {&one, 1}));
  return Ok();
}

void WeedServer::AwaitReady() {
  const TimePoint end = RealClock().Monotonic() + kReadyLimit;
  for (;;) {
    const Status ready = LookWhetherReady();
    if (ready.ok()) return;
    const auto over = child_->TryWait();
    if (RealClock().Monotonic() >= end || !over.ok() || over->has_value()) {
      ADD_FAILURE() << "SeaweedFS did not come up: " << ready.error().message << "\n"
                    << LastWords();
      return;
    }
    RealClock().SleepFor(kLook);
  }
}

std::unique_ptr<S3Objects> WeedServer::Open(const std::string& bucket, const S3Options& options) {
  const S3Ending made = MakeBucket(bucket, std::chrono::seconds(60));
  EXPECT_TRUE(made.done() || made.answer.status == 409) << made.error.message;
  S3Options patient = options;
  patient.discard_limit = std::chrono::seconds(60);
  auto objects = S3Objects::Open(bucket, environment(), files_, patient);
  EXPECT_OK(objects);
  return objects.ok() ? std::move(*objects) : nullptr;
}

void WeedServer::Kill() {
  EXPECT_OK(child_->Signal(SIGKILL));
  EXPECT_OK(child_->Wait(RealClock().Monotonic() + kReadyLimit));
  child_.reset();
}

void WeedServer::Restart() {
  Start();
  AwaitReady();
}

}  // namespace keel
