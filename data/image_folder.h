// A folder of pictures with one folder per class: folder/cat/1.png, folder/dog/2.jpg.
#pragma once
#include <string>
#include <vector>

#include "tapegrad/data/dataset.h"

namespace tg::data {

struct ImageFolderOptions {
  int64_t image_size = 0;  // pictures are resized to this square; 0: they stay as they are
  int channels = 3;
  std::vector<double> mean = {},
                      std = {};  // per channel, of pixels in [0, 1]; empty: not normalised
  bool augment = false;          // random crop with an eighth of padding, random flip
};

// Samples: image f32 [C,H,W], label i64, rank 0. Classes are the sorted names of the folders; files
// with another ending than a picture's are passed over. FileError for a folder that is missing, has
// no classes, or a class without pictures.
class ImageFolder : public Dataset<ImageAndLabel> {
 public:
  using Options = ImageFolderOptions;
  explicit ImageFolder(const std::string& folder, Options options = {});
  int64_t size() const override { return int64_t(files_.size()); }
  ImageAndLabel get(int64_t index, Generator& random) const override;
  std::string name(int64_t index) const override;  // its path
  const std::vector<std::string>& classes() const { return classes_; }
  const std::vector<int64_t>& labels() const { return labels_; }

 private:
  Options options_;
  std::vector<std::string> classes_, files_;
  std::vector<int64_t> labels_;
};

// One picture file prepared in the same way, without augmentation: f32 [C,H,W].
Tensor load_picture(const std::string& path, const ImageFolderOptions& options);

}  // namespace tg::data
