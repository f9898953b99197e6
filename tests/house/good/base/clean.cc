// What looks like a violation, but is none: https://example.org/a/long/address/that/cannot/be/broken/anywhere
#include "base/clean.h"

namespace keel {
namespace {

constexpr char kText[] = "rand() and \" steady_clock and // using namespace std;";
constexpr char kRaw[] = R"(abort(); " std::cerr << 'x' )";
constexpr char kQuote = '"';
constexpr int kMillion = 1'000'000;

}  // namespace

Group::Group(int a) : first_{a}, second_(a), third_{a} { group->abort(); }

void Group::abort() {
  group.abort();
  const auto noise = torch::rand({3});
  std::ifstream in("file");
  FILE* file = fopen("w", "r");
  std::snprintf(text, sizeof(text), "%d", 3);
  files.Rename("a", "b");
  files.rename("a", "b");
  strand(3);
}

}  // namespace keel
