#include "torch_musa/csrc/core/MUSACapture.h"

#include "torch_musa/csrc/core/MUSAStream.h"

namespace c10::musa {

void check_may_wait() {
  const MUSAStream stream = getCurrentMUSAStream();
  if (stream.is_capturing()) {
    stream.synchronize();  // the runtime refuses it
  }
}

}  // namespace c10::musa
