// libbson's opinion about bytes, for tests and fuzzing: a second reader, written by others.
// bson_validate() forgets corruption that it meets inside sub-documents, so this walks with its
// iterator instead.
#pragma once

#include <bson/bson.h>

#include <cstdint>
#include <cstring>
#include <string_view>

namespace angelia::bson::oracle {

inline bool libbson_walks(const bson_t* document);

inline bool libbson_walks_bytes(const std::uint8_t* data, std::uint32_t size) {
    bson_t view;
    return bson_init_static(&view, data, size) && libbson_walks(&view);
}

inline bool libbson_likes_text(const char* text, std::size_t size) {
    // It takes the overlong form of U+0000 that Java writes; UTF-8 does not know it.
    return bson_utf8_validate(text, size, true) &&
           std::string_view(text, size).find("\xC0\x80") == std::string_view::npos;
}

inline bool libbson_likes_value(const bson_iter_t* at) {
    std::uint32_t size = 0;
    const std::uint8_t* data = nullptr;
    switch (bson_iter_type(at)) {
        case BSON_TYPE_UTF8: {
            const char* text = bson_iter_utf8(at, &size);
            return libbson_likes_text(text, size);
        }
        case BSON_TYPE_CODE: {
            const char* text = bson_iter_code(at, &size);
            return libbson_likes_text(text, size);
        }
        case BSON_TYPE_SYMBOL: {
            const char* text = bson_iter_symbol(at, &size);
            return libbson_likes_text(text, size);
        }
        case BSON_TYPE_DBPOINTER: {
            const char* text = nullptr;
            bson_iter_dbpointer(at, &size, &text, nullptr);
            return libbson_likes_text(text, size);
        }
        case BSON_TYPE_REGEX: {
            const char* options = nullptr;
            const char* pattern = bson_iter_regex(at, &options);
            return libbson_likes_text(pattern, std::strlen(pattern)) &&
                   libbson_likes_text(options, std::strlen(options));
        }
        case BSON_TYPE_CODEWSCOPE: {
            std::uint32_t scope_size = 0;
            const char* text = bson_iter_codewscope(at, &size, &scope_size, &data);
            // Its iterator does not look at the zero that ends this one kind of string.
            return text[size] == 0 && libbson_likes_text(text, size) &&
                   libbson_walks_bytes(data, scope_size);
        }
        case BSON_TYPE_DOCUMENT:
            bson_iter_document(at, &size, &data);
            return libbson_walks_bytes(data, size);
        case BSON_TYPE_ARRAY:
            bson_iter_array(at, &size, &data);
            return libbson_walks_bytes(data, size);
        default:
            return true;
    }
}

inline bool libbson_walks(const bson_t* document) {
    bson_iter_t at;
    if (!bson_iter_init(&at, document)) return false;
    while (bson_iter_next(&at)) {
        const char* key = bson_iter_key(&at);
        if (!libbson_likes_text(key, std::strlen(key)) || !libbson_likes_value(&at)) return false;
    }
    return at.err_off == 0;
}

inline bool libbson_accepts(std::string_view bytes) {
    return libbson_walks_bytes(reinterpret_cast<const std::uint8_t*>(bytes.data()),
                               static_cast<std::uint32_t>(bytes.size()));
}

}  // namespace angelia::bson::oracle
