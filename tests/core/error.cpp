#include "tapegrad/core/error.h"

#include <cmath>
#include <thread>

#include "catch.h"
#include "tapegrad/core/profiler.h"
#include "tapegrad/core/scope.h"
#include "tapegrad/core/shape.h"

using namespace tg;

namespace {

std::string message(void (*fn)()) {
  try {
    fn();
  } catch (const std::exception& e) {
    return e.what();
  }
  return "nothing was thrown";
}

// Two nested modules as nn would show them to core.
struct FakeModule {
  const char* type;
  const FakeModule* child = nullptr;
};
std::string type_of(const void* m) { return static_cast<const FakeModule*>(m)->type; }
bool child_name(const void* parent, const void* child, std::string& name) {
  name = "fc";
  return static_cast<const FakeModule*>(parent)->child == child;
}

}  // namespace

TEST_CASE("Messages are words with a space between, glued to punctuation") {
  CHECK(message([] {
          check<ShapeError>(false, "inner sizes differ:", Shape{2, 3}, Shape{4, 5}, ", dim", -1);
        }) == "inner sizes differ: [2,3] [4,5], dim -1");
  CHECK(message([] { check<ValueError>(true, "never"); }) == "nothing was thrown");
  CHECK(message([] { fail("p is", 0.5, "and", true); }) == "p is 0.5 and true");
  CHECK(to_text(1e-7) == "1e-07");
  CHECK(to_text(0.1) == "0.1");
  CHECK(to_text(std::nan("")) == "nan");
}

TEST_CASE("A fault of ours is of another kind than one of the caller") {
  CHECK_THROWS_AS(fail<IndexError>("x"), Error);
  CHECK_THROWS_AS(fail<InternalError>("x"), std::logic_error);
  CHECK(message([] { fail<InternalError>("x"); }) == "x (a fault inside tapegrad)");
}

TEST_CASE("Errors say which operator in which module was running") {
  FakeModule fc{"Linear"}, net{"Net", &fc};
  CHECK(running_prefix() == "");
  Scope outer(&net, type_of, child_name);
  CHECK(running_prefix() == "(Net): ");
  {
    Scope inner(&fc, type_of, child_name);
    Scope linear("linear");
    Scope matmul("matmul");  // called by linear: the user called linear
    CHECK(message([] { fail("wrong"); }) == "fc (Linear): linear: wrong");
    std::string elsewhere = "?";
    std::thread([&] { elsewhere = running_prefix(); }).join();
    CHECK(elsewhere == "");
  }
  CHECK(running_prefix() == "(Net): ");
}

TEST_CASE("The profiler counts calls and time per name", "[pool]") {
  auto spend = [](const char* name, int milliseconds) {
    Scope scope(name);
    std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
  };
  spend("before", 0);
  {
    Scope open_before("open_before");
    profiler::start();
  }
  {
    Scope outer("outer");
    spend("inner", 4);
    spend("inner", 4);
    Scope again("outer");  // a name inside itself counts its time once
    std::thread([&] { spend("inner", 2); }).join();
  }
  profiler::stop();
  spend("after", 0);
  std::vector<profiler::Entry> list = profiler::entries();
  REQUIRE(list.size() == 2);
  CHECK(list[0].self_seconds >= list[1].self_seconds);
  for (const profiler::Entry& e : list) {
    CHECK(e.self_seconds <= e.total_seconds);
    if (e.name == "inner") {
      CHECK(e.calls == 3);
      CHECK(e.total_seconds >= 0.010);
    } else {
      CHECK(e.name == "outer");
      CHECK(e.calls == 2);
      CHECK(e.total_seconds >= 0.010);
      CHECK(e.self_seconds <= e.total_seconds - 0.008);
    }
  }
  CHECK(profiler::table().find("inner") != std::string::npos);
  CHECK(profiler::table(0).find("inner") == std::string::npos);
  profiler::start();
  profiler::stop();
  CHECK(profiler::entries().empty());
}
