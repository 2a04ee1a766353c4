// Aligned, plain tables for people.
#pragma once

#include <string>
#include <vector>

namespace angelia::cli {

/// Rows of equal width; the first is the heading. Columns whose cells are all numbers stand right.
/// Ends every row with a newline.
std::string format_table(const std::vector<std::vector<std::string>>& rows);

/// Number of columns a terminal uses for UTF-8 text (code points; wide scripts may differ).
std::size_t display_width(const std::string& text);

}  // namespace angelia::cli
