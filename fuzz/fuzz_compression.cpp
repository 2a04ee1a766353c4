// OP_COMPRESSED as anybody may send it: one message of the input's length. Nothing crashes, what is
// accepted has the announced size; and what we pack comes back.
#include "fuzz_check.h"

#include "wire/compression.h"

#include <cstring>
#include <string>

namespace wire = angelia::wire;

namespace {

void store(std::string& bytes, std::size_t at, std::int32_t v) {
    std::memcpy(bytes.data() + at, &v, sizeof v);
}

void check_packing(std::string_view input) {
    std::string message(wire::kHeaderBytes, '\0');
    message.append(input);
    store(message, 0, static_cast<std::int32_t>(message.size()));
    store(message, 12, wire::opcode::kMessage);
    for (const auto compressor :
         {wire::Compressor::Snappy, wire::Compressor::Zlib, wire::Compressor::Zstd}) {
        const auto packed = wire::pack_message(compressor, message, "");
        if (!packed) continue;
        FUZZ_CHECK(packed->size() < message.size());
        const auto unpacked = wire::unpack_message(*packed);
        FUZZ_CHECK(unpacked.has_value() && unpacked->view() == message);
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view input(reinterpret_cast<const char*>(data), size);
    check_packing(input);
    if (size < wire::kHeaderBytes) return 0;
    std::string bytes(input);
    store(bytes, 0, static_cast<std::int32_t>(size));
    store(bytes, 12, wire::opcode::kCompressed);
    const auto unpacked = wire::unpack_message(bytes);
    if (!unpacked) {
        FUZZ_CHECK(!unpacked.error().message.empty());
        return 0;
    }
    std::int32_t announced = 0;
    std::memcpy(&announced, bytes.data() + wire::kHeaderBytes + 4, sizeof announced);
    FUZZ_CHECK(unpacked->size == static_cast<std::size_t>(announced) + wire::kHeaderBytes);
    const auto header = wire::read_header(unpacked->view());
    FUZZ_CHECK(wire::length_allowed(header) && header.op_code != wire::opcode::kCompressed);
    const auto message = wire::parse_message(unpacked->view());
    FUZZ_CHECK(!message.error || !message.error->message.empty());
    return 0;
}
