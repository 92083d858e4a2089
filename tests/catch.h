// The test framework, whichever of its major versions is installed.
#pragma once
#ifdef TAPEGRAD_CATCH3
#include <catch2/catch_all.hpp>
using Catch::Approx;
namespace Catch {  // under the names that Catch2 2 has
using Matchers::EndsWith;
using Matchers::StartsWith;
inline auto Contains(const std::string& part) { return Matchers::ContainsSubstring(part); }
}  // namespace Catch

#else
#include <catch2/catch.hpp>

#endif
