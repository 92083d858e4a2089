// A locale that would spoil every number in a file: thousands are grouped, the point is a comma.
#pragma once
#include <clocale>
#include <locale>
#include <string>

namespace tg::test {

struct GroupingComma : std::numpunct<char> {
  char do_decimal_point() const override { return ','; }
  char do_thousands_sep() const override { return ','; }
  std::string do_grouping() const override { return "\3"; }
};

// As long as it lives: the C++ locale always, and the C locale where the system has one with a
// decimal comma.
struct ForeignLocale {
  std::locale old = std::locale::global(std::locale(std::locale::classic(), new GroupingComma));
  ForeignLocale() {
    for (const char* name : {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8"})
      if (std::setlocale(LC_ALL, name)) break;
  }
  ~ForeignLocale() {
    std::setlocale(LC_ALL, "C");
    std::locale::global(old);
  }
};

}  // namespace tg::test
