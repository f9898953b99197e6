// Calls that have one home, made elsewhere.
#include <fstream>

namespace keel {

void Everything() {
  auto now = std::chrono::steady_clock::now();                // expect: clock
  auto wall = std::chrono::system_clock::now();               // expect: clock
  std::this_thread::sleep_for(1s);                            // expect: clock
  usleep(3);                                                  // expect: clock
  int number = rand() % 6;                                    // expect: random
  std::mt19937 engine(std::random_device{}());                // expect: random
  std::uniform_int_distribution<int> dice(1, 6);              // expect: random
  const char* home = std::getenv("HOME");                     // expect: environment
  ::setenv("HOME", "/", 1);                                   // expect: environment
  std::ofstream out("file");                                  // expect: files
  FILE* file = fopen(Path("a, b", 2).c_str(), "wb");          // expect: files
  ::rename("a", "b");                                         // expect: files
  fs::rename(from, to);                                       // expect: files
  std::filesystem::exists(from);                              // expect: std-filesystem
  fsync(descriptor);                                          // expect: files
  std::exit(1);                                               // expect: exit
  if (number) abort();                                        // expect: exit
  ::_exit(2);                                                 // expect: exit
  std::terminate();                                           // expect: exit
  std::cerr << "here";                                        // expect: debug-print
  printf("here %d", number);                                  // expect: debug-print
  std::fprintf(stderr, "here");                               // expect: debug-print
}

}  // namespace keel
