"""Small made-up source trees, each with one fault that tools/check_layout.py has to find, and one without."""

import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import check_layout  # noqa: E402  (the path above leads to it)

SOUND = {
    "core/README.md": "",
    "core/tensor.h": "#pragma once\n#include <vector>\nclass Tensor;\n",
    "core/tensor.cpp": '#include "tapegrad/core/tensor.h"\n#include <zlib.h>\n',
    "kernels/README.md": "",
    "kernels/softmax.h": '#include "tapegrad/core/tensor.h"\n'
                         "namespace tg::kernels {\nvoid softmax(Cpu, View x, MutView y);\n}\n",
    "kernels/unary_ops.h": "namespace tg { struct Exp { template <class T> T f(T x) { return exp(Cpu(), x); } }; }\n",
    "kernels/cpu/softmax.cpp": '#include <Eigen/Core>\n#include "tapegrad/kernels/softmax.h"\n',
    "autograd/README.md": "",
    "autograd/tensor_methods.cpp": '#include "tapegrad/core/tensor.h"\n',
    "autograd/ops.h": '#include "tapegrad/autograd/ops/softmax.h"\n#include "tapegrad/autograd/ops/own.h"\n',
    "autograd/ops/inner.h": "namespace tg {\nTensor not_for_users(const Tensor& x);\n}\n",
    "autograd/ops/softmax.h": "namespace tg {\n"
                              "struct Options { Tensor weight(int i); };\n"
                              "inline Tensor helper_free = f();\n"
                              "Tensor softmax(const Tensor& x, int64_t dim);\n"
                              "std::tuple<Tensor, Tensor> topk(const Tensor& x, int64_t k);\n"
                              "Tensor operator+(const Tensor& a, const Tensor& b);\n"
                              "}\n",
    "autograd/ops/softmax.cpp": '#include "tapegrad/kernels/softmax.h"\n',
    "tests/README.md": "",
    "tests/ops/softmax.cpp": '#include "catch.h"\nRow a{.name = "softmax"};\nRow b{.name = "topk"};\n',
    "data/README.md": "",
    "data/images.cpp": "#define STB_IMAGE_IMPLEMENTATION\n#include <stb/stb_image.h>\n",
}


def breaches(changes):
    """What the checker says of the sound tree with some files changed (None takes one away)."""
    with tempfile.TemporaryDirectory() as root:
        for name, text in {**SOUND, **changes}.items():
            if text is not None:
                path = pathlib.Path(root) / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
        return check_layout.breaches(root)


class CheckLayout(unittest.TestCase):
    def finds(self, changes, *words):
        found = breaches(changes)
        self.assertEqual(len(found), 1, found)
        for word in words:
            self.assertIn(word, found[0])

    def test_sound_tree(self):
        self.assertEqual(breaches({}), [])

    def test_arrow_that_points_up(self):
        self.finds({"core/shape.cpp": '\n#include "tapegrad/autograd/ops.h"\n'}, "core/shape.cpp:2", "autograd")

    def test_arrow_that_points_beside(self):
        self.finds({"data/loader.cpp": '#include "tapegrad/nn/module.h"\n'}, "data/loader.cpp:1", "nn")
        self.finds({"optim/sgd.cpp": '#include "tapegrad/data/loader.h"\n', "optim/README.md": ""}, "optim", "data")

    def test_the_header_of_all_is_for_programs(self):
        self.finds({"nn/a.cpp": '#include "tapegrad/tapegrad.h"\n', "nn/README.md": ""}, "tapegrad/tapegrad.h")
        self.assertEqual(breaches({"tools/a.cpp": '#include "tapegrad/tapegrad.h"\n', "tools/README.md": ""}), [])

    def test_an_include_in_a_comment_is_none(self):
        self.assertEqual(breaches({"core/shape.cpp": '// #include "tapegrad/nn/module.h"\n'
                                                     '/*\n#include "tapegrad/nn/module.h"\n*/\n'}), [])

    def test_relative_include(self):
        self.finds({"core/shape.cpp": '#include "shape.h"\n'}, "tapegrad/core/")

    def test_library_in_a_public_header(self):
        self.finds({"nn/linear.h": "#include <Eigen/Core>\n", "nn/README.md": ""}, "<Eigen/Core>")
        self.finds({"data/idx.h": "#include <zlib.h>\n"}, "<zlib.h>")
        self.finds({"autograd/own.h": '#include "tapegrad/kernels/cpu/elementwise.h"\n'}, "kernels/cpu/elementwise.h")
        self.assertEqual(breaches({"kernels/cpu/packet.h": "#include <Eigen/Core>\n"}), [])

    def test_cuda_runtime_in_core_cuda_only(self):
        self.assertEqual(breaches({"core/cuda/stream.h": "#include <cuda_runtime.h>\n"}), [])
        self.finds({"core/stream.h": "#include <cuda_runtime.h>\n"}, "<cuda_runtime.h>")
        self.finds({"core/cuda/stream.h": "#include <cudnn.h>\n"}, "<cudnn.h>")

    def test_long_file(self):
        self.assertEqual(breaches({"core/long.cpp": "int x;\n" * 600}), [])
        self.finds({"core/long.cpp": "int x;\n" * 601}, "601 lines")

    def test_operator_without_a_row(self):
        self.finds({"tests/ops/softmax.cpp": 'Row a{.name = "softmax"};\n'}, "topk", "autograd/ops/softmax.h")
        self.finds({"autograd/ops/own.h": "namespace tg {\n/* two\nlines */\nTensor lost(\n    const Tensor& x);\n}\n"},
                   "lost")
        self.finds({"autograd/ops/own.h": "namespace tg {\nTensor& lost_(Tensor& x);\n}\n"}, "lost_")

    def test_a_form_in_place_may_be_handed_to_a_row(self):
        in_place = {"autograd/ops/own.h": "namespace tg {\nTensor& softmax_(Tensor& x);\n}\n"}
        row = SOUND["tests/ops/softmax.cpp"]
        self.assertEqual(breaches({**in_place, "tests/ops/softmax.cpp": row + "Row c{.inplace = softmax_};\n"}), [])
        self.finds({**in_place, "tests/ops/softmax.cpp": row + "Row c{.inplace = softmax};\n"}, "softmax_")

    def test_what_makes_tensors_from_nothing_is_called_by_some_test(self):
        zeros = {"autograd/ops/own.h": "namespace tg {\nTensor zeros(const Shape& shape);\n}\n"}
        self.finds(zeros, "zeros", "called by no test")
        self.assertEqual(breaches({**zeros, "tests/core/a.cpp": "auto z = zeros({2});\n"}), [])

    def test_kernel_interface_without_its_kernels(self):
        self.finds({"kernels/cpu/softmax.cpp": None}, "kernels/cpu/softmax.cpp")
        self.assertEqual(breaches({"kernels/cpu/softmax.cpp": None, "kernels/cpu/softmax/rows.cpp": ""}), [])
        self.finds({"kernels/cuda/other.cu": "",
                    "kernels/softmax.h": "void softmax(Cpu, View);\nvoid softmax(Cuda, View);\n"},
                   "kernels/cuda/softmax.cu")
        self.assertEqual(breaches({"kernels/cuda/softmax.cu": "",
                                   "kernels/softmax.h": "void softmax(Cpu, View);\nvoid softmax(Cuda, View);\n"}), [])

    def test_macros(self):
        self.finds({"nn/module.h": "#define TG_MODULE(...) 1\n#define TG_LOOP 2\n", "nn/README.md": ""}, "TG_LOOP")
        self.assertEqual(breaches({"kernels/simt/builtins.h": "#define __shared__ static thread_local\n"}), [])
        self.finds({"kernels/cuda/a.cuh": "#define __shared__ static\n"}, "__shared__")

    def test_python_at_run_time(self):
        self.finds({"tools/plot.cpp": 'int main() { system("python3 plot.py"); }\n', "tools/README.md": ""}, "Python")
        self.assertEqual(breaches({"tools/plot.cpp": "// as in python\n", "tools/README.md": ""}), [])
        self.finds({"tools/test.sh": "python3 x.py\n", "tools/README.md": ""}, "tools/test.sh:1")

    def test_unfinished_work(self):
        self.finds({"core/a.cpp": "// TO" "DO: later\n"}, "core/a.cpp:1")

    def test_top_level(self):
        self.finds({"leftover.whl": ""}, "leftover.whl", "top level")
        self.finds({"scripts/a.sh": ""}, "scripts")
        self.assertEqual(breaches({"LICENSE": "", ".ci/run": "", ".gitignore": ""}), [])

    def test_folder_without_its_chapter(self):
        self.finds({"core/README.md": None}, "core/README.md")

    def test_tape_members_have_a_home(self):
        self.finds({"autograd/tensor_methods.cpp": None}, "autograd/tensor_methods.cpp")


if __name__ == "__main__":
    unittest.main()
