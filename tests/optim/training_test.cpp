// Training steps of whole models: the same bits for any number of threads, and every byte of
// memory under its purpose.
#include <cstring>
#include <filesystem>

#include "nn/reference.h"
#include "tapegrad/core/memory.h"
#include "tapegrad/core/parallel.h"
#include "tapegrad/core/split_count.h"
#include "tapegrad/data/loader.h"
#include "tapegrad/data/mnist.h"
#include "tapegrad/nn/models/cnn.h"
#include "tapegrad/nn/models/gpt.h"
#include "tapegrad/nn/models/resnet.h"
#include "tapegrad/optim/optim.h"

using namespace tg;

namespace {

struct KeepThreads {
  int before = num_threads();
  ~KeepThreads() { set_num_threads(before); }
};

void append(std::string& bytes, const Tensor& x) {
  Tensor y = x.detach().contiguous();
  bytes.append(static_cast<const char*>(y.read().data), size_t(y.numel()) * size_of(y.dtype()));
}

// All bytes of the model after three steps, and the losses on the way.
template <class M>
std::string three_steps(M model, const Tensor& x, const Tensor& target) {
  optim::AdamW optimizer(model, {.lr = 1e-3});
  std::string bytes;
  for (int i = 0; i < 3; ++i) {
    optimizer.zero_grad();
    Tensor logits = model(x);
    Tensor loss = cross_entropy(reshape(logits, {-1, logits.shape().back()}), target);
    loss.backward();
    optim::clip_grad_norm_(model, 1);
    optimizer.step();
    append(bytes, loss);
  }
  for (auto& [name, t] : model.state_dict()) append(bytes, t);
  return bytes;
}

template <class Train>
void check_threads(Train train) {
  KeepThreads keep;
  std::string first;
  for (int threads : {1, 2, 3, 7}) {
    set_num_threads(threads);
    manual_seed(5);
    SplitCount before = split_count();
    std::string bytes = train();
    SplitCount now = split_count();
    INFO(threads << " threads");
    // Every step cuts its products, at least: forward, and backward to inputs and weights.
    if (threads > 1) CHECK(now.jobs - before.jobs >= 3 * 6);
    if (threads == 1) first = bytes;
    CHECK((bytes == first));
  }
}

}  // namespace

TEST_CASE("three steps of a convolutional network have the same bits for any number of threads",
          "[optim][threads]") {
  check_threads([] {
    nn::CNN model({.dropout = true});
    Tensor x = randn({12, 1, 28, 28}), target = randint(0, 10, {12});
    return three_steps(std::move(model), x, target);
  });
}

TEST_CASE("three steps of a transformer have the same bits for any number of threads",
          "[optim][threads]") {
  check_threads([] {
    nn::GPT model(
        {.vocabulary = 65, .context = 96, .layers = 2, .heads = 3, .dim = 96, .dropout = 0.1});
    Tensor tokens = randint(0, 65, {4, 96}), target = randint(0, 65, {4 * 96});
    return three_steps(std::move(model), tokens, target);
  });
}

namespace {

// The purposes sum to what is live, and less than a twentieth is `other`.
void check_purposes(const char* when, const MemoryStats& before) {
  MemoryStats now = memory_stats();
  int64_t sum = 0;
  for (int64_t bytes : now.by_purpose) sum += bytes;
  INFO(when << "\n" << memory_summary());
  CHECK(sum == now.live);
  int64_t live = now.live - before.live;
  int64_t other = now[Purpose::other] - before[Purpose::other];
  CHECK(live > 0);
  CHECK(20 * other < live);
}

// Steps of the quickstart's model with its loader and optimizer.
void train_and_check(data::ImagesAndLabels images, const MemoryStats& before, int workers) {
  auto dataset = std::make_shared<data::Mnist>(std::move(images));
  data::DataLoader<data::ImageAndLabel> loader(
      dataset, {.batch_size = 64, .shuffle = true, .workers = workers, .seed = 1});
  nn::CNN model;
  optim::AdamW optimizer(model, {.lr = 1e-3});
  optim::CosineLR schedule(optimizer, {.total_steps = 20, .warmup_steps = 2});
  check_purposes("before the first step", before);
  int steps = 0;
  for (auto [x, y] : loader) {
    optimizer.zero_grad();
    check_purposes("with a batch", before);
    Tensor logits = model(x);
    Tensor loss = cross_entropy(logits, y);
    check_purposes("after the forward", before);
    CHECK(memory_stats()[Purpose::saved] > 64 * 26 * 26 * 32 * 4);  // the first activation alone
    loss.backward();
    check_purposes("after the backward", before);
    optim::clip_grad_norm_(model, 1);
    optimizer.step();
    schedule.step();
    check_purposes("after the step", before);
    MemoryStats now = memory_stats();
    int64_t parameters = model.parameter_count() * 4;
    CHECK(now[Purpose::parameter] - before[Purpose::parameter] == parameters);
    CHECK(now[Purpose::gradient] - before[Purpose::gradient] == parameters);
    CHECK(now[Purpose::optimizer] - before[Purpose::optimizer] == 2 * parameters);
    if (++steps == 5) break;
  }
}

}  // namespace

namespace {

// Live bytes and nodes of the tape after a step.
struct Held {
  int64_t bytes, nodes;
  bool operator==(const Held&) const = default;
};

template <class M>
void check_no_growth(M& model, const Function<Tensor(int)>& loss_of_step, int steps) {
  optim::AdamW optimizer(model, {.lr = 1e-3});
  Held early{}, now{};
  for (int i = 1; i <= steps && (i <= 11 || now == early); ++i) {
    optimizer.zero_grad();
    loss_of_step(i).backward();
    optim::clip_grad_norm_(model, 1);
    optimizer.step();
    now = {memory_stats().live, live_node_count()};
    if (i == 10) early = now;
  }
  CHECK(now.bytes == early.bytes);
  CHECK(now.nodes == early.nodes);
}

}  // namespace

TEST_CASE("a thousand steps hold no more memory than ten", "[optim][memory]") {
  manual_seed(3);
  nn::GPT gpt({.vocabulary = 17, .context = 8, .layers = 2, .heads = 2, .dim = 16, .dropout = 0.1});
  check_no_growth(
      gpt,
      [&](int) {
        Tensor tokens = randint(0, 17, {2, 8});
        return cross_entropy(reshape(gpt(tokens), {16, 17}), randint(0, 17, {16}));
      },
      1000);
  nn::CNN cnn({.image_size = 8, .dropout = true});
  check_no_growth(
      cnn,
      [&](int) {
        return cross_entropy(cnn(randn({2, 1, 8, 8})), randint(0, 10, {2}));
      },
      1000);
  nn::ResNet18 resnet;
  check_no_growth(
      resnet,
      [&](int) {
        return cross_entropy(resnet(randn({2, 3, 8, 8})), randint(0, 10, {2}));
      },
      14);
}

TEST_CASE("in a training step the purposes sum to live and little is other", "[optim][memory]") {
  MemoryStats before = memory_stats();
  for (int workers : {0, 2}) {
    manual_seed(1);
    data::ImagesAndLabels made;
    made.images = (rand({600, 28, 28}) * 255).to(u8);
    made.labels = randint(0, 10, {600});
    train_and_check(std::move(made), before, workers);
  }
  CHECK(memory_stats().by_purpose == before.by_purpose);
}

TEST_CASE("the same on Fashion-MNIST, where it is installed", "[optim][memory]") {
  if (!std::filesystem::exists(data::kFashionMnistFolder)) {
    WARN("not run: the data set is not installed");
    return;
  }
  MemoryStats before = memory_stats();
  train_and_check(data::read_mnist(data::kFashionMnistFolder, true), before, 1);
  CHECK(memory_stats().by_purpose == before.by_purpose);
}
