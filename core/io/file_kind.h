// What lies at a path.
#pragma once
#include <string>

namespace tg::io {

enum class FileKind { none, regular, folder, other };

// Links are followed. FileError with the path and the system's reason where that cannot be told, as
// in a folder that must not be entered or a link that leads in a circle.
FileKind kind_of(const std::string& path);

}  // namespace tg::io
