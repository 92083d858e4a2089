#include "tapegrad/core/io/atomic_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "tapegrad/core/error.h"

namespace tg::io {
namespace {

namespace fs = std::filesystem;

constexpr size_t kBufferBytes = size_t(1) << 16;
constexpr const char* kMark = ".unfinished-";

std::atomic<int64_t> writes_left{-1};  // see fail_writes_after

std::string reason(int error) { return std::generic_category().message(error); }

// write() of the system, less what a test takes away.
ssize_t write_some(int file, const char* data, size_t bytes) {
  int64_t left = writes_left.load(std::memory_order_relaxed);
  if (left >= 0) [[unlikely]] {
    if (left == 0) {
      errno = ENOSPC;
      return -1;
    }
    bytes = std::min(bytes, size_t(left));
    writes_left.fetch_sub(int64_t(bytes));
  }
  return ::write(file, data, bytes);
}

// The owner of a temporary file holds a lock on it, which the system drops when the owner dies:
// what can be locked is a leftover.
void remove_leftovers_of(const std::string& folder, const std::string& name) {
  std::string start = name + kMark;
  std::error_code ignored;
  for (fs::directory_iterator it(folder, ignored), end; !ignored && it != end;
       it.increment(ignored)) {
    std::string found = it->path().filename().string();
    if (found.rfind(start, 0) != 0) continue;
    int file = ::open(it->path().c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
    if (file < 0) continue;
    if (::flock(file, LOCK_EX | LOCK_NB) == 0) ::unlink(it->path().c_str());
    ::close(file);
  }
}

}  // namespace

void fail_writes_after(int64_t bytes) { writes_left.store(bytes < 0 ? -1 : bytes); }

AtomicFile::AtomicFile(const std::string& path) : path_(path) {
  // A link keeps pointing where it does: its target is replaced.
  fs::path target = path;
  std::error_code error;
  if (fs::is_symlink(target, error)) {
    target = fs::weakly_canonical(target, error);
    check<FileError>(!error, "cannot write " + path + ": " + error.message());
  }
  check<FileError>(target.has_filename(), "cannot write '" + path + "': not a file name");
  struct stat old {};
  bool exists = ::stat(target.c_str(), &old) == 0;
  check<FileError>(!exists || S_ISREG(old.st_mode),
                   "cannot write " + path + ": it exists and is not a regular file");
  path_ = target.string();
  folder_ = target.has_parent_path() ? target.parent_path().string() : ".";
  std::string name = target.filename().string();
  remove_leftovers_of(folder_, name);

  static std::atomic<uint64_t> counter{0};
  for (int attempt = 0; file_ < 0; ++attempt) {
    temporary_ = folder_ + "/" + name + kMark + std::to_string(::getpid()) + "-" +
                 std::to_string(counter.fetch_add(1));
    file_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file_ < 0 && errno == EEXIST && attempt < 100) continue;
    if (file_ < 0) {
      int reason_number = errno;
      temporary_.clear();
      check<FileError>(fs::is_directory(folder_, error),
                       "cannot write " + path_ + ": there is no folder " + folder_);
      failed("cannot create a file beside", reason_number);
    }
    // Somebody who cleans up may have been quicker than the lock.
    struct stat made {};
    if (::flock(file_, LOCK_EX | LOCK_NB) != 0 || ::fstat(file_, &made) != 0 ||
        made.st_nlink == 0) {
      ::close(file_);
      file_ = -1;
      check<FileError>(attempt < 100, "cannot write " + path_ + ": cannot lock a file beside it");
    }
  }
  if (exists) (void)::fchmod(file_, old.st_mode & 07777);
  buffer_.reserve(kBufferBytes);
}

AtomicFile::~AtomicFile() {
  if (file_ < 0) return;
  ::unlink(temporary_.c_str());
  ::close(file_);
}

void AtomicFile::failed(const char* what, int error) {
  fail<FileError>(std::string(what) + " " + path_ + ": " + reason(error));
}

void AtomicFile::write_out(const char* data, size_t bytes) {
  while (bytes > 0) {
    // The system takes at most about 2 GiB at once.
    ssize_t n = write_some(file_, data, std::min(bytes, size_t(1) << 30));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) failed("cannot write", errno);
    data += n;
    bytes -= size_t(n);
  }
}

void AtomicFile::flush() {
  write_out(buffer_.data(), buffer_.size());
  buffer_.clear();
}

void AtomicFile::write(const void* data, size_t bytes) {
  check<InternalError>(file_ >= 0, "a write after commit to", path_);
  auto* begin = static_cast<const char*>(data);
  if (buffer_.size() + bytes > kBufferBytes) flush();
  if (bytes >= kBufferBytes)
    write_out(begin, bytes);
  else
    buffer_.insert(buffer_.end(), begin, begin + bytes);
}

void AtomicFile::commit() {
  check<InternalError>(file_ >= 0, "a second commit to", path_);
  flush();
  if (::fsync(file_) != 0) failed("cannot write", errno);
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) failed("cannot replace", errno);
  int file = file_;
  file_ = -1;  // it has its name now: nothing to take back
  int closed = ::close(file);
  int close_error = errno;
  // The new name itself must reach the disk too. Some file systems have no such call.
  int folder = ::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder >= 0) {
    int synced = ::fsync(folder);
    int error = errno;
    ::close(folder);
    if (synced != 0 && error != EINVAL && error != ENOTSUP)
      failed("cannot bring to the disk the folder of", error);
  }
  if (closed != 0) failed("cannot close", close_error);
}

void remove_leftovers(const std::string& path) {
  fs::path p = path;
  remove_leftovers_of(p.has_parent_path() ? p.parent_path().string() : ".", p.filename().string());
}

void write_file(const std::string& path, std::string_view content) {
  AtomicFile file(path);
  file.write(content);
  file.commit();
}

}  // namespace tg::io
