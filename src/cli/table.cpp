#include "cli/table.h"

#include <algorithm>

namespace angelia::cli {
namespace {

bool is_number(const std::string& cell) {
    return !cell.empty() && std::all_of(cell.begin(), cell.end(), [](char c) {
        return (c >= '0' && c <= '9') || c == '.' || c == '-' || c == ' ';
    });
}

}  // namespace

std::size_t display_width(const std::string& text) {
    return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
        return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
    }));
}

std::string format_table(const std::vector<std::vector<std::string>>& rows) {
    if (rows.empty()) return {};
    const std::size_t columns = rows.front().size();
    std::vector<std::size_t> width(columns, 0);
    std::vector<bool> right(columns, rows.size() > 1);
    for (std::size_t r = 0; r < rows.size(); ++r) {
        for (std::size_t c = 0; c < columns; ++c) {
            width[c] = std::max(width[c], display_width(rows[r][c]));
            if (r > 0 && !is_number(rows[r][c])) right[c] = false;
        }
    }
    std::string out;
    for (const auto& row : rows) {
        std::string line;
        for (std::size_t c = 0; c < columns; ++c) {
            const std::string pad(width[c] - display_width(row[c]), ' ');
            if (c > 0) line += "  ";
            line += right[c] ? pad + row[c] : row[c] + pad;
        }
        line.erase(line.find_last_not_of(' ') + 1);
        out += line + "\n";
    }
    return out;
}

}  // namespace angelia::cli
