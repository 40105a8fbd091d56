#include "Log.h"

#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <sstream>

namespace musa::dnn::internal {
namespace {

enum class Level { INFO, WARNING, ERROR, FATAL };

Level level_from_environment() {
  const char* text = std::getenv("MUDNN_LOG_LEVEL");
  std::string level = text == nullptr ? "" : text;
  for (char& c : level) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  if (level == "INFO" || level == "DEBUG" || level == "VERBOSE") return Level::INFO;
  if (level == "WARNING" || level == "WARN") return Level::WARNING;
  if (level == "FATAL" || level == "OFF") return Level::FATAL;
  return Level::ERROR;
}

Level level() {
  static const Level value = level_from_environment();
  return value;
}

void print(std::ostream& out, at::IntArrayRef values) {
  out << '[';
  for (size_t i = 0; i < values.size(); ++i) out << (i == 0 ? "" : ",") << values[i];
  out << ']';
}

std::string describe(const Call& call) {
  std::ostringstream out;
  if (*call.mode() != '\0') out << ' ' << call.mode();
  for (const Operand& operand : call.operands()) {
    out << ' ' << operand.name << '=';
    if (absent(*operand.tensor)) {
      out << "absent";
      continue;
    }
    out << name(type(*operand.tensor));
    print(out, dims(*operand.tensor));
    if (!contiguous(*operand.tensor)) {
      out << '/';
      print(out, strides(*operand.tensor));
    }
  }
  return out.str();
}

// One write, so that lines of several threads do not mix.
void write_line(const std::string& line) { std::fputs((line + "\n").c_str(), stderr); }

std::string prefix(const char* severity) {
  return "muDNN(" + std::to_string(GetVersion()) + ") " + severity + "# ";
}

}  // namespace

bool log_calls() { return level() == Level::INFO; }

void log_call(const Call& call) {
  write_line(prefix("INFO") + call.entry() + describe(call) +
             " device=" + std::to_string(call.handle().GetDevice()));
}

void log_refusal(const Call& call, Status status, const std::string& reason) {
  if (level() > Level::ERROR) return;
  write_line(prefix("ERROR") + name(status) + " in " + call.entry() + ", Reason: " + reason + " (" +
             (describe(call).empty() ? "" : describe(call).substr(1)) + ")");
}

const char* name(Status status) {
  switch (status) {
    case Status::SUCCESS:
      return "SUCCESS";
    case Status::INVALID_PARAMETER:
      return "INVALID_PARAMETER";
    case Status::NOT_INITIALIZED:
      return "NOT_INITIALIZED";
    case Status::ALLOC_FAILED:
      return "ALLOC_FAILED";
    case Status::NOT_SUPPORTED:
      return "NOT_SUPPORTED";
    case Status::INTERNAL_ERROR:
      return "INTERNAL_ERROR";
    case Status::ARCH_MISMATCH:
      return "ARCH_MISMATCH";
    case Status::EXECUTION_FAILED:
      return "EXECUTION_FAILED";
  }
  return "UNKNOWN";
}

}  // namespace musa::dnn::internal
