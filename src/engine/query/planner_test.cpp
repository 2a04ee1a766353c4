#include "engine/query/planner.h"

#include "engine/query/test_json.h"

#include <angelia/bson/builder.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

namespace angelia::engine::query {
namespace {

using testing_support::from;
using testing_support::outcome_code;
using testing_support::text;

// ---- an index in memory, and an executor as the engine has one

struct MemoryIndex {
    IndexInfo info;
    std::set<std::pair<std::string, std::size_t>> entries;  // key, position of the document
};

MemoryIndex build_index(IndexInfo info, const std::vector<bson::Document>& documents) {
    MemoryIndex index{std::move(info), {}};
    for (std::size_t i = 0; i < documents.size(); ++i) {
        if (index.info.partial_filter && !index.info.partial_filter->matches(documents[i]))
            continue;
        const auto keys =
            index_keys(index.info.pattern, documents[i], index.info.sparse).value_or_throw();
        index.info.multikey = index.info.multikey || keys.multikey;
        for (const std::string& key : keys.keys) index.entries.emplace(key, i);
    }
    return index;
}

std::vector<std::size_t> candidates(const Plan& plan, const std::vector<MemoryIndex>& indexes,
                                    const std::vector<bson::Document>& documents,
                                    const Matcher& matcher) {
    std::vector<std::size_t> found;
    if (plan.kind == Plan::Kind::CollectionScan) {
        for (std::size_t i = 0; i < documents.size(); ++i) found.push_back(i);
        if (plan.reverse) std::reverse(found.begin(), found.end());
    } else if (plan.kind == Plan::Kind::IdLookup) {
        for (std::size_t i = 0; i < documents.size(); ++i) {
            if (Matcher::parse(bson::make("_id", *matcher.id_equality()))
                    .value_or_throw()
                    .matches(documents[i]))
                found.push_back(i);
        }
    } else if (plan.kind == Plan::Kind::IndexScan) {
        const auto& entries = indexes[plan.index].entries;
        for (const KeyRange& range : plan.ranges) {
            const auto begin = entries.lower_bound({range.lower, 0});
            const auto end =
                range.upper.empty() ? entries.end() : entries.lower_bound({range.upper, 0});
            std::vector<std::size_t> part;
            for (auto it = begin; it != end; ++it) part.push_back(it->second);
            if (plan.reverse) std::reverse(part.begin(), part.end());
            found.insert(found.end(), part.begin(), part.end());
        }
    }
    return found;
}

struct Executed {
    std::vector<std::size_t> documents;
    bool repeated = false;  // a document came twice though the plan does not say multikey
};

Executed execute(const Plan& plan, const std::vector<MemoryIndex>& indexes,
                 const std::vector<bson::Document>& documents, const Matcher& matcher) {
    Executed result;
    std::set<std::size_t> seen;
    for (const std::size_t i : candidates(plan, indexes, documents, matcher)) {
        if (!seen.insert(i).second) {
            result.repeated = result.repeated || !plan.multikey;
            continue;
        }
        if (matcher.matches(documents[i])) result.documents.push_back(i);
    }
    return result;
}

std::vector<IndexInfo> infos(const std::vector<MemoryIndex>& indexes) {
    std::vector<IndexInfo> result;
    for (const MemoryIndex& index : indexes) result.push_back(index.info);
    return result;
}

// ---- random documents and filters over few names and values, so that they meet

const char* const kScalars[] = {"0",
                                "1",
                                "2",
                                "3",
                                "2.5",
                                "{\"$numberLong\": \"2\"}",
                                "{\"$numberDecimal\": \"2.5\"}",
                                "\"a\"",
                                "\"b\"",
                                "null",
                                "true",
                                "false",
                                "{\"$numberDouble\": \"NaN\"}",
                                "{\"$date\": {\"$numberLong\": \"5\"}}",
                                "{\"$minKey\": 1}",
                                "{\"$maxKey\": 1}"};
const char* const kFields[] = {"a", "b", "c"};
const char* const kPaths[] = {"a",   "b",     "c",     "a.b", "a.c", "b.a",
                              "a.0", "a.0.b", "a.b.c", "c.1", "a.b", "a.c"};

/// Each seed speaks of a few paths and values only.
class Dice {
  public:
    explicit Dice(unsigned seed) : random_(seed) {
        for (int i = 0; i < 3; ++i) paths_.push_back(pick(kPaths));
        for (int i = 0; i < 5; ++i) scalars_.push_back(pick(kScalars));
    }
    std::string path() { return paths_[static_cast<std::size_t>(below(3))]; }
    std::string scalar() { return scalars_[static_cast<std::size_t>(below(5))]; }
    int below(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
    bool one_in(int n) { return below(n) == 0; }
    template <std::size_t N>
    std::string pick(const char* const (&list)[N]) {
        return list[below(static_cast<int>(N))];
    }

  private:
    std::mt19937 random_;
    std::vector<std::string> paths_;
    std::vector<std::string> scalars_;
};

std::string random_value(Dice& dice, int depth) {
    const int kind = depth == 0 ? 0 : dice.below(8);
    if (kind < 3) return dice.scalar();
    if (kind < 6) {
        std::string array = "[";
        const int count = dice.below(4);
        for (int i = 0; i < count; ++i) array += (i ? ", " : "") + random_value(dice, depth - 1);
        return array + "]";
    }
    std::string object = "{";
    bool first = true;
    for (const char* field : {"a", "b", "c", "0"}) {
        if (!dice.one_in(field[0] == '0' ? 12 : 2)) continue;
        object +=
            std::string(first ? "" : ", ") + "\"" + field + "\": " + random_value(dice, depth - 1);
        first = false;
    }
    return object + "}";
}

bson::Document random_document(Dice& dice, int id, bool arrays) {
    for (;;) {
        std::string json = "{\"_id\": " + std::to_string(id);
        for (const char* field : kFields) {
            if (dice.one_in(4)) continue;
            json += std::string(", \"") + field + "\": " + random_value(dice, 3);
        }
        auto document = from(json + "}");
        const bool has_array = bson::to_json(document.view()).find('[') != std::string::npos;
        if (arrays || !has_array) return document;
    }
}

std::string random_condition(Dice& dice) {
    switch (dice.below(14)) {
        case 0:
            return "{\"$gt\": " + dice.scalar() + "}";
        case 1:
            return "{\"$gte\": " + dice.scalar() + "}";
        case 2:
            return "{\"$lt\": " + dice.scalar() + "}";
        case 3:
            return "{\"$lte\": " + dice.scalar() + "}";
        case 4:
            return "{\"$gt\": " + dice.scalar() + ", \"$lt\": " + dice.scalar() + "}";
        case 5:
            return "{\"$in\": [" + random_value(dice, 1) + ", " + dice.scalar() + "]}";
        case 6:
            return "{\"$ne\": " + dice.scalar() + "}";
        case 7:
            return dice.one_in(2) ? "{\"$exists\": true}" : "{\"$exists\": false}";
        case 8:
            return "{\"$elemMatch\": {\"$gte\": " + dice.scalar() + ", \"$lte\": " + dice.scalar() +
                   "}}";
        case 9:
            return "{\"$elemMatch\": {\"b\": " + dice.scalar() + ", \"c\": " + dice.scalar() + "}}";
        case 10:
            return "{\"$all\": [" + dice.scalar() + ", " + dice.scalar() + "]}";
        case 11:
            return dice.one_in(2) ? "{\"$size\": 1}" : "{\"$type\": \"number\"}";
        case 12:
            return dice.one_in(2) ? "{\"$not\": {\"$gt\": 1}}" : "{\"$mod\": [2, 0]}";
        default:
            return random_value(dice, 2);
    }
}

std::string random_filter(Dice& dice, int depth) {
    std::string json = "{";
    const int count = 1 + dice.below(3);
    for (int i = 0; i < count; ++i) {
        if (i > 0) json += ", ";
        if (depth > 0 && dice.one_in(6)) {
            const char* const groups[] = {"$or", "$and", "$nor"};
            json += "\"" + dice.pick(groups) + "\": [" + random_filter(dice, depth - 1) + ", " +
                    random_filter(dice, depth - 1) + "]";
        } else {
            json += "\"" + dice.path() + "\": " + random_condition(dice);
        }
    }
    return json + "}";
}

std::string random_pattern(Dice& dice) {
    std::string json = "{";
    std::set<std::string> used;
    const int count = 1 + dice.below(3);
    for (int i = 0; i < count; ++i) {
        const std::string path = dice.path();
        if (!used.insert(path).second) continue;
        json +=
            (used.size() > 1 ? ", " : "") + ("\"" + path + "\": ") + (dice.one_in(3) ? "-1" : "1");
    }
    return json + "}";
}

/// Nothing when a document has parallel arrays under the pattern: such an index cannot be.
std::optional<MemoryIndex> random_index(Dice& dice, const std::vector<bson::Document>& documents) {
    IndexInfo info;
    info.pattern = IndexKeyPattern::parse(from(random_pattern(dice))).value_or_throw();
    info.sparse = dice.one_in(4);
    if (!info.sparse && dice.one_in(4)) {
        const char* const filters[] = {R"({"a": {"$exists": true}})",
                                       R"({"b": {"$gt": 1}})",
                                       R"({"c": 2})",
                                       R"({"a": {"$lte": "b"}})",
                                       R"({"$or": [{"a": 1}, {"b": "a"}]})",
                                       R"({"a.b": {"$in": [1, 2]}})"};
        info.partial_filter = Matcher::parse(from(dice.pick(filters))).value_or_throw();
    }
    for (const bson::Document& d : documents) {
        if (!index_keys(info.pattern, d, info.sparse)) return std::nullopt;
    }
    return build_index(std::move(info), documents);
}

/// The first difference between the answers with and without indexes, or nothing.
std::string difference(unsigned seed, int* index_scans, int* index_sorts) {
    Dice dice(seed);
    const bool arrays = !dice.one_in(3);
    std::vector<bson::Document> documents;
    for (int i = 0; i < 25; ++i) documents.push_back(random_document(dice, i, arrays));
    std::vector<MemoryIndex> indexes;
    for (int i = 0; i < 4; ++i) {
        if (auto index = random_index(dice, documents)) indexes.push_back(std::move(*index));
    }
    const auto known = infos(indexes);
    for (int round = 0; round < 12; ++round) {
        const std::string filter = random_filter(dice, 2);
        const auto matcher = Matcher::parse(from(filter)).value_or_throw();
        const std::string order = dice.one_in(2) ? "{}" : random_pattern(dice);
        const auto sort = SortSpec::parse(from(order)).value_or_throw();
        std::vector<std::size_t> wanted;
        bool sortable = true;
        for (std::size_t i = 0; i < documents.size(); ++i) {
            sortable = sortable && sort.sort_key(documents[i]).has_value();
            if (matcher.matches(documents[i])) wanted.push_back(i);
        }
        if (!sortable) continue;
        const Plan plan = query::plan(matcher, &sort, known).value_or_throw();
        *index_scans += plan.kind == Plan::Kind::IndexScan;
        *index_sorts += plan.kind == Plan::Kind::IndexScan && plan.provides_sort && order != "{}";
        const Executed got = execute(plan, indexes, documents, matcher);
        std::string where = filter + " sort " + order;
        if (plan.kind == Plan::Kind::IndexScan) {
            where += " index " + text(known[plan.index].pattern.to_document()) +
                     (known[plan.index].sparse ? " sparse" : "") +
                     (plan.multikey ? " multikey" : "");
        }
        if (got.repeated) return "a document twice: " + where;
        auto in_order = got.documents;
        std::sort(in_order.begin(), in_order.end());
        if (in_order != wanted) {
            for (const std::size_t i : wanted) {
                if (std::find(in_order.begin(), in_order.end(), i) == in_order.end())
                    return "lost " + text(documents[i]) + " by " + where;
            }
            return "extra documents by " + where;
        }
        if (!plan.provides_sort) continue;
        for (std::size_t i = 1; i < got.documents.size(); ++i) {
            const auto& a = documents[got.documents[i - 1]];
            const auto& b = documents[got.documents[i]];
            if (sort.compare(a, b).value_or_throw() > 0)
                return "order of " + text(a) + " and " + text(b) + " by " + where;
        }
    }
    return {};
}

TEST(Planner, AnswersAreTheSameWithAndWithoutIndexes) {
    int index_scans = 0;
    int index_sorts = 0;
    for (unsigned seed = 1; seed <= 4'000; ++seed) {
        ASSERT_EQ(difference(seed, &index_scans, &index_sorts), "") << "seed " << seed;
    }
    // The test would prove nothing if no index were used.
    EXPECT_GT(index_scans, 5'000);
    EXPECT_GT(index_sorts, 500);
}

// ---- plans that are worth a look of their own

struct NamedIndex {
    const char* name;
    const char* pattern;
    bool sparse = false;
    bool multikey = false;
    const char* partial = nullptr;
};

std::vector<IndexInfo> indexes_of(const std::vector<NamedIndex>& list) {
    std::vector<IndexInfo> result;
    for (const NamedIndex& n : list) {
        IndexInfo info;
        info.name = n.name;
        info.pattern = IndexKeyPattern::parse(from(n.pattern)).value_or_throw();
        info.sparse = n.sparse;
        info.multikey = n.multikey;
        if (n.partial != nullptr)
            info.partial_filter = Matcher::parse(from(n.partial)).value_or_throw();
        result.push_back(std::move(info));
    }
    return result;
}

/// "index 2 ranges sorted backwards", "scan", "id", "nothing".
std::string plan_text(const std::vector<IndexInfo>& indexes, const char* filter,
                      const char* order = "{}", const Hint* hint = nullptr) {
    const auto sort = SortSpec::parse(from(order)).value_or_throw();
    const auto made = plan(Matcher::parse(from(filter)).value_or_throw(), &sort, indexes, hint);
    if (!made) return "error " + outcome_code(made);
    std::string result;
    switch (made->kind) {
        case Plan::Kind::CollectionScan:
            result = "scan";
            break;
        case Plan::Kind::IdLookup:
            result = "id";
            break;
        case Plan::Kind::Nothing:
            result = "nothing";
            break;
        case Plan::Kind::IndexScan:
            result = indexes[made->index].name + " " + std::to_string(made->ranges.size());
            break;
    }
    if (made->provides_sort && !sort.empty()) result += " sorted";
    if (made->reverse) result += " backwards";
    return result;
}

TEST(Planner, PicksTheNarrowestIndex) {
    const auto indexes = indexes_of({{"_id_", R"({"_id": 1})"},
                                     {"a", R"({"a": 1})"},
                                     {"a_b", R"({"a": 1, "b": -1})"},
                                     {"c", R"({"c": 1})"}});
    EXPECT_EQ(plan_text(indexes, R"({})"), "scan");
    EXPECT_EQ(plan_text(indexes, R"({"_id": 5, "a": 1})"), "id");
    EXPECT_EQ(plan_text(indexes, R"({"_id": {"$gt": 5}})"), "_id_ 1");
    EXPECT_EQ(plan_text(indexes, R"({"a": 1})"), "a 1");
    EXPECT_EQ(plan_text(indexes, R"({"a": 1, "b": 2})"), "a_b 1");
    EXPECT_EQ(plan_text(indexes, R"({"a": {"$in": [1, 2, 3]}, "b": {"$gt": 2}})"), "a_b 3");
    EXPECT_EQ(plan_text(indexes, R"({"b": 2})"), "scan");
    EXPECT_EQ(plan_text(indexes, R"({"c": {"$gt": 1}, "a": 2})"), "a 1");
    EXPECT_EQ(plan_text(indexes, R"({"a": {"$in": []}})"), "nothing");
    EXPECT_EQ(plan_text(indexes, R"({"a": {"$gt": 5, "$lt": 3}})"), "nothing");
    EXPECT_EQ(plan_text(indexes, R"({"a": {"$ne": 5}})"), "scan");
    EXPECT_EQ(plan_text(indexes, R"({"$or": [{"a": 1}, {"a": {"$gt": 7}}]})"), "a 2");
    EXPECT_EQ(plan_text(indexes, R"({"$or": [{"a": 1}, {"c": 7}]})"), "scan");
    EXPECT_EQ(plan_text(indexes, R"({"a": null})"), "a 2");
}

TEST(Planner, SortsByIndexForwardsAndBackwards) {
    const auto indexes = indexes_of({{"a_b", R"({"a": 1, "b": -1})"}, {"c", R"({"c": 1})"}});
    EXPECT_EQ(plan_text(indexes, "{}", R"({"c": 1})"), "c 1 sorted");
    EXPECT_EQ(plan_text(indexes, "{}", R"({"c": -1})"), "c 1 sorted backwards");
    EXPECT_EQ(plan_text(indexes, "{}", R"({"a": 1, "b": -1})"), "a_b 1 sorted");
    EXPECT_EQ(plan_text(indexes, "{}", R"({"a": -1, "b": 1})"), "a_b 1 sorted backwards");
    EXPECT_EQ(plan_text(indexes, "{}", R"({"a": 1, "b": 1})"), "scan");
    EXPECT_EQ(plan_text(indexes, "{}", R"({"a": 1})"), "a_b 1 sorted");
    EXPECT_EQ(plan_text(indexes, R"({"a": 5})", R"({"b": 1})"), "a_b 1 sorted backwards");
    EXPECT_EQ(plan_text(indexes, R"({"a": {"$in": [5, 6]}})", R"({"b": 1})"), "a_b 2");
    EXPECT_EQ(plan_text(indexes, R"({"a": {"$in": [5, 6]}})", R"({"a": -1})"),
              "a_b 2 sorted backwards");
    EXPECT_EQ(plan_text(indexes, R"({"c": {"$gte": 1, "$lt": 9}})", R"({"c": 1})"), "c 1 sorted");
    EXPECT_EQ(plan_text(indexes, R"({"a": 1})", R"({"c": 1})"), "a_b 1");
    EXPECT_EQ(plan_text(indexes, R"({"a": 1})", R"({"$natural": -1})"), "scan sorted backwards");
}

TEST(Planner, MultikeyIndexesAreReadWithCare) {
    const auto indexes = indexes_of({{"a", R"({"a": 1})", false, true},
                                     {"x", R"({"x.b": 1, "x.c": 1})", false, true},
                                     {"t_s", R"({"t": 1, "s": 1})", false, true}});
    EXPECT_EQ(plan_text(indexes, R"({"a": {"$gt": 5, "$lt": 3}})"), "a 1");
    EXPECT_EQ(plan_text(indexes, R"({"a": {"$elemMatch": {"$gt": 5, "$lt": 3}}})"), "nothing");
    EXPECT_EQ(plan_text(indexes, R"({"a": {"$gt": 5}})", R"({"a": 1})"), "a 1");
    EXPECT_EQ(plan_text(indexes, "{}", R"({"a": 1})"), "a 1 sorted");
    // The element that has b = 1 need not be the one whose c sorts first.
    EXPECT_EQ(plan_text(indexes, R"({"x.b": 1})", R"({"x.c": 1})"), "x 1");
    EXPECT_EQ(plan_text(indexes, R"({"t": 1})", R"({"s": 1})"), "t_s 1 sorted");
    EXPECT_EQ(plan_text(indexes, R"({"t": 1, "s": {"$gt": 5}})"), "t_s 1");
}

TEST(Planner, SparseAndPartialIndexesServeOnlyWhatTheyHold) {
    const auto indexes = indexes_of({{"s", R"({"s": 1})", true},
                                     {"p", R"({"p": 1})", false, false, R"({"p": {"$gt": 5}})"},
                                     {"m", R"({"m.a": 1, "m.b": 1})", true, true}});
    EXPECT_EQ(plan_text(indexes, R"({"s": 1})"), "s 1");
    EXPECT_EQ(plan_text(indexes, R"({"s": null})"), "scan");
    EXPECT_EQ(plan_text(indexes, R"({"s": {"$in": [1, null]}})"), "scan");
    EXPECT_EQ(plan_text(indexes, "{}", R"({"s": 1})"), "scan");
    EXPECT_EQ(plan_text(indexes, R"({"s": {"$exists": true}})", R"({"s": 1})"), "s 1 sorted");
    EXPECT_EQ(plan_text(indexes, R"({"p": 7})"), "p 1");
    EXPECT_EQ(plan_text(indexes, R"({"p": 3})"), "scan");
    EXPECT_EQ(plan_text(indexes, R"({"p": {"$gte": 6, "$lt": 8}})"), "p 1");
    EXPECT_EQ(plan_text(indexes, R"({"m.a": null, "m.b": {"$exists": true}})"), "scan");
    EXPECT_EQ(plan_text(indexes, R"({"m.b": {"$exists": true}})", R"({"m.a": 1})"), "scan");
}

TEST(Planner, BoundsTheNumberOfRanges) {
    std::string list;
    for (int i = 0; i < 1'500; ++i) list += (i ? ", " : "") + std::to_string(i);
    const auto indexes = indexes_of({{"a", R"({"a": 1})"}, {"b_c", R"({"b": 1, "c": -1})"}});
    EXPECT_EQ(plan_text(indexes, ("{\"a\": {\"$in\": [" + list + "]}}").c_str()), "a 1");
    EXPECT_EQ(plan_text(indexes,
                        ("{\"b\": {\"$in\": [1, 2]}, \"c\": {\"$in\": [" + list + "]}}").c_str()),
              "b_c 2");
}

TEST(Planner, ObeysHints) {
    auto indexes = indexes_of({{"a", R"({"a": 1})"},
                               {"b", R"({"b": 1})", true},
                               {"h", R"({"h": 1})"},
                               {"p", R"({"p": 1})", false, false, R"({"p": 1})"}});
    indexes[2].hidden = true;
    const auto hinted = [&](const char* filter, Hint hint) {
        return plan_text(indexes, filter, "{}", &hint);
    };
    EXPECT_EQ(hinted(R"({"a": 1})", {"b", {}}), "b 1");
    EXPECT_EQ(hinted(R"({"_id": 1})", {"", from(R"({"a": 1})")}), "a 1");
    EXPECT_EQ(hinted(R"({"a": 1})", {"", from(R"({"$natural": -1})")}), "scan backwards");
    EXPECT_EQ(hinted(R"({"a": 1})", {"nope", {}}), "error 2");
    EXPECT_EQ(hinted(R"({"a": 1})", {"", from(R"({"a": -1})")}), "error 2");
    EXPECT_EQ(hinted(R"({"a": 1})", {"h", {}}), "error 2");
    EXPECT_EQ(hinted(R"({"a": 1})", {"p", {}}), "error 2");
    EXPECT_EQ(hinted(R"({"p": 1})", {"p", {}}), "p 1");
    EXPECT_EQ(plan_text(indexes, R"({"h": 1})"), "scan");
    indexes[0].ready = false;
    EXPECT_EQ(plan_text(indexes, R"({"a": 1})"), "scan");
}

TEST(Planner, UndefinedIsFoundAsNull) {
    const std::vector<bson::Document> documents = [] {
        std::vector<bson::Document> list;
        list.push_back(from(R"({"_id": 1, "a": {"$undefined": true}})"));
        list.push_back(from(R"({"_id": 2})"));
        list.push_back(from(R"({"_id": 3, "a": []})"));
        return list;
    }();
    std::vector<MemoryIndex> indexes;
    indexes.push_back(build_index(std::move(indexes_of({{"a", R"({"a": 1})"}})[0]), documents));
    const auto matcher = Matcher::parse(from(R"({"a": null})")).value_or_throw();
    const auto made = plan(matcher, nullptr, infos(indexes)).value_or_throw();
    ASSERT_EQ(made.kind, Plan::Kind::IndexScan);
    EXPECT_EQ(execute(made, indexes, documents, matcher).documents,
              (std::vector<std::size_t>{0, 1}));
}

TEST(Implies, SeesWhatIsCertainOnly) {
    const auto implied = [](const char* query, const char* condition) {
        return implies(Matcher::parse(from(query)).value_or_throw(),
                       Matcher::parse(from(condition)).value_or_throw());
    };
    EXPECT_TRUE(implied(R"({"a": 1, "b": 2})", R"({"a": 1})"));
    EXPECT_TRUE(implied(R"({"a": 1})", R"({})"));
    EXPECT_TRUE(implied(R"({"a": 7})", R"({"a": {"$gt": 5}})"));
    EXPECT_TRUE(implied(R"({"a": {"$gt": 5}})", R"({"a": {"$gte": 5}})"));
    EXPECT_TRUE(implied(R"({"a": {"$gt": 5}})", R"({"a": {"$exists": true}})"));
    EXPECT_TRUE(implied(R"({"a": {"$in": [1, 2]}})", R"({"a": {"$in": [1, 2, 3]}})"));
    EXPECT_TRUE(implied(R"({"a": "x"})", R"({"a": {"$type": "string"}})"));
    EXPECT_TRUE(implied(R"({"$or": [{"a": 1}, {"a": 2}]})", R"({"a": {"$gt": 0}})"));
    EXPECT_TRUE(implied(R"({"a": null})", R"({"a": null})"));
    EXPECT_FALSE(implied(R"({"a": {"$gte": 5}})", R"({"a": {"$gt": 5}})"));
    EXPECT_FALSE(implied(R"({"a": null})", R"({"a": {"$exists": true}})"));
    EXPECT_FALSE(implied(R"({"a": {"$in": [1, null]}})", R"({"a": {"$exists": true}})"));
    EXPECT_FALSE(implied(R"({"a": 3})", R"({"a": {"$gt": 5}})"));
    EXPECT_FALSE(implied(R"({"a": 7})", R"({"a": {"$ne": 5}})"));
    EXPECT_FALSE(implied(R"({"b": 1})", R"({"a": 1})"));
    EXPECT_FALSE(implied(R"({})", R"({"a": {"$exists": true}})"));
    EXPECT_FALSE(implied(R"({"a": {"$lte": null}})", R"({"a": {"$exists": true}})"));
}

}  // namespace
}  // namespace angelia::engine::query
