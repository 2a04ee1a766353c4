// Encoding of oplog entries. The layout is a contract: docs/formats/oplog.md.
#include "engine/changes/oplog.h"
#include "engine/storage/byte_order.h"

#include <fmt/format.h>

namespace angelia::engine {
namespace {

using storage::append_big;
using storage::load_big;

constexpr std::uint8_t kEntryVersion = 1;
constexpr std::uint8_t kFormInline = 0;  // 1 is reserved: the document by reference to its record
constexpr std::size_t kEntryHeaderBytes = 4 + 4 + 16 + 8 + 8 + 4 + 2 + 2 + 4 + 4 + 4;

Error damaged(bson::Timestamp time, std::uint32_t sub, std::string_view what) {
    return {ErrorCode::InternalError, fmt::format("oplog entry {}:{}:{} cannot be read: {}",
                                                  time.seconds, time.increment, sub, what)};
}

bool known_kind(char kind) {
    return kind != '\0' && std::string_view("iurdcn").find(kind) != std::string_view::npos;
}

}  // namespace

std::shared_ptr<const std::string> OplogEntry::encode(const OplogFields& fields) {
    const auto id = fields.id.bytes();
    const auto lsid = fields.lsid.empty() ? std::string_view() : fields.lsid.bytes();
    const auto payload = fields.payload.bytes();
    ANGELIA_CHECK(fields.db.size() <= 0xFFFF && fields.collection.size() <= 0xFFFF);
    auto out = std::make_shared<std::string>();
    out->reserve(kEntryHeaderBytes + fields.db.size() + fields.collection.size() + id.size() +
                 lsid.size() + payload.size());
    append_big(*out, kEntryVersion);
    append_big(*out, kFormInline);
    append_big(*out, static_cast<std::uint8_t>(fields.kind));
    append_big(*out, static_cast<std::uint8_t>(fields.id.type()));
    append_big(*out, fields.collection_id);
    out->append(reinterpret_cast<const char*>(fields.uuid.data()), fields.uuid.size());
    append_big(*out, static_cast<std::uint64_t>(fields.wall.millis));
    append_big(*out, static_cast<std::uint64_t>(fields.txn_number));
    append_big(*out, static_cast<std::uint32_t>(fields.stmt_id));
    append_big(*out, static_cast<std::uint16_t>(fields.db.size()));
    append_big(*out, static_cast<std::uint16_t>(fields.collection.size()));
    append_big(*out, static_cast<std::uint32_t>(id.size()));
    append_big(*out, static_cast<std::uint32_t>(lsid.size()));
    append_big(*out, static_cast<std::uint32_t>(payload.size()));
    out->append(fields.db).append(fields.collection).append(id).append(lsid).append(payload);
    return out;
}

Result<OplogEntry> OplogEntry::decode(bson::Timestamp time, std::uint32_t sub,
                                      std::shared_ptr<const std::string> bytes) {
    const std::string& in = *bytes;
    if (in.empty()) return damaged(time, sub, "it is empty");
    if (static_cast<std::uint8_t>(in[0]) != kEntryVersion) {
        return damaged(time, sub,
                       fmt::format("version {} is not known, expected {}",
                                   static_cast<std::uint8_t>(in[0]), kEntryVersion));
    }
    if (in.size() < kEntryHeaderBytes) return damaged(time, sub, "it ends inside its header");
    if (static_cast<std::uint8_t>(in[1]) != kFormInline)
        return damaged(time, sub, "its form is not known");
    if (!known_kind(in[2])) return damaged(time, sub, "its kind is not known");

    OplogEntry entry;
    entry.time_ = time;
    entry.sub_ = sub;
    entry.kind_ = static_cast<OpKind>(in[2]);
    const auto id_type = static_cast<bson::Type>(static_cast<std::uint8_t>(in[3]));
    const char* at = in.data() + 4;
    entry.collection_id_ = load_big<std::uint32_t>(at);
    std::copy_n(at + 4, entry.uuid_.size(), reinterpret_cast<char*>(entry.uuid_.data()));
    entry.wall_ = {static_cast<std::int64_t>(load_big<std::uint64_t>(at + 20))};
    entry.txn_number_ = static_cast<std::int64_t>(load_big<std::uint64_t>(at + 28));
    entry.stmt_id_ = static_cast<std::int32_t>(load_big<std::uint32_t>(at + 36));
    const std::size_t db = load_big<std::uint16_t>(at + 40);
    const std::size_t collection = load_big<std::uint16_t>(at + 42);
    const std::size_t id = load_big<std::uint32_t>(at + 44);
    const std::size_t lsid = load_big<std::uint32_t>(at + 48);
    const std::size_t payload = load_big<std::uint32_t>(at + 52);
    if (kEntryHeaderBytes + db + collection + id + lsid + payload != in.size())
        return damaged(time, sub, "its lengths do not add up");

    auto take = [rest =
                     std::string_view(in).substr(kEntryHeaderBytes)](std::size_t length) mutable {
        const auto part = rest.substr(0, length);
        rest.remove_prefix(length);
        return part;
    };
    const auto is_document = [](std::string_view part) {
        return part.size() >= 5 && bson::DocumentView(part).size_bytes() == part.size();
    };
    entry.db_ = take(db);
    entry.collection_ = take(collection);
    const auto id_bytes = take(id);
    if (id_type != bson::Type::Missing) {
        entry.id_ = bson::ValueView(id_type, reinterpret_cast<const std::uint8_t*>(id_bytes.data()),
                                    id_bytes.size());
    }
    const auto lsid_bytes = take(lsid);
    const auto payload_bytes = take(payload);
    if (lsid != 0) {
        if (!is_document(lsid_bytes)) return damaged(time, sub, "its session id is not a document");
        entry.lsid_ = bson::DocumentView(lsid_bytes);
    }
    if (!is_document(payload_bytes)) return damaged(time, sub, "its payload is not a document");
    entry.payload_ = bson::DocumentView(payload_bytes);
    entry.bytes_ = std::move(bytes);
    return entry;
}

}  // namespace angelia::engine
