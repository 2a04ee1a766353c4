// What open_store looks for when an address begins with embedded:.
#include "store_embedded/embedded_store.h"

namespace {

angelia::Result<std::shared_ptr<angelia::store::StoreAdapter>> open_embedded_address(
    const angelia::store::StoreAddress& address, const angelia::store::OpenOptions& options) {
    return angelia::store_embedded::open_embedded(address, options);
}

}  // namespace

extern "C" {
extern const angelia::store::StoreFactory angelia_embedded_factory;
const angelia::store::StoreFactory angelia_embedded_factory{&open_embedded_address};
}
