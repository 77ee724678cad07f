#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string_view>
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

/// Run the cases whose names contain `words`; at least one must.
int run(std::string_view words) {
  std::size_t n_run = 0, n_failed = 0;
  for (const Named& test : cases()) {
    if (std::string_view(test.name).find(words) == std::string_view::npos) continue;
    failed = false;
    try {
      test.run();
    } catch (const std::exception& error) {
      check(false, std::string("threw: ") + error.what());
    }
    if (failed) std::printf("FAILED %s\n", test.name);
    ++n_run;
    n_failed += failed;
  }
  if (n_run == 0) std::printf("no case has \"%s\" in its name\n", std::string(words).c_str());
  std::printf("%zu passed, %zu failed\n", n_run - n_failed, n_failed);
  return n_failed == 0 && n_run > 0 ? 0 : 1;
}

/// Print the names of all cases.
int list() {
  for (const Named& test : cases()) std::puts(test.name);
  return 0;
}

}  // namespace hardwood::tests

/// core_tests [words of a name | --list]
int main(int n_words, char** words) {
  const std::string_view first = n_words > 1 ? words[1] : "";
  return first == "--list" ? hardwood::tests::list() : hardwood::tests::run(first);
}
