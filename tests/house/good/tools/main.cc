// A program's main may print and exit.
int main(int argc, char** argv) {
  std::cerr << "usage\n";
  std::exit(2);
}
