#include "tapegrad/data/image_folder.h"

#include <algorithm>
#include <filesystem>

#include "tapegrad/autograd/ops/creation.h"
#include "tapegrad/core/io/file_kind.h"
#include "tapegrad/data/image.h"
#include "tapegrad/data/transforms.h"

namespace tg::data {
namespace fs = std::filesystem;

namespace {

bool is_picture(const fs::path& path) {
  std::string ending = path.extension().string();
  for (char& c : ending) c = char(std::tolower(static_cast<unsigned char>(c)));
  for (const char* known : {".png", ".jpg", ".jpeg", ".bmp", ".gif", ".ppm", ".pgm", ".tga"})
    if (ending == known) return true;
  return false;
}

std::vector<fs::path> sorted_entries(const fs::path& folder) {
  std::vector<fs::path> entries;
  std::error_code error;
  fs::directory_iterator it(folder, error);
  for (; !error && it != fs::directory_iterator(); it.increment(error))
    entries.push_back(it->path());
  check<FileError>(!error, folder.string() + ": cannot be listed: " + error.message());
  std::sort(entries.begin(), entries.end());
  return entries;
}

Tensor prepare(const std::string& path, const ImageFolderOptions& o, Generator* random) {
  ReadImageOptions read;
  read.channels = o.channels;
  Tensor image = to_float(read_image(path, read));
  if (o.image_size > 0) image = resize(image, o.image_size, o.image_size);
  if (random) {
    image = random_crop(image, std::max<int64_t>(1, image.size(1) / 8), *random);
    image = random_horizontal_flip(image, *random);
  }
  return o.mean.empty() ? image : normalize(image, o.mean, o.std);
}

}  // namespace

Tensor load_picture(const std::string& path, const ImageFolderOptions& options) {
  return prepare(path, options, nullptr);
}

ImageFolder::ImageFolder(const std::string& folder, Options options)
    : options_(std::move(options)) {
  check<ValueError>(options_.channels == 1 || options_.channels == 3,
                    "ImageFolder: channels must be 1 or 3, got", options_.channels);
  check<FileError>(io::kind_of(folder) == io::FileKind::folder, folder, ": no such folder");
  for (const fs::path& path : sorted_entries(folder)) {
    if (io::kind_of(path.string()) != io::FileKind::folder) continue;
    auto label = int64_t(classes_.size());
    classes_.push_back(path.filename().string());
    size_t before = files_.size();
    for (const fs::path& file : sorted_entries(path)) {
      if (!is_picture(file)) continue;
      io::FileKind kind = io::kind_of(file.string());
      check<FileError>(
          kind == io::FileKind::regular || kind == io::FileKind::folder,
          file.string() + ": is named as a picture, but is",
          kind == io::FileKind::none ? "a link to a file that is not there" : "not a regular file");
      if (kind == io::FileKind::folder) continue;
      files_.push_back(file.string());
      labels_.push_back(label);
    }
    check<FileError>(files_.size() > before, path.string(), ": the class holds no pictures");
  }
  check<FileError>(!classes_.empty(), folder,
                   ": holds no folders; pictures belong into one folder per class");
}

ImageAndLabel ImageFolder::get(int64_t index, Generator& random) const {
  Tensor image = prepare(name(index), options_, options_.augment ? &random : nullptr);
  return {image, scalar_tensor(labels_[size_t(index)], i64)};
}

std::string ImageFolder::name(int64_t index) const {
  check<IndexError>(index >= 0 && index < size(), "ImageFolder: there is no picture", index,
                    "among", size());
  return files_[size_t(index)];
}

}  // namespace tg::data
