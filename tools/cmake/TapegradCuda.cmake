# The CUDA backend of the library, TAPEGRAD_CUDA=
#   EMULATED  the .cu files as C++, run on the CPU by kernels/simt: needs CUDA's headers only
#   ON        the .cu files by nvcc
# Sources are the same for both. Users see which it is: a header means another thing with CUDA.
file(GLOB_RECURSE cuda_kernels CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/kernels/cuda/*.cu)
file(GLOB_RECURSE cuda_sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/core/cuda/*.cpp
     ${CMAKE_CURRENT_SOURCE_DIR}/kernels/cuda/*.cpp)
target_sources(tapegrad PRIVATE ${cuda_kernels} ${cuda_sources})
target_compile_definitions(tapegrad PUBLIC TAPEGRAD_CUDA)

if(TAPEGRAD_CUDA STREQUAL "EMULATED")
  # The headers of an installed toolkit, or those that tools/cuda_headers.sh brought.
  find_program(TAPEGRAD_NVCC nvcc HINTS /usr/local/cuda/bin)
  if(TAPEGRAD_NVCC)
    get_filename_component(toolkit ${TAPEGRAD_NVCC} REALPATH)
    get_filename_component(toolkit ${toolkit} DIRECTORY)
    get_filename_component(toolkit ${toolkit} DIRECTORY)
  endif()
  find_path(TAPEGRAD_CUDA_INCLUDE cuda_runtime.h NO_DEFAULT_PATH
            PATHS ${toolkit}/include ${CMAKE_CURRENT_SOURCE_DIR}/build/cuda_headers
            DOC "Folder of cuda_runtime.h")
  if(NOT TAPEGRAD_CUDA_INCLUDE)
    message(FATAL_ERROR "TAPEGRAD_CUDA=EMULATED needs CUDA's headers: install a toolkit, or run tools/cuda_headers.sh")
  endif()
  find_package(Boost REQUIRED COMPONENTS context)
  file(GLOB_RECURSE simt_sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/kernels/simt/*.cpp)
  list(FILTER simt_sources EXCLUDE REGEX "/simt/hooks/")  # for instrumented programs only, tests/simt has one
  target_sources(tapegrad PRIVATE ${simt_sources})
  target_include_directories(tapegrad SYSTEM PRIVATE ${TAPEGRAD_CUDA_INCLUDE})
  target_link_libraries(tapegrad PUBLIC $<BUILD_INTERFACE:Boost::context>)
  # nvcc's own pragmas mean nothing here, and vector accesses go through pointers of another type.
  set_source_files_properties(${cuda_kernels} PROPERTIES LANGUAGE CXX
                              COMPILE_OPTIONS "-x;c++;-Wno-unknown-pragmas;-fno-strict-aliasing")
elseif(TAPEGRAD_CUDA STREQUAL "ON")
  # Ampere, Hopper, and PTX for what comes after.
  if(NOT CMAKE_CUDA_ARCHITECTURES)
    set(CMAKE_CUDA_ARCHITECTURES 80-real 90)
  endif()
  enable_language(CUDA)
  if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # Debian 12's CMake does not know that nvcc can do it
    set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
    set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
  endif()
  find_package(CUDAToolkit REQUIRED)
  set_target_properties(tapegrad PROPERTIES CUDA_STANDARD 20 CUDA_ARCHITECTURES "${CMAKE_CUDA_ARCHITECTURES}")
  # As on the CPU: an a * b + c is fused only where the code says so.
  target_compile_options(tapegrad PRIVATE
    $<$<COMPILE_LANGUAGE:CUDA>:--fmad=false --expt-relaxed-constexpr -Xcompiler=-fno-strict-aliasing>)
  target_link_libraries(tapegrad PUBLIC $<BUILD_INTERFACE:CUDA::cudart>)
else()
  message(FATAL_ERROR "TAPEGRAD_CUDA is OFF, EMULATED or ON, not '${TAPEGRAD_CUDA}'")
endif()
