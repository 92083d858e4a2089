#include "tapegrad/optim/checkpoint.h"

#include <zlib.h>

#include <array>
#include <span>

#include "tapegrad/autograd/ops/creation.h"
#include "tapegrad/core/io/safetensors.h"

namespace tg::optim {

namespace {

constexpr const char* kFormat = "tapegrad checkpoint 2";
constexpr const char* kChecksum = "checksum";

void put(Metadata& metadata, const std::string& prefix, const State& state) {
  for (const auto& [key, value] : state.values) metadata[prefix + key] = value;
}

// Of everything that a file holds but this sum: the CRC-32s of its texts and tensors, each with its
// name, added up, so that their order does not matter. A flipped bit in a weight would otherwise go
// unseen, and a run would go on from it.
class Checksum {
 public:
  explicit Checksum(const Metadata& metadata) {
    for (const auto& [key, value] : metadata)
      if (key != kChecksum) add(key + '\0', value.data(), value.size());
  }
  void add(const std::string& name, const Tensor& x) {
    Tensor values = contiguous(x);
    add(name + '\0' + to_text(x), values.read().data,
        size_t(values.numel()) * size_of(values.dtype()));
  }
  std::string text() const { return std::to_string(sum_); }

 private:
  void add(const std::string& name, const void* data, size_t bytes) {
    uLong crc = crc32_z(0, reinterpret_cast<const Bytef*>(name.data()), name.size());
    if (bytes > 0) crc = crc32_z(crc, static_cast<const Bytef*>(data), bytes);
    sum_ += uint32_t(crc);
  }
  uint32_t sum_ = 0;
};

// The texts under a prefix, which is taken off.
State texts_below(const Metadata& metadata, const std::string& prefix) {
  State state;
  for (auto at = metadata.lower_bound(prefix); at != metadata.end(); ++at) {
    if (!at->first.starts_with(prefix)) break;
    state.set(at->first.substr(prefix.size()), at->second);
  }
  return state;
}

uint64_t unsigned_number(const State& state, const std::string& name) {
  return uint64_t(state.integer(name));  // written as a signed number: the bits are the same
}

State generator_state(const Generator& generator) {
  RandomState r = generator.state();
  State state;
  state.set("seed", std::to_string(int64_t(r.seed)));
  state.set("offset", std::to_string(int64_t(r.offset)));
  state.set("stream", std::to_string(int64_t(r.stream)));
  return state;
}

Progress progress_of(const Metadata& metadata) {
  State state = texts_below(metadata, "progress.");
  Progress p;
  p.epoch = state.integer("epoch");
  p.step = state.integer("step");
  p.position = state.integer("position");
  for (auto& [key, value] : texts_below(metadata, "user.").values) p.user[key] = value;
  return p;
}

void check_format(const SafetensorsFile& file) {
  auto found = file.metadata().find("format");
  check(found != file.metadata().end() && found->second == kFormat,
        "it is no checkpoint of this version; weights alone are read with load_safetensors");
}

// The tensors below a prefix, which is taken off; filled where it is wanted.
struct Wanted {
  std::string prefix;
  bool wanted;
  NamedTensors tensors;
};

// Reads the file once: all of it goes into the checksum, what is wanted is kept.
void read_content(const SafetensorsFile& file, std::span<Wanted* const> parts) {
  check_format(file);
  Checksum sum(file.metadata());
  for (const auto& entry : file.entries()) {
    Tensor x = file.read(entry);
    sum.add(entry.name, x);
    for (Wanted* part : parts)
      if (part->wanted && entry.name.starts_with(part->prefix))
        part->tensors.emplace_back(entry.name.substr(part->prefix.size()), x);
  }
  auto found = file.metadata().find(kChecksum);
  check(found != file.metadata().end() && found->second == sum.text(),
        "it is damaged: its content does not fit its checksum");
}

// What a file gives for the parts that are wanted. Read and checked at once, then taken over.
class Loaded {
 public:
  Loaded(const SafetensorsFile& file, const CheckpointParts& parts, LoadCheckpointOptions options)
      : parts_(parts), options_(options) {
    const Metadata& metadata = file.metadata();
    Wanted model{"model.", parts.model != nullptr, {}};
    Wanted optimizer{"optimizer.", parts.optimizer != nullptr, {}};
    read_content(file, std::array{&model, &optimizer});
    progress = progress_of(metadata);
    if (parts.model) {
      model_ = std::move(model.tensors);
      check(!model_.empty(), "it holds no model");
      parts.model->check_state_dict(model_);
    }
    if (parts.optimizer) {
      optimizer_ = texts_below(metadata, "optimizer.");
      check(!optimizer_.values.empty(), "it holds no optimizer");
      optimizer_.tensors = std::move(optimizer.tensors);
      parts.optimizer->check_state_dict(optimizer_);
    }
    if (parts.schedule) {
      schedule_ = texts_below(metadata, "schedule.");
      check(!schedule_.values.empty(), "it holds no schedule");
      parts.schedule->check_state_dict(schedule_, options.keep_schedule_settings);
    }
    if (parts.scaler) {
      scaler_ = texts_below(metadata, "scaler.");
      check(!scaler_.values.empty(), "it holds no gradient scaler");
      parts.scaler->check_state_dict(scaler_);
    }
    for (const auto& [name, generator] : parts.generators) {
      State state = texts_below(metadata, "generator." + name + ".");
      check(!state.values.empty(), "it holds no generator named", name);
      generators_.push_back({generator,
                             {unsigned_number(state, "seed"), unsigned_number(state, "offset"),
                              unsigned_number(state, "stream")}});
    }
  }

  void take() {
    if (parts_.model) parts_.model->load_state_dict(model_);
    if (parts_.optimizer) parts_.optimizer->load_state_dict(optimizer_);
    if (parts_.schedule)
      parts_.schedule->load_state_dict(schedule_, options_.keep_schedule_settings);
    if (parts_.scaler) parts_.scaler->load_state_dict(scaler_);
    for (const auto& [generator, state] : generators_) generator->set_state(state);
  }

  Progress progress;

 private:
  const CheckpointParts& parts_;
  LoadCheckpointOptions options_;
  NamedTensors model_;
  State optimizer_, schedule_, scaler_;
  std::vector<std::pair<Generator*, RandomState>> generators_;
};

// Runs fn; an error inside names the file.
template <class F>
auto naming_file(const std::string& path, F&& fn) {
  try {
    return fn();
  } catch (const FileError&) {
    throw;  // names it already
  } catch (const Error& e) {
    fail<FileError>("checkpoint", path + ":", std::string(e.what()));
  }
}

}  // namespace

void save_checkpoint(const std::string& path, const CheckpointParts& parts,
                     const Progress& progress) {
  NamedTensors tensors;
  Metadata metadata;
  metadata["format"] = kFormat;
  metadata["progress.epoch"] = std::to_string(progress.epoch);
  metadata["progress.step"] = std::to_string(progress.step);
  metadata["progress.position"] = std::to_string(progress.position);
  for (const auto& [key, value] : progress.user) metadata["user." + key] = value;
  if (parts.model) {
    for (const auto& [name, x] : parts.model->named_parameters())
      tensors.emplace_back("model." + name, x.detach().to(kCpuDevice));
    for (const auto& [name, x] : parts.model->named_buffers())
      tensors.emplace_back("model." + name, x.detach().to(kCpuDevice));
  }
  if (parts.optimizer) {
    State state = parts.optimizer->state_dict();
    put(metadata, "optimizer.", state);
    for (const auto& [name, x] : state.tensors)
      tensors.emplace_back("optimizer." + name, x.to(kCpuDevice));
  }
  if (parts.schedule) put(metadata, "schedule.", parts.schedule->state_dict());
  if (parts.scaler) put(metadata, "scaler.", parts.scaler->state_dict());
  for (const auto& [name, generator] : parts.generators)
    put(metadata, "generator." + name + ".", generator_state(*generator));
  Checksum sum(metadata);
  for (const auto& [name, x] : tensors) sum.add(name, x);
  metadata[kChecksum] = sum.text();
  save_safetensors(path, tensors, metadata);
}

Progress load_checkpoint(const std::string& path, const CheckpointParts& parts,
                         LoadCheckpointOptions options) {
  return naming_file(path, [&] {
    Loaded loaded(SafetensorsFile(path), parts, options);
    loaded.take();
    return loaded.progress;
  });
}

Progress read_progress(const std::string& path) {
  return naming_file(path, [&] {
    SafetensorsFile file(path);
    read_content(file, {});
    return progress_of(file.metadata());
  });
}

}  // namespace tg::optim
