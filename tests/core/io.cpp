// Files: npy, safetensors, and both readers against damaged files.
#include <algorithm>
#include <cstring>

#include "catch.h"
#include "damage.h"
#include "error_text.h"
#include "tapegrad/autograd/ops/comparison.h"
#include "tapegrad/core/io/npy.h"
#include "tapegrad/core/io/safetensors.h"
#include "temporary_folder.h"

using namespace tg;
using test::error_text;
using namespace std::string_literals;

namespace {

template <class T>
Tensor tensor(const Shape& shape, std::initializer_list<T> values) {
  Tensor x = empty(shape, dtype_of<T>());
  std::copy(values.begin(), values.end(), x.mutable_data<T>());
  return x;
}

std::string npy(const std::string& dictionary, const std::string& data, char version = 1) {
  std::string length = version == 1 ? std::string{char(dictionary.size()), '\0'}
                                    : std::string{char(dictionary.size()), '\0', '\0', '\0'};
  return "\x93NUMPY"s + version + '\0' + length + dictionary + data;
}

std::string safetensors(const std::string& header, const std::string& data) {
  uint64_t length = header.size();
  return std::string(reinterpret_cast<char*>(&length), 8) + header + data;
}

}  // namespace

TEST_CASE("npy files that NumPy wrote are read") {
  TemporaryFolder folder;
  auto load = [&](const std::string& bytes) { return load_npy(folder.write("x.npy", bytes)); };
  // Written by numpy.lib.format.write_array; the padding is left out.
  CHECK(equal(load(npy("{'descr': '>f8', 'fortran_order': False, 'shape': (2, 2), }  \n",
                       "?\xf8\0\0\0\0\0\0\xc0\0\0\0\0\0\0\0@\x08\0\0\0\0\0\0@\x10\0\0\0\0\0\0"s)),
              tensor<double>({2, 2}, {1.5, -2, 3, 4})));
  Tensor fortran = load(npy("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }\n",
                            "\0\0\0\0\0\0@@\0\0\x80?\0\0\x80@\0\0\0@\0\0\xa0@"s));
  CHECK(fortran.strides() == Shape{1, 2});  // [[0, 1, 2], [3, 4, 5]]
  CHECK(fortran.read().as<float>()[1] == 3);
  CHECK(fortran.read().as<float>()[2] == 1);
  CHECK(
      equal(load(npy("{'descr': '|b1', 'fortran_order': False, 'shape': (3,), }\n", "\1\0\1"s, 2)),
            tensor<bool>({3}, {true, false, true})));
  CHECK(equal(load(npy("{'descr': '<i2', 'fortran_order': False, 'shape': (), }\n", "\7\0"s, 3)),
              tensor<int16_t>({}, {7})));
  CHECK(load(npy("{'descr': '<f2', 'fortran_order': False, 'shape': (0, 3), }\n", "")).shape() ==
        Shape{0, 3});
  CHECK(
      load(npy("{\"shape\":(1L,),\"descr\":\"|u1\",\"fortran_order\":False}\n", "\xff")).dtype() ==
      u8);
  // A byte of a bool that is neither 0 nor 1 counts as true.
  CHECK(load(npy("{'descr': '|b1', 'fortran_order': False, 'shape': (1,), }\n", "\x7f"))
            .read()
            .as<unsigned char>()[0] == 1);
}

TEST_CASE("npy files come back as they were") {
  TemporaryFolder folder;
  std::string path = folder / "x.npy";
  for (const Tensor& x : {tensor<float>({2, 3}, {1, 2, 3, 4, 5, 6}), tensor<double>({}, {0.1}),
                          tensor<int64_t>({2}, {INT64_MIN, INT64_MAX}), tensor<int8_t>({1}, {-128}),
                          tensor<bool>({2}, {true, false}),
                          tensor<Half>({2}, {Half(1.5f), Half(-2.0f)}), empty({3, 0, 2}, i32)}) {
    save_npy(path, x);
    CHECK(equal(load_npy(path), x));
    std::string bytes = TemporaryFolder::read(path);
    CHECK((bytes.size() - size_t(x.numel()) * size_of(x.dtype())) % 64 == 0);
  }
  Tensor x = tensor<float>({2, 3}, {1, 2, 3, 4, 5, 6});
  save_npy(path, alias(x, {3, 2}, {1, 3}, 0));
  CHECK(equal(load_npy(path), tensor<float>({3, 2}, {1, 4, 2, 5, 3, 6})));
  save_npy(path, alias(x, {2, 3}, {0, 1}, 3));
  CHECK(equal(load_npy(path), tensor<float>({2, 3}, {4, 5, 6, 4, 5, 6})));
  CHECK(TemporaryFolder::read(path).substr(10, 61) ==
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }  ");
  CHECK_THROWS_AS(save_npy(path, empty({2}, bf16)), DTypeError);
  CHECK(folder.files() == 1);
}

TEST_CASE("npy files that are wrong are refused with the reason") {
  TemporaryFolder folder;
  auto refused = [&](const std::string& bytes) {
    std::string path = folder.write("x.npy", bytes);
    std::string message = error_text<FileError>([&] { load_npy(path); });
    CHECK((message.empty() || message.find("x.npy") != std::string::npos));
    return message;
  };
  std::string good = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }\n";
  CHECK(refused(npy(good, "12345678")).empty());
  CHECK(refused("").find("0 bytes") != std::string::npos);
  CHECK(refused("PK\3\4 an archive, not an array").find("not a .npy") != std::string::npos);
  CHECK(refused(npy(good, "1234567")).find("takes 8 bytes, but the file has 7") !=
        std::string::npos);
  CHECK_FALSE(refused(npy(good, "123456789")).empty());
  CHECK(refused(npy(good, "12345678", 4)).find("version 4") != std::string::npos);
  CHECK(refused("\x93NUMPY\1\0\xff\xff{}"s).find("its length is 65535") != std::string::npos);
  CHECK_FALSE(refused("\x93NUMPY\2\0\xff\xff\xff\xff{}"s).empty());
  auto with = [&](const std::string& descr, const std::string& shape) {
    return refused(npy("{'descr': " + descr + ", 'fortran_order': False, 'shape': " + shape + ", }",
                       "12345678"));
  };
  CHECK(with("'<c8'", "(1,)").find("'<c8' is not supported") != std::string::npos);
  CHECK(with("'|O'", "(1,)").find("not supported") != std::string::npos);
  CHECK(with("[('a', '<f4')]", "(2,)").find("structured") != std::string::npos);
  CHECK(with("'<f4'", "(4294967296, 4294967296)").find("too large") != std::string::npos);
  CHECK(with("'<f4'", "(9223372036854775808,)").find("not a size") != std::string::npos);
  for (const char* shape :
       {"(-2,)", "(2", "2", "(2.0,)", "(2,,)", "('2',)", "()x", "(1,1,1,1,1,1,1,1,2)"})
    CHECK_FALSE(with("'<f4'", shape).empty());
  for (const char* text :
       {"", "{", "{}", "[]", "{'descr': '<f4'}", "{'descr': '<f4'",
        "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (2,)}",
        "{'descr': '<f4', 'fortran_order': 0, 'shape': (2,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), 'more': 1}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)} x"})
    CHECK_FALSE(refused(npy(text, "12345678")).empty());
  CHECK(error_text<FileError>([&] { load_npy(folder / "none.npy"); }).find("No such file") !=
        std::string::npos);
  CHECK(error_text<FileError>([&] { load_npy(folder / "."); }).find("not a regular file") !=
        std::string::npos);
}

TEST_CASE("safetensors files of the reference library are read") {
  TemporaryFolder folder;
  // Bytes of safetensors.numpy.save({"b": ..., "a": ..., "h": ...}, metadata={"k": "v"}).
  std::string bytes = safetensors(
      R"({"__metadata__":{"k":"v"},"b":{"dtype":"I64","shape":[2],"data_offsets":[0,16]},)"
      R"("a":{"dtype":"F32","shape":[1,2],"data_offsets":[16,24]},)"
      R"("h":{"dtype":"BOOL","shape":[],"data_offsets":[24,25]}})",
      "\5\0\0\0\0\0\0\0\xfa\xff\xff\xff\xff\xff\xff\xff\0\0\xc0?\0\0 @\1"s);
  CHECK(bytes[0] == '\xc0');
  Metadata metadata;
  NamedTensors t = load_safetensors(folder.write("x.safetensors", bytes), &metadata);
  REQUIRE(t.size() == 3);
  CHECK(metadata == Metadata{{"k", "v"}});
  CHECK(t[0].first == "b");
  CHECK(equal(t[0].second, tensor<int64_t>({2}, {5, -6})));
  CHECK(equal(t[1].second, tensor<float>({1, 2}, {1.5f, 2.5f})));
  CHECK(equal(t[2].second, tensor<bool>({}, {true})));
}

TEST_CASE("safetensors files come back as they were") {
  TemporaryFolder folder;
  std::string path = folder / "x.safetensors";
  Tensor x = tensor<float>({2, 3}, {1, 2, 3, 4, 5, 6});
  NamedTensors saved{
      {"h", tensor<bool>({1}, {true})},
      {"w", x},
      {"turned", alias(x, {3, 2}, {1, 3}, 0)},
      {"n\"\xc3\xa9\n", tensor<double>({}, {0.1})},
      {"nothing", empty({0, 4}, bf16)},
      {"b", tensor<BFloat16>({3}, {BFloat16(1.0f), BFloat16(2.0f), BFloat16(3.0f)})}};
  Metadata metadata{{"epoch", "3"}, {"text", "a \"b\"\n"}}, read;
  save_safetensors(path, saved, metadata);
  NamedTensors loaded = load_safetensors(path, &read);
  CHECK(read == metadata);
  REQUIRE(loaded.size() == saved.size());
  SafetensorsFile file(path);
  for (const auto& item : saved) {
    INFO(item.first);
    const Tensor& right = item.second;
    Tensor got = file.read(item.first);
    if (item.first == "turned")
      CHECK(equal(got, tensor<float>({3, 2}, {1, 4, 2, 5, 3, 6})));
    else
      CHECK(equal(got, right));
    const SafetensorsFile::Entry* entry = file.find(item.first);
    CHECK(entry->begin % int64_t(size_of(entry->dtype)) == 0);
  }
  CHECK(file.find("none") == nullptr);
  CHECK_THROWS_AS(file.read("none"), FileError);
  save_safetensors(path, {});
  CHECK(load_safetensors(path, &read).empty());
  CHECK(read.empty());

  CHECK_THROWS_AS(save_safetensors(path, {{"a", x}, {"a", x}}), ValueError);
  CHECK_THROWS_AS(save_safetensors(path, {{"", x}}), ValueError);
  CHECK_THROWS_AS(save_safetensors(path, {{"__metadata__", x}}), ValueError);
  CHECK_THROWS_AS(save_safetensors(path, {{"a", Tensor()}}), ValueError);
  CHECK_THROWS_AS(save_safetensors(path, {{"\xff", x}}), ValueError);
  CHECK(folder.files() == 1);
}

TEST_CASE("safetensors files that are wrong are refused with the reason") {
  TemporaryFolder folder;
  auto refused = [&](const std::string& header, const std::string& data = "12345678") {
    std::string path = folder.write("x.safetensors", safetensors(header, data));
    std::string message = error_text<FileError>([&] { load_safetensors(path); });
    CHECK((message.empty() || message.find("x.safetensors") != std::string::npos));
    return message;
  };
  auto tensor_at = [](const std::string& shape, const std::string& offsets) {
    return R"({"dtype":"F32","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}";
  };
  std::string good = tensor_at("[2]", "[0,8]");
  CHECK(refused("{\"a\":" + good + "}").empty());
  CHECK(refused("{\"a\":" + good + "}", "1234567").find("cut short") != std::string::npos);
  CHECK_FALSE(refused("{\"a\":" + good + "}", "123456789").empty());
  CHECK(refused("{\"a\":" + good + ",\"a\":" + good + "}").find("twice") != std::string::npos);
  CHECK(refused("{\"a\":" + good + ",\"b\":" + tensor_at("[1]", "[4,8]") + "}").find("overlap") !=
        std::string::npos);
  CHECK(refused("{\"a\":" + tensor_at("[1]", "[4,8]") + "}").find("gap") != std::string::npos);
  CHECK(refused("{\"a\":" + tensor_at("[3]", "[0,8]") + "}").find("takes 12 bytes") !=
        std::string::npos);
  CHECK_FALSE(refused("{\"a\":" + tensor_at("[2]", "[8,0]") + "}").empty());
  CHECK_FALSE(refused("{\"a\":" + tensor_at("[4294967296,4294967296,4]", "[0,8]") + "}").empty());
  CHECK_FALSE(refused("{\"a\":" + tensor_at("[18446744073709551615]", "[0,8]") + "}").empty());
  CHECK_FALSE(refused("{\"a\":" + tensor_at("[-2]", "[0,8]") + "}").empty());
  CHECK_FALSE(refused("{\"a\":" + tensor_at("[2.0]", "[0,8]") + "}").empty());
  CHECK_FALSE(refused("{\"a\":" + tensor_at("[1,1,1,1,1,1,1,1,2]", "[0,8]") + "}").empty());
  CHECK_FALSE(refused("{\"a\":" + tensor_at("[[2]]", "[0,8]") + "}").empty());
  CHECK_FALSE(refused("{\"a\":" + tensor_at("[2]", "[0]") + "}").empty());
  CHECK(refused(R"({"a":{"dtype":"F8_E4M3","shape":[8],"data_offsets":[0,8]}})").find("F8_E4M3") !=
        std::string::npos);
  for (const char* header : {"", "[]", "{", "{}x", "{\"a\":1}", "{\"a\":{}}", "{\"a\":[]}",
                             "{\"a\":null}", R"({"a":{"dtype":"F32","shape":[2]}})",
                             R"({"a":{"dtype":3,"shape":[2],"data_offsets":[0,8]}})",
                             R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8],"x":{}}})",
                             R"({"__metadata__":{"k":1}})", R"({"__metadata__":{"k":{}}})",
                             R"({"__metadata__":[]})", "{\"\xff\":{}}", "{'a':{}}"})
    CHECK_FALSE(refused(header, "").empty());
}

TEST_CASE("Damaged files are read or refused, never worse") {
  TemporaryFolder folder;
  Tensor x = tensor<float>({2, 3}, {1, 2, 3, 4, 5, 6});
  save_npy(folder / "x.npy", x);
  save_safetensors(folder / "x.safetensors", {{"w", x}, {"b", tensor<bool>({2}, {true, false})}},
                   {{"k", "v"}});
  test::Damage damage("{}[](),:'\"0123456789-");
  for (const char* name : {"x.npy", "x.safetensors"}) {
    std::string good = TemporaryFolder::read(folder / name);
    bool is_npy = name == "x.npy"s;
    int refused = 0;
    for (int i = 0; i < 1500; ++i) {
      std::string path = folder.write("bad", damage(good));
      refused += !error_text<FileError>([&] {
                    if (is_npy)
                      load_npy(path);
                    else
                      load_safetensors(path);
                  }).empty();
    }
    CHECK(refused > 500);
  }
}
