// What is left to do of a call once its operands are checked: a closure without arguments.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

namespace musa::dnn::internal {

// std::function would allocate for closures of this size, and a call makes one each time. Movable
// only; may be called any number of times.
class Work {
 public:
  Work() = default;

  template <class F>
    requires(std::is_invocable_v<F&> && !std::is_same_v<std::decay_t<F>, Work>)
  Work(F&& f) {  // NOLINT: prepare returns a lambda
    using Closure = std::decay_t<F>;
    if constexpr (sizeof(Closure) <= kInline && alignof(Closure) <= alignof(std::max_align_t)) {
      new (storage_) Closure(std::forward<F>(f));
      actions_ = &kActions<Closure>;
    } else {
      using Boxed = Box<Closure>;
      new (storage_) Boxed{std::make_unique<Closure>(std::forward<F>(f))};
      actions_ = &kActions<Boxed>;
    }
  }

  Work(Work&& other) noexcept : actions_(std::exchange(other.actions_, nullptr)) {
    if (actions_ != nullptr) actions_->move(storage_, other.storage_);
  }
  Work& operator=(Work&& other) noexcept {
    if (this != &other) {
      this->~Work();
      new (this) Work(std::move(other));
    }
    return *this;
  }
  ~Work() {
    if (actions_ != nullptr) actions_->destroy(storage_);
    actions_ = nullptr;
  }

  explicit operator bool() const { return actions_ != nullptr; }
  void operator()() { actions_->call(storage_); }

 private:
  static constexpr size_t kInline = 448;

  template <class Closure>
  struct Box {
    std::unique_ptr<Closure> closure;
    void operator()() { (*closure)(); }
  };

  struct Actions {
    void (*call)(void*);
    void (*move)(void* to, void* from);  // and destroys `from`
    void (*destroy)(void*);
  };

  template <class Closure>
  static constexpr Actions kActions{[](void* c) { (*static_cast<Closure*>(c))(); },
                                    [](void* to, void* from) {
                                      new (to) Closure(std::move(*static_cast<Closure*>(from)));
                                      static_cast<Closure*>(from)->~Closure();
                                    },
                                    [](void* c) { static_cast<Closure*>(c)->~Closure(); }};

  const Actions* actions_ = nullptr;
  alignas(std::max_align_t) std::byte storage_[kInline];
};

}  // namespace musa::dnn::internal
