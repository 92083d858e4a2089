#include "tapegrad/core/io/safetensors.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <set>

#include "tapegrad/core/io/atomic_file.h"
#include "tapegrad/core/io/safetensors_header.h"
#include "tapegrad/core/io/tensor_bytes.h"

namespace tg {
namespace {

using Entry = SafetensorsFile::Entry;

// Length and offsets fit together, and the entries, sorted by their data, cover it once.
void check_layout(std::vector<Entry>& entries, int64_t data_bytes, const std::string& path) {
  std::stable_sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
  });
  int64_t covered = 0;
  for (const Entry& e : entries) {
    int64_t bytes = int64_t(size_of(e.dtype));
    bool fits = true, empty = false;
    for (int64_t size : e.shape) {
      fits = !__builtin_mul_overflow(bytes, size, &bytes) && fits;
      empty = empty || size == 0;
    }
    if (empty) bytes = 0;
    check<FileError>(fits || empty,
                     path + ": the shape of '" + e.name + "' is too large:", e.shape);
    check<FileError>(e.begin <= e.end && e.end - e.begin == bytes, path + ": '" + e.name + "',",
                     to_text(e.dtype) + to_text(e.shape) + ", takes", bytes,
                     "bytes, but its data_offsets are", e.begin, "and", e.end);
    check<FileError>(e.begin == covered, path + ": the data of '" + e.name + "' begins at", e.begin,
                     "where", covered, "is expected: the tensors overlap or leave a gap");
    covered = e.end;
  }
  check<FileError>(covered == data_bytes, path + ": the header describes", covered,
                   "bytes of data, but the file has", data_bytes,
                   covered > data_bytes ? ": it was cut short" : "");
}

void check_header_length(int64_t bytes) {
  check<ValueError>(bytes <= kMaxSafetensorsHeader, "save_safetensors: the header would have",
                    bytes, "bytes; at most", kMaxSafetensorsHeader, "are allowed");
}

}  // namespace

SafetensorsFile::SafetensorsFile(const std::string& path) : file_(path) {
  check<FileError>(file_.size() >= 8, path + " is not a safetensors file: only", file_.size(),
                   "bytes");
  uint64_t length = 0;
  file_.read(&length, 8, 0);
  check<FileError>(length <= uint64_t(kMaxSafetensorsHeader),
                   path + ": not a safetensors file: its header would have " +
                       std::to_string(length) + " bytes; at most",
                   kMaxSafetensorsHeader, "are allowed");
  check<FileError>(int64_t(length) <= file_.size() - 8, path + ": the header has", int64_t(length),
                   "bytes, the file only", file_.size(),
                   ": it was cut short or is not a safetensors file");
  std::string text(size_t(length), '\0');
  file_.read(text.data(), text.size(), 8);
  io::SafetensorsHeader header = io::parse_safetensors_header(text, path);
  data_start_ = 8 + int64_t(length);
  entries_ = std::move(header.entries);
  metadata_ = std::move(header.metadata);
  check_layout(entries_, file_.size() - data_start_, path);
  by_name_.resize(entries_.size());
  std::iota(by_name_.begin(), by_name_.end(), size_t(0));
  std::sort(by_name_.begin(), by_name_.end(),
            [this](size_t a, size_t b) { return entries_[a].name < entries_[b].name; });
}

const Entry* SafetensorsFile::find(const std::string& name) const {
  auto it =
      std::lower_bound(by_name_.begin(), by_name_.end(), name,
                       [this](size_t i, const std::string& n) { return entries_[i].name < n; });
  return it == by_name_.end() || entries_[*it].name != name ? nullptr : &entries_[*it];
}

Tensor SafetensorsFile::read(const std::string& name) const {
  const Entry* entry = find(name);
  check<FileError>(entry != nullptr, file_.path() + " has no tensor '" + name + "'");
  return read(*entry);
}

Tensor SafetensorsFile::read(const Entry& entry) const {
  Tensor x = empty(entry.shape, entry.dtype);
  if (x.numel() > 0)
    file_.read(x.write().data, size_t(entry.end - entry.begin), data_start_ + entry.begin);
  io::normalise_bools(x);
  return x;
}

NamedTensors load_safetensors(const std::string& path, Metadata* metadata) {
  SafetensorsFile file(path);
  NamedTensors tensors;
  for (const Entry& entry : file.entries()) tensors.emplace_back(entry.name, file.read(entry));
  if (metadata) *metadata = file.metadata();
  return tensors;
}

void save_safetensors(const std::string& path, const NamedTensors& tensors,
                      const Metadata& metadata) {
  std::set<std::string> names;
  std::vector<const std::pair<std::string, Tensor>*> order;
  for (const auto& item : tensors) {
    const auto& [name, x] = item;
    check<ValueError>(!name.empty() && name != "__metadata__",
                      "save_safetensors: a tensor cannot be called '" + name + "'");
    check<ValueError>(names.insert(name).second,
                      "save_safetensors: the name '" + name + "' is given twice");
    check<ValueError>(x.defined(), "save_safetensors: '" + name + "' is an undefined tensor");
    check<DeviceError>(x.device().is_cpu(), "save_safetensors: '" + name + "' is on", x.device(),
                       "; copy it with to(kCpuDevice)");
    order.push_back(&item);
  }
  // Wide elements first: then every tensor begins at a multiple of its element's size.
  std::stable_sort(order.begin(), order.end(), [](const auto* a, const auto* b) {
    return size_of(a->second.dtype()) > size_of(b->second.dtype());
  });
  io::SafetensorsHeader header;
  header.metadata = metadata;
  int64_t at = 0;
  for (const auto* item : order) {
    const Tensor& x = item->second;
    int64_t end = at + x.numel() * int64_t(size_of(x.dtype()));
    header.entries.push_back({item->first, x.dtype(), x.shape(), at, end});
    at = end;
  }
  int64_t least = 0;  // before the text is built
  for (const auto& [key, value] : metadata) least += int64_t(key.size() + value.size());
  check_header_length(least);
  std::string text = io::write_safetensors_header(header);
  check_header_length(int64_t(text.size()));
  uint64_t length = text.size();
  io::AtomicFile file(path);
  file.write(&length, 8);
  file.write(text);
  for (const auto* item : order)
    io::for_each_piece(item->second,
                       [&](const char* data, size_t bytes) { file.write(data, bytes); });
  file.commit();
}

}  // namespace tg
