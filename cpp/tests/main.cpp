#include <cstdio>
#include <exception>
#include <stdexcept>
#include <vector>

#include "check.hpp"

namespace hardwood::tests {
namespace {

struct Named {
  const char* name;
  void (*run)();
};

// A function-local static: cases register themselves before main, in any order of files.
std::vector<Named>& cases() {
  static std::vector<Named> all;
  return all;
}

bool failed = false;  // in the case that is running

}  // namespace

Case::Case(const char* name, void (*run)()) { cases().push_back({name, run}); }

void check(bool holds, const std::string& what, std::source_location where) {
  if (holds) return;
  failed = true;
  std::printf("%s:%u: %s\n", where.file_name(), static_cast<unsigned>(where.line()), what.c_str());
}

void check_refused(void (*call)(), const std::string& words, std::source_location where) {
  try {
    call();
    check(false, "expected a refusal with: " + words, where);
  } catch (const std::invalid_argument& error) {
    check(std::string(error.what()).find(words) != std::string::npos,
          "the message is: " + std::string(error.what()), where);
  }
}

int run_all() {
  std::size_t n_failed = 0;
  for (const Named& test : cases()) {
    failed = false;
    try {
      test.run();
    } catch (const std::exception& error) {
      check(false, std::string("threw: ") + error.what());
    }
    if (failed) std::printf("FAILED %s\n", test.name);
    n_failed += failed;
  }
  std::printf("%zu passed, %zu failed\n", cases().size() - n_failed, n_failed);
  return n_failed == 0 && !cases().empty() ? 0 : 1;
}

}  // namespace hardwood::tests

int main() { return hardwood::tests::run_all(); }
