#include "Profile.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace musa {
namespace {

constexpr Profile kProfiles[] = {
    // newest first
    {"mp_31", 3, 1, 32},   // MTT S5000
    {"mp_22", 2, 2, 128},  // MTT S4000
    {"mp_21", 2, 1, 128},  // MTT S80, S3000
};

const Profile* profile_named(std::string_view name) {
  for (const Profile& candidate : kProfiles) {
    const std::string_view known = candidate.name;
    if (name == known || name == known.substr(std::string_view("mp_").size())) return &candidate;
  }
  return nullptr;
}

// mp_22, or 22 as torch_musa's builds write it. Those take lists, too (21;22;31): the chips that a
// binary is made for. The newest of them is one that it runs on. Null for anything else.
const Profile* profile_of(std::string_view text) {
  constexpr std::string_view kSeparators = ";, ";
  const Profile* newest = nullptr;
  for (size_t at = 0; (at = text.find_first_not_of(kSeparators, at)) != std::string_view::npos;) {
    const size_t end = std::min(text.find_first_of(kSeparators, at), text.size());
    const Profile* named = profile_named(text.substr(at, end - at));
    if (named == nullptr) return nullptr;
    if (newest == nullptr || named < newest) newest = named;
    at = end;
  }
  return newest;
}

}  // namespace

const Profile& profile() {
  static const Profile& value = []() -> const Profile& {
    const char* text = std::getenv("MUSA_ARCH");
    if (text == nullptr || *text == '\0') return kProfiles[0];
    if (const Profile* named = profile_of(text)) return *named;
    std::fprintf(stderr,
                 "musart: MUSA_ARCH=%s is none of mp_21, mp_22, mp_31, nor a list of them; using "
                 "mp_31\n",
                 text);
    return kProfiles[0];
  }();
  return value;
}

}  // namespace musa
