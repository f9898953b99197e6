// One row for each error. Those of video and of copying are told: their catalogue's advice is to
// start the program anew.
#include "tools/keel/xid_table.h"

#include <algorithm>
#include <iterator>

namespace keel {
namespace {

constexpr const char* kResetOnce =
    "reset the GPU (nvidia-smi --gpu-reset) or restart the machine; if it happens again, have the "
    "GPU replaced";
constexpr const char* kResetLink =
    "reset all GPUs of the machine or restart it; if it happens again, have the GPU, its links and "
    "what is at their other ends looked at";
constexpr const char* kRestart =
    "restart the machine; if it happens again, have the GPU, its power and what it is plugged into "
    "looked at";
constexpr const char* kTurnOff =
    "turn the machine off and on; if it happens again, have the GPU replaced";

using enum XidMeaning;

constexpr XidKind kXids[] = {
    {8, 8, kTold, "has stopped processing what a program gave it"},
    {11, 11, kProgram, "was given an invalid stream of commands"},
    {13, 13, kProgram, "has met an invalid access or instruction of a program"},
    {25, 25, kProgram, "was given an illegal stream of commands"},
    {31, 31, kProgram, "was told an address that a program has no memory at"},
    {32, 32, kTold, "has received a corrupt stream of commands, as over a bad PCI link"},
    {37, 38, kTold, "has met an error of its driver's firmware"},
    {39, 41, kTold, "has met an error while it copied"},
    {43, 43, kProgram, "has ended a program that had made an error"},
    {44, 44, kTold, "has met a fault while it changed programs"},
    {45, 45, kProgram, "has ended what a program had left, for its end or an error before"},
    {46, 46, kUnfit, "has stopped processing", kResetOnce},
    {48, 48, kUnfit, "has met an error of its memory that it could not correct", kResetOnce},
    {54, 54, kUnfit, "lacks its auxiliary power", "connect the GPU's power cables"},
    {60, 60, kTold, "has met an error of a video engine"},
    {61, 61, kTold, "has met a warning of its internal controller"},
    {62, 62, kUnfit, "has an internal controller that has halted", kResetOnce},
    {63, 63, kTold, "has noted a faulty part of its memory to be replaced by a spare one"},
    {64, 64, kUnfit, "could not note a faulty part of its memory to be replaced", kResetOnce},
    {66, 67, kTold, "has met an illegal access of its driver's"},
    {68, 68, kTold, "has met an error of a video engine"},
    {69, 69, kProgram, "was given a command that it does not know"},
    {70, 72, kTold, "has met an error while it copied"},
    {74, 74, kUnfit, "has met an error of its NVLink", kResetLink},
    {75, 77, kTold, "has met an error while it copied"},
    {78, 78, kTold, "could not be shared with a virtual machine"},
    {79, 79, kUnfit, "has fallen off the bus", kRestart},
    {80, 80, kTold, "has received corrupted data"},
    {82, 84, kTold, "has met an error of a video engine"},
    {85, 85, kTold, "has met an error while it copied"},
    {86, 86, kTold, "has met an error of a video engine"},
    {88, 89, kTold, "has met an error of a video engine"},
    {92, 92, kTold, "has corrected many errors of its memory"},
    {93, 93, kTold, "has reached a limit of writing to its InfoROM"},
    {94, 94, kTold, "has met an error of its memory that reached one program alone"},
    {95, 95, kUnfit, "has met an error of its memory that may have reached all programs",
     kResetOnce},
    {96, 105, kTold, "has met an error of a video engine"},
    {106, 107, kTold, "has logged a test of its logging"},
    {109, 109, kTold, "took too long to change programs"},
    {110, 110, kUnfit, "has met a security fault, as failing hardware causes", kTurnOff},
    {119, 119, kUnfit, "has a system processor (GSP) that did not answer the driver", kResetOnce},
    {120, 120, kUnfit, "has a system processor (GSP) that has failed", kResetOnce},
    {121, 121, kTold, "has corrected errors of its link to the processor"},
    {126, 135, kTold, "has met an error while it copied"},
    {136, 136, kUnfit, "could not set up a link of its NVLink", kResetLink},
    {137, 137, kProgram, "has met an invalid access over NVLink"},
    {139, 139, kTold, "has met an error of a video engine"},
    {140, 140, kUnfit, "has met an error of its memory that could not be set aside", kResetOnce},
    {143, 143, kUnfit, "could not be initialized", kResetOnce},
    {144, 150, kUnfitIfFatal, "has met an error of its NVLink", kResetLink},
    {154, 154, kAction, "waits for something to be done",
     "do what the driver's words say: reset the GPU (nvidia-smi --gpu-reset), or restart the "
     "machine"},
    {155, 155, kTold, "has had a link of its NVLink go down, which may have been wanted"},
    {156, 156, kTold, "has set aside a faulty part of itself"},
    {157, 157, kTold, "has no spare left for a faulty part of itself"},
    {158, 158, kUnfit, "did not answer its driver in time", kResetOnce},
    {160, 161, kTold, "has set aside a faulty channel of its memory, or tried to"},
    {162, 165, kTold, "has changed how it smooths its power"},
    {167, 167, kTold, "has met a timeout of its PCI link"},
    {168, 168, kTold, "has less memory than it should, for errors of it"},
    {169, 169, kTold, "has an internal controller that has halted"},
    {171, 171, kUnfit, "has met an error of its DRAM that it could not correct", kResetOnce},
    {172, 172, kUnfit, "has met an error of its SRAM that it could not correct", kResetOnce}};

}  // namespace

const XidKind* FindXid(int number) {
  const auto* const found =
      std::find_if(std::begin(kXids), std::end(kXids), [&](const XidKind& one) {
        return one.first <= number && number <= one.last;
      });
  return found == std::end(kXids) ? nullptr : found;
}

}  // namespace keel
