#include "tapegrad/core/io/safetensors_header.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <set>

namespace tg::io {
namespace {

using Json = nlohmann::json;

struct StoredName {
  DType dtype;
  const char* name;
};
constexpr StoredName kNames[] = {{DType::f32, "F32"},     {DType::f64, "F64"}, {DType::f16, "F16"},
                                 {DType::bf16, "BF16"},   {DType::i8, "I8"},   {DType::u8, "U8"},
                                 {DType::i16, "I16"},     {DType::i32, "I32"}, {DType::i64, "I64"},
                                 {DType::boolean, "BOOL"}};

// Follows the text token by token and accepts this form alone, so that a hostile text cannot make
// the reader build anything larger than itself:
// {"__metadata__": {"key": "text"}, "name": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}
class HeaderHandler : public Json::json_sax_t {
 public:
  explicit HeaderHandler(const std::string& path) : path_(path) {}
  SafetensorsHeader header;

  bool null() override { unexpected(); }
  bool boolean(bool) override { unexpected(); }
  bool number_float(double, const std::string&) override { unexpected(); }
  bool binary(binary_t&) override { unexpected(); }
  bool number_integer(int64_t v) override { return number(v); }
  bool number_unsigned(uint64_t v) override {
    if (v > uint64_t(INT64_MAX)) wrong("a number is too large");
    return number(int64_t(v));
  }

  bool string(std::string& text) override {
    if (place_ == Place::metadata) {
      if (!header.metadata.emplace(key_, text).second) wrong("'" + key_ + "' stands twice");
    } else if (place_ == Place::tensor && key_ == "dtype" && !dtype_) {
      dtype_ = dtype_named(text);
    } else {
      unexpected();
    }
    return true;
  }

  bool start_object(size_t) override {
    if (place_ == Place::outside) {
      place_ = Place::top;
    } else if (place_ == Place::top) {
      if (!names_.insert(key_).second) wrong("'" + key_ + "' stands twice");
      place_ = key_ == "__metadata__" ? Place::metadata : Place::tensor;
      name_ = key_;
      dtype_.reset();
      numbers_[0].reset();
      numbers_[1].reset();
    } else {
      unexpected();
    }
    return true;
  }
  bool key(std::string& text) override {
    key_ = std::move(text);
    return true;
  }
  bool end_object() override {
    if (place_ == Place::tensor) add_tensor();
    place_ = place_ == Place::top ? Place::outside : Place::top;
    return true;
  }

  bool start_array(size_t) override {
    bool shape = key_ == "shape";
    if (place_ != Place::tensor || (!shape && key_ != "data_offsets")) unexpected();
    array_ = &numbers_[shape ? 0 : 1];
    if (*array_) wrong("'" + key_ + "' stands twice in '" + name_ + "'");
    array_->emplace();
    place_ = Place::array;
    return true;
  }
  bool end_array() override {
    place_ = Place::tensor;
    return true;
  }

  bool parse_error(size_t position, const std::string&, const Json::exception&) override {
    wrong("no JSON at byte " + std::to_string(position));
  }

 private:
  enum class Place { outside, top, metadata, tensor, array };

  [[noreturn]] void wrong(const std::string& what) const {
    fail<FileError>(path_ + ": bad safetensors header: " + what);
  }
  [[noreturn]] void unexpected() const {
    wrong("what stands at '" + key_ + "' does not belong there");
  }
  bool number(int64_t v) {
    if (place_ != Place::array) unexpected();
    if (v < 0) wrong("a negative number in '" + name_ + "'");
    if (int((*array_)->size()) == kMaxRank)
      wrong("'" + name_ + "' has more than " + std::to_string(kMaxRank) + " dimensions");
    (*array_)->push_back(v);
    return true;
  }
  DType dtype_named(const std::string& text) const {
    for (const StoredName& n : kNames)
      if (text == n.name) return n.dtype;
    wrong("'" + name_ + "' has the dtype " + text + ", which tapegrad does not have");
  }
  void add_tensor() {
    const auto &shape = numbers_[0], &offsets = numbers_[1];
    if (!dtype_ || !shape || !offsets || offsets->size() != 2)
      wrong("'" + name_ + "' needs dtype, shape and two data_offsets");
    header.entries.push_back({name_, *dtype_, Shape(*shape), (*offsets)[0], (*offsets)[1]});
  }

  const std::string& path_;
  Place place_ = Place::outside;
  std::set<std::string> names_;
  std::string key_, name_;
  std::optional<DType> dtype_;
  std::optional<std::vector<int64_t>> numbers_[2];  // shape, data_offsets
  std::optional<std::vector<int64_t>>* array_ = nullptr;
};

std::string quoted(const std::string& text) {
  try {
    return Json(text).dump();
  } catch (const Json::exception&) {
    fail<ValueError>("save_safetensors: a name or a metadata text is not UTF-8");
  }
}

std::string list(const int64_t* begin, const int64_t* end) {
  std::string text = "[";
  for (const int64_t* p = begin; p != end; ++p)
    text += (p == begin ? "" : ",") + std::to_string(*p);
  return text + "]";
}

}  // namespace

SafetensorsHeader parse_safetensors_header(const std::string& text, const std::string& path) {
  HeaderHandler handler(path);
  check<FileError>(!text.empty() && text[0] == '{',
                   path + ": not a safetensors file: the header does not begin with {");
  Json::sax_parse(text, &handler);
  return std::move(handler.header);
}

std::string write_safetensors_header(const SafetensorsHeader& header) {
  std::string text = "{";
  if (!header.metadata.empty()) {
    text += "\"__metadata__\":{";
    for (const auto& [key, value] : header.metadata) {
      if (text.back() != '{') text += ',';
      text += quoted(key) + ":" + quoted(value);
    }
    text += '}';
  }
  for (const SafetensorsFile::Entry& e : header.entries) {
    if (text.back() != '{') text += ',';
    const int64_t offsets[2] = {e.begin, e.end};
    const char* dtype = nullptr;
    for (const StoredName& n : kNames)
      if (n.dtype == e.dtype) dtype = n.name;
    text += quoted(e.name) + ":{\"dtype\":\"" + dtype +
            "\",\"shape\":" + list(e.shape.begin(), e.shape.end()) +
            ",\"data_offsets\":" + list(offsets, offsets + 2) + "}";
  }
  text += '}';
  text.resize((text.size() + 7) / 8 * 8, ' ');
  return text;
}

}  // namespace tg::io
