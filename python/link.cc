// The control link as torch.classes.evenkeel.Link, for scripts whose training is not the engine's:
// lines of elastic/PROTOCOL.md section 4, as they are. Only python/evenkeel/rerun.py uses it.
#include <torch/custom_class.h>

#include <chrono>
#include <memory>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/environment.h"
#include "elastic/worker_link.h"
#include "python/checked.h"

namespace keel {
namespace {

constexpr Duration kFlushLimit = std::chrono::seconds(10);

class Link : public torch::CustomClassHolder {
 public:
  Link() : link_(Checked(WorkerLink::FromEnvironment(OwnEnvironment()))) {}

  void Send(const std::string& line) {
    Check(link_->Send(Checked(ParseWorkerMessage(line))));
  }
  // The next line, or "" if there is none within the limit. A link that is closed is an error.
  std::string Receive(int64_t limit_ms) {
    Result<SupervisorMessage> message =
        link_->Receive(RealClock().Monotonic() + std::chrono::milliseconds(limit_ms));
    if (!message.ok() && message.error().code == Code::kTimeout) return "";
    return Checked(EncodeMessage(Checked(std::move(message))));
  }
  bool IsBroken(int64_t epoch) { return link_->BreakToken(epoch).cancelled(); }
  void Flush() { (void)link_->Flush(RealClock().Monotonic() + kFlushLimit); }

 private:
  const std::unique_ptr<WorkerLink> link_;
};

TORCH_LIBRARY_FRAGMENT(evenkeel, library) {
  library.class_<Link>("Link")
      .def(torch::init<>())
      .def("send", &Link::Send)
      .def("receive", &Link::Receive)
      .def("is_broken", &Link::IsBroken)
      .def("flush", &Link::Flush);
}

}  // namespace
}  // namespace keel
