// The test framework, whichever of its major versions is installed.
#pragma once
#ifdef TAPEGRAD_CATCH3
#include <catch2/catch_all.hpp>
using Catch::Approx;

#else
#include <catch2/catch.hpp>

#endif
