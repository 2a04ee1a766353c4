// Handles of libmongoc that release themselves, and the few values that bridge its bson_t and ours.
#pragma once

#include <angelia/bson/document.h>

#include <mongoc/mongoc.h>

#include <memory>

namespace angelia::store::mongo {

template <auto Destroy>
struct DestroyWith {
    template <class T>
    void operator()(T* handle) const noexcept {
        Destroy(handle);
    }
};
using UriPtr = std::unique_ptr<mongoc_uri_t, DestroyWith<&mongoc_uri_destroy>>;
using PoolPtr = std::unique_ptr<mongoc_client_pool_t, DestroyWith<&mongoc_client_pool_destroy>>;
using ClientPtr = std::unique_ptr<mongoc_client_t, DestroyWith<&mongoc_client_destroy>>;
using CollectionPtr = std::unique_ptr<mongoc_collection_t, DestroyWith<&mongoc_collection_destroy>>;
using DatabasePtr = std::unique_ptr<mongoc_database_t, DestroyWith<&mongoc_database_destroy>>;
using CursorPtr = std::unique_ptr<mongoc_cursor_t, DestroyWith<&mongoc_cursor_destroy>>;
using BulkPtr =
    std::unique_ptr<mongoc_bulk_operation_t, DestroyWith<&mongoc_bulk_operation_destroy>>;
using SessionPtr =
    std::unique_ptr<mongoc_client_session_t, DestroyWith<&mongoc_client_session_destroy>>;
using SessionOptionsPtr =
    std::unique_ptr<mongoc_session_opt_t, DestroyWith<&mongoc_session_opts_destroy>>;
using FindAndModifyOptionsPtr = std::unique_ptr<mongoc_find_and_modify_opts_t,
                                                DestroyWith<&mongoc_find_and_modify_opts_destroy>>;
using ReadPreferencePtr =
    std::unique_ptr<mongoc_read_prefs_t, DestroyWith<&mongoc_read_prefs_destroy>>;
using ServerDescriptionPtr =
    std::unique_ptr<mongoc_server_description_t, DestroyWith<&mongoc_server_description_destroy>>;

/// Our document as an argument of the driver; owns nothing, so the document must outlive it.
class BsonArgument {
  public:
    explicit BsonArgument(bson::DocumentView document) {
        ANGELIA_CHECK(bson_init_static(&bson_, document.data(), document.size_bytes()));
    }
    operator const bson_t*() const { return &bson_; }
    const bson_t* get() const { return &bson_; }

  private:
    bson_t bson_;
};

/// A reply the driver fills. It is initialised even by calls that fail, so it must always be
/// destroyed.
class ReplyBson {
  public:
    ReplyBson() { bson_init(&bson_); }
    ~ReplyBson() { bson_destroy(&bson_); }
    ReplyBson(const ReplyBson&) = delete;
    ReplyBson& operator=(const ReplyBson&) = delete;
    /// For the driver's out-parameter; what was held is released first.
    bson_t* out() {
        bson_destroy(&bson_);
        return &bson_;
    }
    /// Empty at first; for calls that append.
    bson_t* mutable_bson() { return &bson_; }
    const bson_t* get() const { return &bson_; }

  private:
    bson_t bson_;
};

}  // namespace angelia::store::mongo
