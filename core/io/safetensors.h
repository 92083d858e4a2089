// safetensors files: named tensors behind a JSON header, as PyTorch's world exchanges them.
#pragma once
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tapegrad/core/io/file_reader.h"
#include "tapegrad/core/tensor.h"

namespace tg {

using NamedTensors = std::vector<std::pair<std::string, Tensor>>;
using Metadata = std::map<std::string, std::string>;

// Longest header that the format allows, when reading and when writing.
inline constexpr int64_t kMaxSafetensorsHeader = 100'000'000;

// An open file: the header is read and checked, tensors are read when asked for.
//
// FileError, before anything of the size in question is allocated, for: a file that is no
// safetensors file or was cut short, a header that is too long or not as the format says (names
// twice, a dtype or a rank that tapegrad does not have, sizes that overflow), data that overlaps,
// has gaps, or has another length than dtype and shape say.
class SafetensorsFile {
 public:
  struct Entry {
    std::string name;
    DType dtype = DType::f32;
    Shape shape;
    int64_t begin = 0, end = 0;  // bytes, counted from the end of the header
  };

  explicit SafetensorsFile(const std::string& path);

  const std::vector<Entry>& entries() const { return entries_; }  // in the order of the data
  const Metadata& metadata() const { return metadata_; }
  const Entry* find(const std::string& name) const;  // nullptr if there is none
  // A new tensor on the CPU. FileError for a name that is not there.
  Tensor read(const std::string& name) const;
  Tensor read(const Entry& entry) const;

 private:
  io::FileReader file_;
  int64_t data_start_ = 0;
  std::vector<Entry> entries_;
  std::vector<size_t> by_name_;  // positions in entries_, in the order of the names
  Metadata metadata_;
};

// All tensors of a file, in the order of their data; its __metadata__ too where asked for.
NamedTensors load_safetensors(const std::string& path, Metadata* metadata = nullptr);

// Elements in row-major order whatever the strides; wide dtypes first, else in the given order. The
// file appears whole or not at all (core/io/atomic_file.h). ValueError for a name that is given
// twice, empty, "__metadata__" or not UTF-8, and for a header above the limit; DeviceError for a
// tensor that is not on the CPU; FileError with the system's reason.
void save_safetensors(const std::string& path, const NamedTensors& tensors,
                      const Metadata& metadata = {});

}  // namespace tg
