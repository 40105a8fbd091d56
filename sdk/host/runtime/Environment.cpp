#include "Environment.h"

#include <cstdio>
#include <cstdlib>
#include <optional>

namespace musa::host {
namespace {

std::optional<int64_t> parse(const std::string& text) {
  if (text.empty() || text.size() > 15) return std::nullopt;
  int64_t value = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    value = value * 10 + (c - '0');
  }
  return value;
}

}  // namespace

std::string text_from_environment(const char* variable) {
  const char* text = std::getenv(variable);
  return text == nullptr ? "" : text;
}

int64_t number_from_environment(const char* variable, int64_t fallback) {
  const std::string text = text_from_environment(variable);
  if (text.empty()) return fallback;
  if (const auto value = parse(text)) return *value;
  std::fprintf(stderr, "musart: %s=%s is not a number, using %lld\n", variable, text.c_str(),
               static_cast<long long>(fallback));
  return fallback;
}

std::vector<int64_t> numbers_from_environment(const char* variable) {
  const std::string text = text_from_environment(variable);
  std::vector<int64_t> values;
  if (text.empty()) return values;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const auto value = parse(text.substr(begin, end - begin));
    if (!value) {
      std::fprintf(stderr, "musart: %s=%s is not a list of numbers, using the default\n", variable,
                   text.c_str());
      return {};
    }
    values.push_back(*value);
    begin = end + 1;
  }
  return values;
}

int choice_from_environment(const char* variable, std::initializer_list<const char*> choices,
                            int fallback) {
  const std::string text = text_from_environment(variable);
  if (text.empty()) return fallback;
  std::string known;
  int index = 0;
  for (const char* choice : choices) {
    if (text == choice) return index;
    known += std::string(known.empty() ? "" : ", ") + choice;
    ++index;
  }
  std::fprintf(stderr, "musart: %s=%s is not one of %s; using %s\n", variable, text.c_str(),
               known.c_str(), choices.begin()[fallback]);
  return fallback;
}

}  // namespace musa::host
