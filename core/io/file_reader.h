// Reading pieces of a regular file.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

namespace tg::io {

// A file is read, not mapped into memory: if somebody cuts it short meanwhile, that is a FileError
// here and would be a signal that ends the process there.
class FileReader {
 public:
  // FileError unless it is a readable regular file: a device or a pipe could be read without end.
  explicit FileReader(const std::string& path);
  ~FileReader();
  FileReader(const FileReader&) = delete;
  FileReader& operator=(const FileReader&) = delete;

  const std::string& path() const { return path_; }
  int64_t size() const { return size_; }
  // Exactly these bytes, or a FileError. May be called by several threads.
  void read(void* data, size_t bytes, int64_t offset) const;

 private:
  std::string path_;
  int file_ = -1;
  int64_t size_ = 0;
};

// The whole file; FileError above `most` bytes.
std::string read_file(const std::string& path, int64_t most = int64_t(1) << 30);

}  // namespace tg::io
