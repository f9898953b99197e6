// The inside of the store module.
#include "store/store_module.h"
#include "store/tcp_store_maker.h"
#include "store/torch_log.h"
#include "store/torch_version.h"

extern "C" __attribute__((visibility("default"))) keel::StoreMaker* keel_store_module(
    int version, keel::LogFormat format, keel::LogLevel level, const char** problem) {
  if (version != keel::kStoreModuleVersion) return nullptr;
  static const keel::Status fits = keel::CheckTorchVersion();
  if (!fits.ok()) {
    *problem = fits.error().message.c_str();
    return nullptr;
  }
  keel::SetLogFormat(format);
  keel::SetLogLevel(level);
  keel::RouteTorchLog();
  keel::OmitTorchStacks();
  static keel::TcpStoreMaker maker;
  return &maker;
}
