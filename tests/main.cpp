// Catch2 2 makes main from its own header; Catch2 3 brings a library with main in it.
#define CATCH_CONFIG_MAIN
#include "catch.h"
