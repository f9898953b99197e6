// XidTable: what the numbers by which NVIDIA's driver tells errors of GPUs (Xid) say of the
// hardware.
// Promises   pure; follows what NVIDIA's catalogue of them says to do at once, and is not stricter.
//            A number that is not here is not known, which is no fault.
// Does not   look at a log (tools/keel/health_xid.h); know the errors of NVSwitches (SXid).
// Threads    pure functions.
#pragma once

namespace keel {

enum class XidMeaning {
  kUnfit,        // no job may use the GPU until something was done
  kUnfitIfFatal,  // so it is where the driver's words have "Fatal"
  kAction,       // its words say what is to be done; of several, the last ones hold
  kTold,         // something of the hardware or the driver, with which the GPU goes on
  kProgram,      // made by a program: says nothing of the machine
};

struct XidKind {
  int first = 0;
  int last = 0;  // these, too, and those between
  XidMeaning meaning = XidMeaning::kTold;
  const char* what = "";  // stands behind the name of a GPU
  const char* cure = "";  // of what may be unfit
};

// Null: not known.
const XidKind* FindXid(int number);

}  // namespace keel
