#pragma once

#include <source_location>
#include <string>

/// A test runner in fifty lines. The usual ones are not on the package index that a fresh machine
/// has, and the core needs no more than named cases and checks that say where they failed.
namespace hardwood::tests {

/// A named test; define one at namespace scope: `const Case name{"room: what holds", [] { ... }};`
struct Case {
  Case(const char* name, void (*run)());
};

/// Count a check; on failure say where and what, and go on.
void check(bool holds, const std::string& what,
           std::source_location where = std::source_location::current());

/// The call must throw std::invalid_argument with `words` in its message.
void check_refused(void (*call)(), const std::string& words,
                   std::source_location where = std::source_location::current());

}  // namespace hardwood::tests
