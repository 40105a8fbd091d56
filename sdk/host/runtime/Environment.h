// Environment variables, read once. A value that makes no sense is said so on stderr and the
// default taken: a typo must not turn into zero devices.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

namespace musa::host {

// The variable's text; empty where it is not set.
std::string text_from_environment(const char* variable);

// A whole decimal number that is not negative, else `fallback`.
int64_t number_from_environment(const char* variable, int64_t fallback);

// The same for a list, "64,128"; empty where it is not set or wrong.
std::vector<int64_t> numbers_from_environment(const char* variable);

// Index of the value among `choices`, else `fallback`.
int choice_from_environment(const char* variable, std::initializer_list<const char*> choices,
                            int fallback);

}  // namespace musa::host
