// NumPy's .npy files (numpy.lib.format, versions 1.0 to 3.0).
#pragma once
#include <string>

#include "tapegrad/core/tensor.h"

namespace tg {

// dtypes: f2 f4 f8, i1 i2 i4 i8, u1, b1, little- or big-endian (which is converted). Fortran order
// is kept as strides: the values stand where NumPy has them. FileError, before anything is
// allocated, for other dtypes, for a header that is not as NumPy writes it, for more than 8
// dimensions, and for a file that is shorter or longer than its header says.
Tensor load_npy(const std::string& path);

// In row-major order whatever the strides, little-endian, format 1.0; the file appears whole or not
// at all. bf16 does not exist in NumPy: DTypeError. FileError with the system's reason.
void save_npy(const std::string& path, const Tensor& x);

}  // namespace tg
