// TG_HD marks a function that also runs on the GPU when nvcc compiles it.
#pragma once

#if defined(__CUDACC__)
#define TG_HD __host__ __device__
#else
#define TG_HD
#endif
