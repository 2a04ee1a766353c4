// Two writes, one moment: money moves from one collection to another, or stays where it is.
#include <angelia/angelia.h>

#include <cstdio>

namespace {

angelia::Result<void> transfer(angelia::Store& store, std::int64_t amount) {
    const auto orders = store.collection("orders"), accounts = store.collection("accounts");
    // May run several times: whatever it does, it does through `tx`.
    return store.with_transaction([&](angelia::Session& tx) -> angelia::Result<void> {
        const auto paid = store.update_one(
            accounts,
            angelia::bson::make("_id", "anna", "money", angelia::bson::make("$gte", amount)),
            angelia::bson::make("$inc", angelia::bson::make("money", -amount)), false,
            {.session = &tx});
        if (!paid) return paid.error();
        const auto ordered = store.insert(
            orders, angelia::bson::make("by", "anna", "amount", amount), {.session = &tx});
        if (!ordered) return ordered.error();
        if (paid->matched == 0)
            return {angelia::ErrorCode::BadValue, "not enough money"};  // the order goes, too
        return {};
    });
}

}  // namespace

int main() {
    auto store = angelia::open_store("embedded::memory:").value_or_throw();
    store
        .insert(store.collection("accounts"),
                angelia::bson::make("_id", "anna", "money", std::int64_t{100}))
        .value_or_throw();
    const bool first = transfer(store, 70).has_value();
    const bool second = transfer(store, 70).has_value();
    const auto orders = store.count(store.collection("orders"), {}).value_or_throw();
    std::printf("first %s, second %s, %lld order\n", first ? "paid" : "refused",
                second ? "paid" : "refused", static_cast<long long>(orders));
    return first && !second && orders == 1 ? 0 : 1;
}
