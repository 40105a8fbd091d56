// MUDNN_LOG_LEVEL: INFO logs each call, ERROR (default) the reason of each refusal, FATAL nothing.
// To standard error, one line an entry.
#pragma once

#include <string>

#include "Internal.h"

namespace musa::dnn::internal {

bool log_calls();
void log_call(const Call& call);
void log_refusal(const Call& call, Status status, const std::string& reason);
const char* name(Status status);

}  // namespace musa::dnn::internal
