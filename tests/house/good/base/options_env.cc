// The one place that reads the environment.
const char* Home() { return std::getenv("HOME"); }
