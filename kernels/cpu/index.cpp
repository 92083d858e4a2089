// The indexed elements form a table: row b is the places that index b names, or the values for
// them, and a column is one element of the dimensions that are not indexed (the "rest"). Rows may
// name one place twice, so writing threads share out the columns and walk the rows in order;
// reading threads share out the rows.
#include "tapegrad/kernels/index.h"

#include <algorithm>
#include <cstring>

#include "tapegrad/core/parallel.h"
#include "tapegrad/kernels/cpu/add_to.h"
#include "tapegrad/kernels/cpu/grain.h"
#include "tapegrad/kernels/cpu/scratch.h"
#include "tapegrad/kernels/walk.h"

namespace tg::kernels {
namespace {

// Byte offset of each row in x, after a check of every position.
void place_rows(const Shape& shape, const Shape& strides, int64_t bytes,
                std::span<const IndexColumn> columns, int64_t count, int64_t* offsets) {
  parallel_for(count, kElementGrain, [&](int64_t begin, int64_t end) {
    std::fill(offsets + begin, offsets + end, 0);
    for (size_t k = 0; k < columns.size(); ++k) {
      const int64_t* values = columns[k].values.as<int64_t>();
      int64_t step = columns[k].values.stride(0), n = shape[int(k)], stride = strides[int(k)];
      int64_t lowest = columns[k].from_end ? -n : 0;
      for (int64_t b = begin; b < end; ++b) {
        int64_t at = values[b * step];
        check<IndexError>(at >= lowest && at < n, "index", at, "is out of range for dim",
                          columns[k].dim, "of size", n);
        offsets[b] += (at < 0 ? at + n : at) * stride * bytes;
      }
    }
  });
}

template <class Pointer>
void drop_leading(const BasicView<Pointer>& v, int count, Shape* shape, Shape* strides) {
  for (int i = count; i < v.rank(); ++i) {
    shape->push_back(v.size(i));
    strides->push_back(v.stride(i));
  }
}

// Operand 0 of the walk over the rest is the table, operand 1 is x.
struct Table {
  Walk rest;
  int64_t rows = 0, row_step = 0;  // in bytes
  const int64_t* offsets = nullptr;
  char* table = nullptr;
  char* x = nullptr;
};

// visit(table element, x element) for rows [row, row_end) and columns [column, column_end).
template <class T, class F>
void visit_rows(const Table& t, int64_t row, int64_t row_end, int64_t column, int64_t column_end,
                F visit) {
  const Walk& w = t.rest;
  int64_t step = w.inner_step(0), x_step = w.inner_step(1);
  bool packed = step == int64_t(sizeof(T)) && x_step == int64_t(sizeof(T));
  for (int64_t b = row; b < row_end; ++b) {
    char* table = t.table + b * t.row_step;
    char* x = t.x + t.offsets[b];
    Position<2> at(w, column);
    for (int64_t left = column_end - column; left > 0;) {
      int64_t n = std::min(left, at.run());
      char* p = table + at.offset[0];
      char* q = x + at.offset[1];
      if (packed)
        visit.run(reinterpret_cast<T*>(p), reinterpret_cast<T*>(q), n);
      else
        for (int64_t i = 0; i < n; ++i)
          visit(*reinterpret_cast<T*>(p + i * step), *reinterpret_cast<T*>(q + i * x_step));
      left -= n;
      if (left > 0) at.advance(n);
    }
  }
}

// The same, column by column: for tables whose columns lie next to each other in memory.
template <class T, class F>
void visit_columns(const Table& t, int64_t column, int64_t column_end, F visit) {
  Position<2> at(t.rest, column);
  for (int64_t c = column; c < column_end; ++c) {
    char* p = t.table + at.offset[0];
    char* q = t.x + at.offset[1];
    for (int64_t b = 0; b < t.rows; ++b)
      visit(*reinterpret_cast<T*>(p + b * t.row_step), *reinterpret_cast<T*>(q + t.offsets[b]));
    if (c + 1 < column_end) at.advance(1);
  }
}

template <class T>
struct Read {
  void operator()(T& table, const T& x) const { table = x; }
  void run(T* table, const T* x, int64_t n) const { std::memcpy(table, x, size_t(n) * sizeof(T)); }
};
template <class T>
struct Write {
  void operator()(const T& table, T& x) const { x = table; }
  void run(const T* table, T* x, int64_t n) const { std::memcpy(x, table, size_t(n) * sizeof(T)); }
};
template <class T>
struct Add {
  void operator()(const T& table, T& x) const { add_to(x, table); }
  void run(const T* table, T* x, int64_t n) const {
    for (int64_t i = 0; i < n; ++i) add_to(x[i], table[i]);
  }
};

template <class T, class F>
void visit_table(const Table& t, bool writes, F visit) {
  int64_t columns = t.rest.numel;
  if (columns == 0 || t.rows == 0) return;
  if (t.row_step < t.rest.inner_step(0) && columns > 1) {
    int64_t grain = std::max<int64_t>(1, kElementGrain / t.rows);
    return parallel_for(columns, grain, [&](int64_t begin, int64_t end) {
      visit_columns<T>(t, begin, end, visit);
    });
  }
  if (writes) {
    int64_t grain = std::max<int64_t>(64, kElementGrain / t.rows);
    return parallel_for(columns, grain, [&](int64_t begin, int64_t end) {
      visit_rows<T>(t, 0, t.rows, begin, end, visit);
    });
  }
  int64_t grain = std::max<int64_t>(1, kElementGrain / columns);
  parallel_for(t.rows, grain, [&](int64_t begin, int64_t end) {
    visit_rows<T>(t, begin, end, 0, columns, visit);
  });
}

// What read and write share: `x` and `rows` describe [indexed..., rest...] and [count, rest...].
class Plan {
 public:
  Plan(const View& x, std::span<const IndexColumn> columns, const View& rows)
      : offsets_(rows.size(0)) {
    int64_t bytes = int64_t(size_of(x.dtype));
    place_rows(x.shape(), x.strides(), bytes, columns, rows.size(0), offsets_.data());
    Shape shape, strides, x_shape, x_strides;
    drop_leading(rows, 1, &shape, &strides);
    drop_leading(x, int(columns.size()), &x_shape, &x_strides);
    Layout layouts[] = {{&shape, &strides, bytes}, {&x_shape, &x_strides, bytes}};
    table.rest = plan_walk(layouts);
    table.rows = rows.size(0);
    table.row_step = rows.stride(0) * bytes;
    table.offsets = offsets_.data();
    table.table = static_cast<char*>(const_cast<void*>(rows.data));
    table.x = static_cast<char*>(const_cast<void*>(x.data));
  }
  Table table;

 private:
  Scratch<int64_t> offsets_;
};

}  // namespace

void index(Cpu, View x, std::span<const IndexColumn> columns, MutView y) {
  Plan plan(x, columns, y);
  visit_bytes(y.dtype, [&]<class T>() { visit_table<T>(plan.table, false, Read<T>{}); });
}

void index_put(Cpu, MutView x, std::span<const IndexColumn> columns, View values, bool accumulate) {
  Plan plan(x, columns, values);
  if (accumulate)
    visit_all(x.dtype, [&]<class T>() { visit_table<T>(plan.table, true, Add<T>{}); });
  else
    visit_bytes(x.dtype, [&]<class T>() { visit_table<T>(plan.table, true, Write<T>{}); });
}

}  // namespace tg::kernels
