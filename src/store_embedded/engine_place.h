// Which engines are open in this process, by place: one engine for each data folder, shared by all
// who open it.
#pragma once

#include "engine/engine.h"

#include <angelia/store/open.h>

#include <memory>
#include <string>

namespace angelia::store_embedded {

/// A share in an open engine. The last share of a place closes it. Move-only. Threads: one owner at
/// a time.
class EngineLease {
  public:
    /// A share in an engine that somebody else closes.
    explicit EngineLease(std::shared_ptr<engine::Engine> engine) : engine_(std::move(engine)) {}
    EngineLease(EngineLease&&) noexcept = default;
    EngineLease& operator=(EngineLease&&) = delete;
    ~EngineLease() { (void)release(); }

    const std::shared_ptr<engine::Engine>& engine() const { return engine_; }
    /// Gives the share back; closes the engine when it was the last. Errors: those of
    /// Engine::close.
    Result<void> release();

  private:
    friend Result<EngineLease> lease_engine(const store::StoreAddress& address,
                                            const store::OpenOptions& options);
    EngineLease(std::shared_ptr<engine::Engine> engine, std::string place)
        : engine_(std::move(engine)), place_(std::move(place)) {}
    std::shared_ptr<engine::Engine> engine_;  ///< shared with running calls and with servers
    std::string place_;                       ///< empty: not ours to close
};

/// Opens the engine of an address, or joins the one that is open. Durability is the first opener's.
/// Errors: those of Engine::open, and BadValue when the place is open with another durability.
/// Threads: safe.
Result<EngineLease> lease_engine(const store::StoreAddress& address,
                                 const store::OpenOptions& options);

}  // namespace angelia::store_embedded
