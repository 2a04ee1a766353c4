#include "engine/command/write_statements.h"

namespace angelia::engine::command {

Result<ConditionalWrite> make_write(const Namespace& ns, const UpdateStatement& s) {
    ConditionalWrite write;
    write.kind = WriteKind::Update;
    write.ns = ns;
    ANGELIA_TRY_ASSIGN(auto filter, query::Matcher::parse(s.filter));
    ANGELIA_TRY_ASSIGN(
        auto update,
        query::Update::parse(
            s.update, {.array_filters = s.array_filters, .multi = s.multi, .upsert = s.upsert}));
    write.filter = std::make_shared<const query::Matcher>(std::move(filter));
    write.update = std::make_shared<const query::Update>(std::move(update));
    write.sort = bson::Document(s.sort);
    write.hint = bson::Value(s.hint);
    write.multi = s.multi;
    write.upsert = s.upsert;
    return write;
}

Result<ConditionalWrite> make_write(const Namespace& ns, const DeleteStatement& s) {
    ConditionalWrite write;
    write.kind = WriteKind::Delete;
    write.ns = ns;
    ANGELIA_TRY_ASSIGN(auto filter, query::Matcher::parse(s.filter));
    write.filter = std::make_shared<const query::Matcher>(std::move(filter));
    write.hint = bson::Value(s.hint);
    write.multi = s.multi;
    return write;
}

ConditionalWrite make_insert(const Namespace& ns, bson::DocumentView document) {
    ConditionalWrite write;
    write.kind = WriteKind::Insert;
    write.ns = ns;
    write.document = bson::Document(document);
    return write;
}

}  // namespace angelia::engine::command
