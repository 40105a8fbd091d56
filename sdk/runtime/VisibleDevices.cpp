#include "VisibleDevices.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>

namespace musa {

std::vector<int> visible_devices(int present) {
  const char* text = std::getenv("MUSA_VISIBLE_DEVICES");
  if (text == nullptr) {
    std::vector<int> all(static_cast<size_t>(std::max(present, 0)));
    std::iota(all.begin(), all.end(), 0);
    return all;
  }
  std::vector<int> devices;
  for (const char* at = text;;) {
    char* end = nullptr;
    const long device = std::strtol(at, &end, 10);
    if (end == at || (*end != '\0' && *end != ',') || device < 0 || device >= present) break;
    if (std::find(devices.begin(), devices.end(), device) != devices.end()) return {};
    devices.push_back(static_cast<int>(device));
    if (*end == '\0') break;
    at = end + 1;
  }
  return devices;
}

}  // namespace musa
