// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "support/virtual_system.h"
#include "transport/wrap/wrapped.h"

namespace khoro::test {

/// The world as one rank sees it, noting what the rank asks the ends of its channels for in its
/// last look around before it sleeps. If that is there while it sleeps, somebody owes it a wake-up.
class Wants final : public System {
 public:
  explicit Wants(VirtualSystem& system) : system_(system) {}

  /// Something that it sleeps for is there.
  bool any_is_there() const {
    for (const Wanting* end : ends_)
      if (end->is_there()) return true;
    return false;
  }

  /// Something that rank `peer` sent or gave back is there and was not taken yet.
  bool any_is_under_way(int peer) const {
    for (const Wanting* end : ends_)
      if (end->peer == peer && end->is_under_way()) return true;
    return false;
  }

  /// Notes what is asked of a transport, which this outlives. At each event another rank may come
  /// first.
  std::unique_ptr<Transport> watch(std::unique_ptr<Transport> inner);

  // Who waits looks at the clock after each look around.
  Time now() const noexcept override {
    ++look_;
    return system_.now();
  }
  void park(std::span<const Doorbell> doorbells, Time until) noexcept override {
    system_.park(doorbells, until);
  }
  void yield() noexcept override { system_.yield(); }

 private:
  struct Wanting {
    explicit Wanting(int other) : peer(other) {}
    virtual ~Wanting() = default;
    virtual bool is_there() const = 0;
    virtual bool is_under_way() const = 0;
    const int peer;
  };
  /// That something was asked for in vain, and in which look.
  class Vain {
   public:
    void note(const Wants& wants, bool vain) { look_ = vain ? wants.look_ : never_; }
    bool in_last_look(const Wants& wants) const { return look_ + 1 == wants.look_; }

   private:
    static constexpr std::uint64_t never_ = ~std::uint64_t{0} - 1;
    std::uint64_t look_ = never_;
  };

  class WantingSender final : public wrap::WrappedSender, public Wanting {
   public:
    WantingSender(std::unique_ptr<Sender> inner, int peer, const Wants& wants)
        : WrappedSender(std::move(inner)), Wanting(peer), wants_(wants) {}

    std::byte* try_acquire(std::size_t bytes) noexcept override {
      std::byte* const room = inner_->try_acquire(bytes);
      has_room_ = room != nullptr;
      room_.note(wants_, !has_room_);
      bytes_ = bytes;
      return room;
    }
    void publish(const MessageHead& head) noexcept override {
      wants_.system_.hesitate();
      inner_->publish(head);
      wants_.system_.hesitate();
    }
    void publish_reference(const MessageHead& head, const std::byte* data) noexcept override {
      wants_.system_.hesitate();
      inner_->publish_reference(head, data);
      wants_.system_.hesitate();
    }
    void publish_put(const MessageHead& head) noexcept override {
      wants_.system_.hesitate();
      inner_->publish_put(head);
      wants_.system_.hesitate();
    }
    std::uint64_t released() noexcept override {
      release_.note(wants_, true);
      return released_ = inner_->released();
    }
    const Window* try_window() noexcept override {
      const Window* const window = inner_->try_window();
      has_window_ = window != nullptr;
      window_.note(wants_, !has_window_);
      return window;
    }
    bool is_under_way() const override { return has_room_ || has_window_; }
    bool is_there() const override {
      return (room_.in_last_look(wants_) && inner_->try_acquire(bytes_) != nullptr) ||
             (window_.in_last_look(wants_) && inner_->try_window() != nullptr) ||
             (release_.in_last_look(wants_) && inner_->released() > released_);
    }

   private:
    const Wants& wants_;
    Vain room_, window_, release_;
    bool has_room_ = false;
    bool has_window_ = false;
    std::size_t bytes_ = 0;
    std::uint64_t released_ = 0;  // as it was told
  };

  class WantingReceiver final : public wrap::WrappedReceiver, public Wanting {
   public:
    WantingReceiver(std::unique_ptr<Receiver> inner, int peer, const Wants& wants)
        : WrappedReceiver(std::move(inner)), Wanting(peer), wants_(wants) {}

    Observed try_observe(std::uint32_t digest) noexcept override {
      const Observed seen = inner_->try_observe(digest);
      message_.note(wants_, nothing(seen));
      digest_ = digest;
      return seen;
    }
    void release() noexcept override {
      wants_.system_.hesitate();
      inner_->release();
      wants_.system_.hesitate();
    }
    bool try_offer(const Window& window) noexcept override {
      const bool offered = inner_->try_offer(window);
      wants_.system_.hesitate();
      return offered;
    }
    bool is_under_way() const override { return !nothing(inner_->try_observe(digest_)); }
    bool is_there() const override {
      return message_.in_last_look(wants_) && !nothing(inner_->try_observe(digest_));
    }

   private:
    static bool nothing(const Observed& seen) {
      return seen.message == nullptr && seen.status == Status::ok;
    }

    const Wants& wants_;
    Vain message_;
    std::uint32_t digest_ = 0;
  };

  class Watched final : public wrap::WrappedTransport {
   public:
    Watched(std::unique_ptr<Transport> inner, Wants& wants)
        : WrappedTransport(std::move(inner)), wants_(wants) {}
    // Its ends are gone before it is.
    ~Watched() override { wants_.ends_.clear(); }

   private:
    std::unique_ptr<Sender> around(std::unique_ptr<Sender> inner,
                                   const ChannelName& name) override {
      return noted(std::make_unique<WantingSender>(std::move(inner), name.peer, wants_));
    }
    std::unique_ptr<Receiver> around(std::unique_ptr<Receiver> inner,
                                     const ChannelName& name) override {
      return noted(std::make_unique<WantingReceiver>(std::move(inner), name.peer, wants_));
    }
    template <class End>
    std::unique_ptr<End> noted(std::unique_ptr<End> end) {
      wants_.ends_.push_back(end.get());
      return end;
    }

    Wants& wants_;
  };

  VirtualSystem& system_;
  mutable std::uint64_t look_ = 0;
  std::vector<Wanting*> ends_;
};

inline std::unique_ptr<Transport> Wants::watch(std::unique_ptr<Transport> inner) {
  return std::make_unique<Watched>(std::move(inner), *this);
}

}  // namespace khoro::test
