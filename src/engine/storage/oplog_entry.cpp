// Encoding of oplog entries. The layout is a contract: docs/formats/oplog.md.
#include "engine/changes/oplog.h"
#include "engine/storage/byte_order.h"

#include <fmt/format.h>

namespace angelia::engine {
namespace {

using storage::append_big;
using storage::load_big;

// Version 2 has a byte of flags behind the header and what they announce behind the payload. An
// entry without flags is written as version 1, as it always was.
constexpr std::uint8_t kPlainVersion = 1;
constexpr std::uint8_t kFlaggedVersion = 2;
constexpr std::uint8_t kFormInline = 0;  // 1 is reserved: the document by reference to its record
constexpr std::uint8_t kInTransaction = 1;
constexpr std::uint8_t kBeforeImage = 2;
constexpr std::uint8_t kAfterImage = 4;
constexpr std::uint8_t kFlagsKnown = kInTransaction | kBeforeImage | kAfterImage;
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
    const std::uint8_t flags =
        static_cast<std::uint8_t>((fields.in_transaction ? kInTransaction : 0) |
                                  (fields.before_image.empty() ? 0 : kBeforeImage) |
                                  (fields.after_image.empty() ? 0 : kAfterImage));
    ANGELIA_CHECK(fields.db.size() <= 0xFFFF && fields.collection.size() <= 0xFFFF);
    auto out = std::make_shared<std::string>();
    out->reserve(kEntryHeaderBytes + fields.db.size() + fields.collection.size() + id.size() +
                 lsid.size() + payload.size() + 1 + fields.before_image.size_bytes() +
                 fields.after_image.size_bytes());
    append_big(*out, flags == 0 ? kPlainVersion : kFlaggedVersion);
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
    if (flags != 0) append_big(*out, flags);
    out->append(fields.db).append(fields.collection).append(id).append(lsid).append(payload);
    // Documents begin with their length.
    if (!fields.before_image.empty()) out->append(fields.before_image.bytes());
    if (!fields.after_image.empty()) out->append(fields.after_image.bytes());
    return out;
}

Result<OplogEntry> OplogEntry::decode(bson::Timestamp time, std::uint32_t sub,
                                      std::shared_ptr<const std::string> bytes) {
    const std::string& in = *bytes;
    if (in.empty()) return damaged(time, sub, "it is empty");
    const auto version = static_cast<std::uint8_t>(in[0]);
    if (version != kPlainVersion && version != kFlaggedVersion) {
        return damaged(
            time, sub,
            fmt::format("version {} is not known, expected at most {}", version, kFlaggedVersion));
    }
    const std::size_t header = kEntryHeaderBytes + (version == kFlaggedVersion ? 1 : 0);
    if (in.size() < header) return damaged(time, sub, "it ends inside its header");
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
    const std::uint8_t flags =
        version == kFlaggedVersion ? static_cast<std::uint8_t>(in[kEntryHeaderBytes]) : 0;
    if ((flags & ~kFlagsKnown) != 0) return damaged(time, sub, "it has flags that are not known");
    const bool images = (flags & (kBeforeImage | kAfterImage)) != 0;
    const std::size_t plain = header + db + collection + id + lsid + payload;
    if (images ? plain > in.size() : plain != in.size())
        return damaged(time, sub, "its lengths do not add up");

    std::string_view rest = std::string_view(in).substr(header);
    const auto take = [&rest](std::size_t length) {
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
    const auto take_image = [&](std::uint8_t flag, bson::DocumentView& image) {
        if ((flags & flag) == 0) return true;
        if (rest.size() < 5) return false;
        const std::size_t length = bson::DocumentView(rest).size_bytes();
        if (length < 5 || length > rest.size()) return false;
        image = bson::DocumentView(take(length));
        return true;
    };
    if (!take_image(kBeforeImage, entry.before_image_) ||
        !take_image(kAfterImage, entry.after_image_) || !rest.empty())
        return damaged(time, sub, "its images are not documents");
    entry.in_transaction_ = (flags & kInTransaction) != 0;
    entry.bytes_ = std::move(bytes);
    return entry;
}

}  // namespace angelia::engine
