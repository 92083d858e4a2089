# The CUDA backend of the library, TAPEGRAD_CUDA=
#   EMULATED  the .cu files as C++, run on the CPU by kernels/simt: needs CUDA's headers only
#   ON        the .cu files by nvcc
# Sources are the same for both.
file(GLOB_RECURSE cuda_kernels CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/kernels/cuda/*.cu)
file(GLOB_RECURSE cuda_sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/core/cuda/*.cpp
     ${CMAKE_CURRENT_SOURCE_DIR}/kernels/cuda/*.cpp)

# Flags of device code under the host compiler: warnings that only nvcc's own pragmas and registers
# call forth, and vector accesses through pointers of another type.
set(TAPEGRAD_EMULATED_KERNEL_OPTIONS -x c++ -Wno-unknown-pragmas -fno-strict-aliasing)

# Of a target that may launch kernels: where the headers are, and who runs them.
function(tapegrad_use_cuda target)
  target_include_directories(${target} SYSTEM PRIVATE ${TAPEGRAD_CUDA_INCLUDE})
endfunction()
# Sources ending in .cu, as C++.
function(tapegrad_emulate)
  set_source_files_properties(${ARGN} PROPERTIES LANGUAGE CXX COMPILE_OPTIONS "${TAPEGRAD_EMULATED_KERNEL_OPTIONS}")
endfunction()

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
  target_sources(tapegrad PRIVATE ${simt_sources})
  target_link_libraries(tapegrad PUBLIC $<BUILD_INTERFACE:Boost::context>)
  tapegrad_use_cuda(tapegrad)
endif()
