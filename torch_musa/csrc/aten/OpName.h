#pragma once

#include <ATen/core/operator_name.h>

#include <string>
#include <string_view>

namespace at::musa {

/// "add.Tensor" for aten::add.Tensor, "musa::rope" for an operator of another namespace: the names
/// of the operator list.
inline std::string op_list_name(const c10::OperatorName& name) {
  constexpr std::string_view kAten = "aten::";
  std::string text = name.name;
  if (text.compare(0, kAten.size(), kAten) == 0) {
    text.erase(0, kAten.size());
  }
  if (!name.overload_name.empty()) {
    text += "." + name.overload_name;
  }
  return text;
}

}  // namespace at::musa
