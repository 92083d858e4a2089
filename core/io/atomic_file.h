// Files that are either wholly there or not at all.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tg::io {

// Writes into a temporary file beside `path` and gives it that name when all is on the disk. Until
// commit() has returned, `path` holds what it held before, whatever happens to the process or the
// machine; a file that is not committed vanishes. Leftovers of processes that were killed are
// removed by the next AtomicFile of the same path. Every failure is a FileError with the path and
// the system's reason.
class AtomicFile {
 public:
  explicit AtomicFile(const std::string& path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(const void* data, size_t bytes);
  void write(std::string_view text) { write(text.data(), text.size()); }
  // To the disk, then under its name. Nothing can be written afterwards.
  void commit();

 private:
  void flush();
  void write_out(const char* data, size_t bytes);
  [[noreturn]] void failed(const char* what, int error);

  std::string path_, folder_, temporary_;
  std::vector<char> buffer_;
  int file_ = -1;
};

// Removes what killed processes left of writing this file; an AtomicFile of it does so too.
void remove_leftovers(const std::string& path);

// The whole of a text or byte file, at once.
void write_file(const std::string& path, std::string_view content);

// For tests: the next writes of this process fail with "no space left on device" once `bytes` more
// bytes have been written; a negative number ends it.
void fail_writes_after(int64_t bytes);

}  // namespace tg::io
