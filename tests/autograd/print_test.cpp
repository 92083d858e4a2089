#include "tapegrad/autograd/print.h"

#include <algorithm>
#include <clocale>
#include <cmath>
#include <sstream>

#include "catch.h"
#include "tapegrad/autograd/ops/creation.h"
#include "tapegrad/autograd/ops/views.h"

using namespace tg;

TEST_CASE("print: small tensors", "[print]") {
  CHECK(to_string(Tensor()) == "tensor(undefined)");
  CHECK(to_string(scalar_tensor(3.25)) == "tensor(3.2500)");
  CHECK(to_string(tensor({1, 2, -3})) == "tensor([ 1.,  2., -3.])");
  CHECK(to_string(tensor({{1, 0.5}, {2, 1.5}}, f64)) ==
        "tensor([[1.0000, 0.5000],\n        [2.0000, 1.5000]], dtype=f64)");
  CHECK(to_string(tensor({1, NAN, -INFINITY})) == "tensor([  1.,  nan, -inf])");
  CHECK(to_string(tensor({1e-5, 1})) == "tensor([1.0000e-05, 1.0000e+00])");
  CHECK(to_string(tensor({0, 1e9})) == "tensor([0.0000e+00, 1.0000e+09])");
  CHECK(to_string(arange(3)) == "tensor([0, 1, 2])");
  CHECK(to_string(tensor({10, -1}, i8)) == "tensor([10, -1], dtype=i8)");
  CHECK(to_string(tensor(std::vector<bool>{true, false}, {2})) == "tensor([ true, false])");
  CHECK(to_string(zeros({0, 3})) == "tensor([], shape=[0,3])");
  CHECK(to_string(ones({2}).requires_grad_()) == "tensor([1., 1.], requires_grad=true)");
  CHECK(to_string(zeros({2, 1, 2})) == "tensor([[[0., 0.]],\n\n        [[0., 0.]]])");
}

TEST_CASE("print: long rows wrap, large tensors are cut", "[print]") {
  std::string text = to_string(arange(40));
  CHECK(text.find("\n        19, ") == std::string::npos);
  for (size_t begin = 0; begin < text.size();) {
    size_t end = std::min(text.find('\n', begin), text.size());
    CHECK(end - begin <= 82);
    begin = end + 1;
  }
  CHECK(to_string(arange(2000)) == "tensor([   0,    1,    2, ..., 1997, 1998, 1999])");
  CHECK(to_string(reshape(arange(4000), {1000, 4})) ==
        "tensor([[   0,    1,    2,    3],\n        [   4,    5,    6,    7],\n"
        "        [   8,    9,   10,   11],\n        ...,\n"
        "        [3988, 3989, 3990, 3991],\n        [3992, 3993, 3994, 3995],\n"
        "        [3996, 3997, 3998, 3999]])");
  std::ostringstream stream;
  stream << tensor({1.5});
  CHECK(stream.str() == "tensor([1.5000])");
}
