#include "engine/changes/subscription_index.h"

#include "engine/query/key_encoding.h"

namespace angelia::engine::changes {
namespace {

constexpr std::string_view kDocumentPath = "fullDocument.";

void add_key(std::vector<std::string>& keys, bson::ValueView value) {
    std::string key;
    query::append_key(key, value);
    keys.push_back(std::move(key));
}

void add_text_key(std::vector<std::string>& keys, std::string_view text) {
    const bson::Value value = bson::value(text);
    add_key(keys, value.view());
}

/// The values at a dotted path of a document, an array's elements each for itself. False when the
/// path leads through an array.
bool document_values(bson::DocumentView document, std::string_view path,
                     std::vector<std::string>& keys) {
    for (;;) {
        const std::size_t dot = path.find('.');
        const bson::ValueView value = document.find(path.substr(0, dot));
        if (dot == std::string_view::npos) {
            if (const auto elements = value.get_array()) {
                for (const bson::Element& e : *elements) add_key(keys, e.value);
            } else if (!value.is_missing()) {
                add_key(keys, value);
            }
            return true;
        }
        if (value.is(bson::Type::Array)) return false;
        if (!value.is(bson::Type::Document)) return true;
        document = value.as_document();
        path.remove_prefix(dot + 1);
    }
}

}  // namespace

bool pinned_values(const OplogEntry& entry, std::string_view path, std::vector<std::string>& keys) {
    if (path == "ns.coll") {
        add_text_key(keys, entry.collection());
    } else if (path == "ns.db") {
        add_text_key(keys, entry.db());
    } else if (path == "documentKey._id") {
        add_key(keys, entry.id());
    } else {
        return document_values(entry.payload(), path.substr(kDocumentPath.size()), keys);
    }
    return true;
}

Operations pinned_operations(std::string_view path) {
    constexpr Operations kDocuments =
        operation_bit(Operation::Insert) | operation_bit(Operation::Update) |
        operation_bit(Operation::Replace) | operation_bit(Operation::Delete);
    if (path == "ns.coll" || path == "ns.db") return ~Operations{0};
    if (path == "documentKey._id") return kDocuments;
    if (path.substr(0, kDocumentPath.size()) == kDocumentPath)
        return operation_bit(Operation::Insert) | operation_bit(Operation::Replace);
    return 0;
}

SubscriptionIndex::Group& SubscriptionIndex::group_for(const Interest& interest) {
    for (Group& group : groups_)
        if (group.operations == interest.operations && group.path == interest.path) return group;
    Group& group = groups_.emplace_back();
    group.operations = interest.operations;
    group.path = interest.path;
    return group;
}

void SubscriptionIndex::add(Subscription& subscription, const std::vector<Interest>& interests,
                            Entry& entry) {
    const auto place = [&](Group& group, List& list, const std::string* key) {
        ++group.members;
        ++list.members;
        entry.places_.push_back({&subscription, &group, &list, key, 0});
    };
    for (const Interest& interest : interests) {
        Group& group = group_for(interest);
        if (interest.path.empty()) place(group, group.all, nullptr);
        for (const std::string& key : interest.keys) {
            const auto row = group.by_key.try_emplace(key).first;
            place(group, row->second, &row->first);
        }
    }
}

void SubscriptionIndex::remove(Entry& entry) {
    for (const Place& place : entry.places_) {
        --place.list->members;
        --place.group->members;
        if (place.list->members == 0 && place.key != nullptr)
            place.group->by_key.erase(place.group->by_key.find(*place.key));
        if (place.group->members == 0)
            groups_.remove_if([&](const Group& group) { return &group == place.group; });
    }
    entry.places_.clear();
}

void SubscriptionIndex::watch(Entry& entry) {
    for (Place& place : entry.places_) {
        place.slot = place.list->watching.size();
        place.list->watching.push_back(&place);
        ++place.group->watching;
    }
}

void SubscriptionIndex::unwatch(Entry& entry) {
    for (const Place& place : entry.places_) {
        auto& watching = place.list->watching;
        Place* const last = watching.back();
        watching[place.slot] = last;
        last->slot = place.slot;
        watching.pop_back();
        --place.group->watching;
    }
}

}  // namespace angelia::engine::changes
