// Each thread measures into a table of its own; entries() adds the tables up.
#include "tapegrad/core/profiler.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "tapegrad/core/scope.h"

namespace tg::profiler {
namespace {

using Clock = std::chrono::steady_clock;

struct Row {
  int64_t calls = 0;
  Clock::duration total{0}, self{0};
  int open = 0;  // how many of this name are running: only the outermost adds to total
};
struct Frame {
  const Scope* scope;
  Row* row;
  Clock::time_point start;
  Clock::duration inside{0};  // spent in scopes that were opened in this one
};
struct Table {
  std::mutex mutex;
  std::unordered_map<std::string, Row> rows;
  std::vector<Frame> open;
  uint64_t session = 0;
};

// All tables, those of threads that have ended too. Never destroyed: threads may outlive main.
struct Registry {
  std::mutex mutex;
  std::vector<std::shared_ptr<Table>> tables;
  std::atomic<uint64_t> session{0};
};
Registry& registry() {
  static Registry& r = *new Registry;
  return r;
}

Table& table_of_thread() {
  thread_local const std::shared_ptr<Table> table = [] {
    auto made = std::make_shared<Table>();
    std::lock_guard<std::mutex> lock(registry().mutex);
    registry().tables.push_back(made);
    return made;
  }();
  return *table;
}

// Forgets what an earlier session left. With the table's mutex held.
void enter_session(Table& t) {
  uint64_t session = registry().session.load(std::memory_order_relaxed);
  if (t.session == session) return;
  t.rows.clear();
  t.open.clear();
  t.session = session;
}

double seconds(Clock::duration d) { return std::chrono::duration<double>(d).count(); }

}  // namespace

void begin(const Scope& scope) {
  std::string name = scope.is_module() ? scope.type_name() : scope.name();
  Table& t = table_of_thread();
  std::lock_guard<std::mutex> lock(t.mutex);
  enter_session(t);
  Row& row = t.rows[std::move(name)];
  ++row.calls;
  ++row.open;
  t.open.push_back({&scope, &row, Clock::now(), {}});
}

void end(const Scope& scope) {
  auto now = Clock::now();
  Table& t = table_of_thread();
  std::lock_guard<std::mutex> lock(t.mutex);
  enter_session(t);
  // A scope that was open before start() has no frame.
  if (t.open.empty() || t.open.back().scope != &scope) return;
  Frame frame = t.open.back();
  t.open.pop_back();
  auto spent = now - frame.start;
  frame.row->self += spent - frame.inside;
  if (--frame.row->open == 0) frame.row->total += spent;
  if (!t.open.empty()) t.open.back().inside += spent;
}

void start() {
  Registry& r = registry();
  std::lock_guard<std::mutex> lock(r.mutex);
  r.session.fetch_add(1);
  std::erase_if(r.tables, [](const auto& t) { return t.use_count() == 1; });  // ended threads
  enabled.store(true);
}

void stop() { enabled.store(false); }

std::vector<Entry> entries() {
  Registry& r = registry();
  std::map<std::string, Entry> sums;
  std::lock_guard<std::mutex> lock(r.mutex);
  for (const auto& t : r.tables) {
    std::lock_guard<std::mutex> table_lock(t->mutex);
    if (t->session != r.session.load()) continue;
    for (const auto& [name, row] : t->rows) {
      Entry& e = sums[name];
      e.name = name;
      e.calls += row.calls;
      e.total_seconds += seconds(row.total);
      e.self_seconds += seconds(row.self);
    }
  }
  std::vector<Entry> list;
  for (auto& item : sums) list.push_back(std::move(item.second));
  std::stable_sort(list.begin(), list.end(),
                   [](const Entry& a, const Entry& b) { return a.self_seconds > b.self_seconds; });
  return list;
}

std::string table(int most) {
  std::vector<Entry> list = entries();
  size_t width = 4;
  double all = 0;
  for (const Entry& e : list) {
    width = std::max(width, e.name.size());
    all += e.self_seconds;
  }
  auto left = [&](const std::string& s) { return s + std::string(width - s.size() + 2, ' '); };
  auto right = [](const std::string& s) {
    return std::string(s.size() < 12 ? 12 - s.size() : 1, ' ') + s;
  };
  // Written with integers: thousandths of a millisecond, tenths of a percent, in no locale's way.
  auto fixed = [&](double value, int digits) {
    int64_t scale = digits == 3 ? 1000 : 10;
    int64_t n = std::llround(value * double(scale));
    std::string fraction = std::to_string(n % scale);
    return std::to_string(n / scale) + "." + std::string(size_t(digits) - fraction.size(), '0') +
           fraction;
  };
  std::string text = left("name") + right("calls") + right("self ms") + right("self %") +
                     right("total ms") + right("us / call") + "\n";
  for (size_t i = 0; i < list.size() && int(i) < most; ++i) {
    const Entry& e = list[i];
    text += left(e.name) + right(std::to_string(e.calls)) + right(fixed(e.self_seconds * 1e3, 3)) +
            right(fixed(all > 0 ? 100 * e.self_seconds / all : 0, 1)) +
            right(fixed(e.total_seconds * 1e3, 3)) +
            right(fixed(e.total_seconds * 1e6 / double(std::max<int64_t>(e.calls, 1)), 3)) + "\n";
  }
  return text;
}

}  // namespace tg::profiler
