#include "tapegrad/core/io/file_reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "tapegrad/core/error.h"

namespace tg::io {

FileReader::FileReader(const std::string& path) : path_(path) {
  check<FileError>(!path.empty(), "the name of a file to read is empty");
  // Not blocking, so that a pipe without a writer is refused and not waited for.
  file_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  check<FileError>(file_ >= 0,
                   path + ": cannot be opened: " + std::generic_category().message(errno));
  struct stat info {};
  bool regular = ::fstat(file_, &info) == 0 && S_ISREG(info.st_mode);
  if (!regular) {
    ::close(file_);
    fail<FileError>(path + (S_ISDIR(info.st_mode) ? ": is a folder, not a regular file"
                                                  : ": is not a regular file"));
  }
  size_ = int64_t(info.st_size);
}

FileReader::~FileReader() { ::close(file_); }

void FileReader::read(void* data, size_t bytes, int64_t offset) const {
  auto* to = static_cast<char*>(data);
  while (bytes > 0) {
    ssize_t n = ::pread(file_, to, std::min(bytes, size_t(1) << 30), off_t(offset));
    if (n < 0 && errno == EINTR) continue;
    check<FileError>(n >= 0,
                     "cannot read " + path_ + ": " + std::generic_category().message(errno));
    check<FileError>(n > 0, path_ + " ends at byte", offset, "but", int64_t(bytes),
                     "more bytes are needed: it was cut short");
    to += n;
    offset += n;
    bytes -= size_t(n);
  }
}

std::string read_file(const std::string& path, int64_t most) {
  FileReader file(path);
  check<FileError>(file.size() <= most, path + " has", file.size(), "bytes; at most", most,
                   "are read here");
  std::string content(size_t(file.size()), '\0');
  file.read(content.data(), content.size(), 0);
  return content;
}

}  // namespace tg::io
