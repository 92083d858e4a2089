#include <tapegrad/core/cpu_features.h>
#include <tapegrad/tapegrad.h>

int main() { return tg::missing_cpu_feature() == nullptr ? 0 : 1; }
