#include "tapegrad/data/gzip_file.h"

#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <vector>

#include "tapegrad/core/error.h"
#include "tapegrad/core/io/file_reader.h"

namespace tg::data {

struct GzipFile::State {
  std::string path;
  std::FILE* file = nullptr;
  int64_t size = 0, taken = 0;  // of the file itself
  bool packed = false, stream_open = false, finished = false;
  z_stream stream{};
  std::vector<unsigned char> buffer = std::vector<unsigned char>(1 << 16);

  ~State() {
    if (packed) inflateEnd(&stream);
    if (file) std::fclose(file);
  }

  // The next piece of the file, into buffer; 0 at the end.
  size_t fill() {
    size_t n = std::fread(buffer.data(), 1, buffer.size(), file);
    check<FileError>(n > 0 || !std::ferror(file), path, ": cannot be read:", std::strerror(errno));
    taken += int64_t(n);
    return n;
  }

  int64_t inflate_some(unsigned char* to, int64_t bytes) {
    int64_t done = 0;
    while (done < bytes && !finished) {
      if (stream.avail_in == 0) {
        stream.next_in = buffer.data();
        stream.avail_in = unsigned(fill());
        if (stream.avail_in == 0) {
          // Between two members of a file the end is a good end.
          check<FileError>(!stream_open, path, ": the gzip stream is cut");
          finished = true;
          break;
        }
      }
      if (!stream_open) {
        check<FileError>(inflateReset(&stream) == Z_OK, path, ": zlib refused to start");
        stream_open = true;
      }
      stream.next_out = to + done;
      stream.avail_out = unsigned(std::min<int64_t>(bytes - done, 1 << 30));
      unsigned before = stream.avail_out;
      int code = inflate(&stream, Z_NO_FLUSH);
      done += before - stream.avail_out;
      if (code == Z_STREAM_END)
        stream_open = false;
      else
        check<FileError>(code == Z_OK || code == Z_BUF_ERROR, path, ": the gzip stream is damaged",
                         stream.msg ? std::string("(") + stream.msg + ")" : std::string());
    }
    return done;
  }
};

GzipFile::GzipFile(const std::string& path) : state_(std::make_unique<State>()) {
  State& s = *state_;
  s.path = path;
  s.size = io::FileReader(path).size();
  s.file = std::fopen(path.c_str(), "rb");
  check<FileError>(s.file, path, ": cannot be opened:", std::strerror(errno));
  unsigned char head[2] = {};
  size_t n = std::fread(head, 1, 2, s.file);
  std::rewind(s.file);
  s.packed = n == 2 && head[0] == 0x1f && head[1] == 0x8b;
  if (s.packed) {
    check<FileError>(inflateInit2(&s.stream, 16 + MAX_WBITS) == Z_OK, path,
                     ": zlib refused to start");
  }
}

GzipFile::~GzipFile() = default;

int64_t GzipFile::read(void* to, int64_t bytes) {
  State& s = *state_;
  if (s.packed) return s.inflate_some(static_cast<unsigned char*>(to), bytes);
  auto n = int64_t(std::fread(to, 1, size_t(bytes), s.file));
  check<FileError>(n == bytes || !std::ferror(s.file), s.path,
                   ": cannot be read:", std::strerror(errno));
  s.taken += n;
  return n;
}

bool GzipFile::at_end() {
  unsigned char one;
  return read(&one, 1) == 0;
}

int64_t GzipFile::most_bytes_left() const {
  const State& s = *state_;
  if (!s.packed) return s.size - s.taken;
  return (s.size - s.taken + int64_t(s.stream.avail_in) + 64) * 1032;
}

}  // namespace tg::data
