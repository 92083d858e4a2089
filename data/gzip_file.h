// A file read from front to back; gzip is unpacked on the way.
#pragma once
#include <cstdint>
#include <memory>
#include <string>

namespace tg::data {

class GzipFile {
 public:
  explicit GzipFile(const std::string& path);  // FileError if it cannot be opened
  ~GzipFile();
  GzipFile(const GzipFile&) = delete;
  GzipFile& operator=(const GzipFile&) = delete;

  // Fills `bytes` bytes unless the file ends before; the number read. FileError if the packed
  // stream is damaged or cut.
  int64_t read(void* to, int64_t bytes);
  bool at_end();
  // An upper bound of what is still to come, known before it is unpacked (deflate packs at most
  // 1032 to 1).
  int64_t most_bytes_left() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tg::data
