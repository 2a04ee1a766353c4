#include "engine/storage/keys.h"

#include <gtest/gtest.h>

namespace angelia::engine::storage {

TEST(Keys, RecordsOfACollectionSortByRecordId) {
    EXPECT_LT(record_key(1, 255), record_key(1, 256));
    EXPECT_LT(record_key(1, ~RecordId{0}), record_key(2, 0));
    EXPECT_EQ(record_id_of(record_key(7, 0x0102030405060708)), 0x0102030405060708u);
    EXPECT_EQ(record_key(1, 2), std::string("\0\0\0\1\0\0\0\0\0\0\0\2", 12));
}

TEST(Keys, PrefixEndFollowsEveryKeyWithThePrefixAndNothingElse) {
    EXPECT_EQ(prefix_end("ab"), "ac");
    EXPECT_EQ(prefix_end(std::string("a\xff\xff")), "b");
    EXPECT_EQ(prefix_end("\xff\xff"), "");
    EXPECT_GT(prefix_end(record_prefix(3)), record_key(3, ~RecordId{0}));
    EXPECT_EQ(prefix_end(record_prefix(3)), record_prefix(4));
}

TEST(Keys, IndexEntriesCarryTheirRecord) {
    EXPECT_EQ(record_id_of_entry(index_entry(4, "key", 99)), 99u);
    EXPECT_EQ(decode_record_id(encode_record_id(1234567890123)), 1234567890123u);
    EXPECT_EQ(unique_entry(4, "key"), index_prefix(4) + "key");
}

TEST(Keys, RecordValueKeepsTimeAndDocument) {
    const auto value = record_value({5, 6}, "document");
    EXPECT_EQ(record_time(value), (bson::Timestamp{5, 6}));
    EXPECT_EQ(record_document(value), "document");
    EXPECT_EQ(value.size(), kRecordHeaderBytes + 8);
}

}  // namespace angelia::engine::storage
