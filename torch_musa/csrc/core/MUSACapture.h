#pragma once

namespace c10::musa {

/// For operators that wait for the device, to learn the size of their result: while the current
/// stream is captured this throws what any waiting call throws, and the capture is invalid.
void check_may_wait();

}  // namespace c10::musa
