#include "tapegrad/core/io/file_kind.h"

#include <sys/stat.h>

#include <cerrno>
#include <system_error>

#include "tapegrad/core/error.h"

namespace tg::io {

FileKind kind_of(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) {
    check<FileError>(errno == ENOENT || errno == ENOTDIR,
                     path + ": cannot be looked at: " + std::generic_category().message(errno));
    return FileKind::none;
  }
  if (S_ISREG(info.st_mode)) return FileKind::regular;
  return S_ISDIR(info.st_mode) ? FileKind::folder : FileKind::other;
}

}  // namespace tg::io
