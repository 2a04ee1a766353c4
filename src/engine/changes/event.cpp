#include "engine/changes/event.h"

#include <angelia/bson/builder.h>

#include <array>

namespace angelia::engine::changes {
namespace {

struct CommandRow {
    std::string_view command;  ///< first field of the entry's payload
    Operation operation;
};
constexpr CommandRow kCommandRows[] = {
    {"drop", Operation::Drop},
    {"dropDatabase", Operation::DropDatabase},
    {"renameCollection", Operation::Rename},
    {"create", Operation::Create},
    {"createIndexes", Operation::CreateIndexes},
    {"dropIndexes", Operation::DropIndexes},
    {"collMod", Operation::Modify},
};

constexpr std::array<std::string_view, kOperationCount> kOperationNames = {
    "none",   "insert", "update",        "replace",     "delete", "drop",       "dropDatabase",
    "rename", "create", "createIndexes", "dropIndexes", "modify", "invalidate",
};

Operation command_operation(const OplogEntry& entry) {
    const auto first = entry.payload().begin();
    if (first == entry.payload().end()) return Operation::None;
    for (const CommandRow& row : kCommandRows) {
        if (row.command == first->key) return row.operation;
    }
    return Operation::None;
}

void add_document_or_empty(bson::Builder& b, std::string_view key, bson::ValueView value) {
    b.add(key, value.get_document().value_or(bson::DocumentView()));
}

void add_array_or_empty(bson::Builder& b, std::string_view key, bson::ValueView value) {
    b.add_array(key, value.get_array().value_or(bson::DocumentView()));
}

void add_update_description(bson::Builder& b, bson::DocumentView payload, bool expanded) {
    b.open("updateDescription");
    add_document_or_empty(b, "updatedFields", payload["updatedFields"]);
    add_array_or_empty(b, "removedFields", payload["removedFields"]);
    add_array_or_empty(b, "truncatedArrays", payload["truncatedArrays"]);
    if (expanded) add_document_or_empty(b, "disambiguatedPaths", payload["disambiguatedPaths"]);
    b.close();
}

/// What a command entry says behind its name.
void add_operation_description(bson::Builder& b, bson::DocumentView payload, Operation operation) {
    if (operation == Operation::Modify) {
        add_document_or_empty(b, "operationDescription", payload["change"]);
        add_document_or_empty(b, "stateBeforeChange", payload["before"]);
        return;
    }
    b.open("operationDescription");
    auto field = payload.begin();
    for (++field; field != payload.end(); ++field) b.add(field->key, field->value);
    b.close();
}

void add_namespace(bson::Builder& b, const EventNamespace& ns) {
    b.open("ns").add("db", ns.db);
    if (!ns.collection.empty()) b.add("coll", ns.collection);
    b.close();
}

void add_image(bson::Builder& b, std::string_view key, bson::DocumentView image) {
    if (image.empty()) {
        b.add(key, bson::Null{});
    } else {
        b.add(key, image);
    }
}

bool has_document_key(Operation operation) {
    return operation == Operation::Insert || operation == Operation::Update ||
           operation == Operation::Replace || operation == Operation::Delete;
}

void add_details(bson::Builder& b, const OplogEntry& entry, Operation operation,
                 const EventShape& shape) {
    if (operation == Operation::Insert || operation == Operation::Replace)
        b.add("fullDocument", entry.payload());
    if (operation == Operation::Update) {
        add_update_description(b, entry.payload(), shape.expanded);
        if (shape.after_image) add_image(b, "fullDocument", entry.after_image());
    }
    if (shape.before_image && has_document_key(operation) && operation != Operation::Insert)
        add_image(b, "fullDocumentBeforeChange", entry.before_image());
    if (operation == Operation::Rename) b.add("to", entry.payload()["to"]);
    if (is_expanded_only(operation) || (operation == Operation::Rename && shape.expanded))
        add_operation_description(b, entry.payload(), operation);
}

void add_head(bson::Builder& b, const ResumeToken& token, Operation operation,
              const OplogEntry& entry) {
    b.open("_id").add("_data", token.to_hex()).close();
    b.add("operationType", operation_name(operation));
    b.add("clusterTime", entry.time());
    b.add("wallTime", entry.wall());
    if (entry.in_transaction() && operation != Operation::Invalidate) {
        b.add("lsid", entry.lsid()).add("txnNumber", entry.txn_number());
    }
}

}  // namespace

std::string_view operation_name(Operation operation) {
    return kOperationNames[static_cast<std::size_t>(operation)];
}

bool is_expanded_only(Operation operation) {
    return operation == Operation::Create || operation == Operation::CreateIndexes ||
           operation == Operation::DropIndexes || operation == Operation::Modify;
}

Operation operation_of(const OplogEntry& entry) {
    switch (entry.kind()) {
        case OpKind::Insert:
            return Operation::Insert;
        case OpKind::Update:
            return Operation::Update;
        case OpKind::Replace:
            return Operation::Replace;
        case OpKind::Delete:
            return Operation::Delete;
        case OpKind::Command:
            return command_operation(entry);
        case OpKind::Noop:
            break;
    }
    return Operation::None;
}

EventNamespace namespace_of(const OplogEntry& entry) {
    EventNamespace ns{entry.db(), entry.collection()};
    if (entry.kind() != OpKind::Command) return ns;
    const auto to = entry.payload()["to"].get_document();
    if (to && command_operation(entry) == Operation::Rename) {
        ns.to_db = (*to)["db"].get_string().value_or(std::string_view());
        ns.to_collection = (*to)["coll"].get_string().value_or(std::string_view());
    }
    return ns;
}

bson::Document encode_event(const OplogEntry& entry, Operation operation, const EventShape& shape,
                            const StoreId& store) {
    constexpr std::size_t kHeadBytes =
        512;  // everything but the payload, for the usual lengths of names
    std::string buffer;
    buffer.reserve(entry.payload().size_bytes() + kHeadBytes +
                   (shape.before_image ? entry.before_image().size_bytes() : 0) +
                   (shape.after_image ? entry.after_image().size_bytes() : 0));
    bson::Builder b(std::move(buffer));
    add_head(b, ResumeToken::event(entry.time(), entry.sub(), store), operation, entry);
    const EventNamespace ns = namespace_of(entry);
    if (shape.expanded && !ns.collection.empty()) {
        const Uuid uuid = entry.uuid();
        b.add("collectionUUID",
              bson::BinaryView{4, {reinterpret_cast<const char*>(uuid.data()), uuid.size()}});
    }
    add_namespace(b, ns);
    if (has_document_key(operation)) b.open("documentKey").add("_id", entry.id()).close();
    add_details(b, entry, operation, shape);
    return b.take();
}

bson::Document encode_invalidate(const OplogEntry& entry, const StoreId& store) {
    bson::Builder b;
    add_head(b, ResumeToken::invalidate(entry.time(), entry.sub(), store), Operation::Invalidate,
             entry);
    return b.take();
}

bson::Document with_full_document(bson::DocumentView event,
                                  const std::optional<bson::Document>& document) {
    std::string buffer;
    buffer.reserve(event.size_bytes() + (document ? document->size_bytes() : 0) + 32);
    bson::Builder b(std::move(buffer));
    b.add_all(event);
    if (document) {
        b.add("fullDocument", *document);
    } else {
        b.add("fullDocument", bson::Null{});
    }
    return b.take();
}

bson::Document encode_probe(Operation operation, const EventNamespace& ns) {
    bson::Builder b;
    b.add("operationType", operation_name(operation));
    if (operation != Operation::Invalidate) add_namespace(b, ns);
    return b.take();
}

}  // namespace angelia::engine::changes
