// What open_store looks for when an address begins with mongodb://.
#include "store_mongo/mongo_store.h"

namespace {

angelia::Result<std::shared_ptr<angelia::store::StoreAdapter>> open_mongo(
    const angelia::store::StoreAddress& address, const angelia::store::OpenOptions& options) {
    ANGELIA_TRY_ASSIGN(std::shared_ptr<angelia::store::StoreAdapter> store,
                       angelia::store::mongo::MongoStore::open(address, options));
    return store;
}

}  // namespace

extern "C" {
extern const angelia::store::StoreFactory angelia_mongo_factory;
const angelia::store::StoreFactory angelia_mongo_factory{&open_mongo};
}
