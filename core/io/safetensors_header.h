// The JSON header of a safetensors file. Private to core/io.
#pragma once
#include <string>
#include <vector>

#include "tapegrad/core/io/safetensors.h"

namespace tg::io {

struct SafetensorsHeader {
  std::vector<SafetensorsFile::Entry> entries;  // in the order of the text
  Metadata metadata;
};

// Strict: nothing but what the format names, each name once. FileError naming `path`. The data is
// not looked at: offsets are checked by who knows how long it is.
SafetensorsHeader parse_safetensors_header(const std::string& text, const std::string& path);

// The entries with `begin` and `end` set; padded with spaces to a multiple of 8 bytes.
std::string write_safetensors_header(const SafetensorsHeader& header);

}  // namespace tg::io
