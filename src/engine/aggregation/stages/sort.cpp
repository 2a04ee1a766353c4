// $sort
#include "engine/query/sort.h"
#include "engine/aggregation/stage.h"

namespace angelia::engine::aggregation {
namespace {

class SortStage final : public Stage {
  public:
    SortStage(bson::Document source, query::SortSpec specification,
              std::optional<std::uint64_t> keep)
        : source_(std::move(source)), specification_(std::move(specification)), keep_(keep) {}
    std::string_view name() const override { return "$sort"; }
    std::optional<bson::DocumentView> sort_specification() const override { return source_.view(); }
    std::shared_ptr<const Stage> with_limit(std::uint64_t count) const override {
        return std::make_shared<SortStage>(source_.copy(), specification_, count);
    }

    Source run(std::shared_ptr<const Stage>, Source source) const override {
        struct Run {
            query::Sorter sorter;
            Source source;
            bool sorted = false;
        };
        auto run =
            std::make_shared<Run>(Run{query::Sorter(specification_, keep_), std::move(source)});
        return [run]() -> Result<std::optional<bson::Document>> {
            while (!run->sorted) {
                ANGELIA_TRY_ASSIGN(auto document, run->source());
                if (document) {
                    ANGELIA_TRY(run->sorter.add(std::move(*document)));
                } else {
                    run->sorter.finish();
                    run->sorted = true;
                }
            }
            return run->sorter.next();
        };
    }

  private:
    bson::Document source_;
    query::SortSpec specification_;
    std::optional<std::uint64_t> keep_;  ///< as many as the limit behind asks for
};

}  // namespace

Result<StagePtr> parse_sort(bson::ValueView operand) {
    const auto document = operand.get_document();
    if (!document)
        return Error(ErrorCode::Location15973, "the $sort key specification must be an object");
    if (document->empty())
        return Error(ErrorCode::Location15976, "$sort stage must have at least one sort key");
    ANGELIA_TRY_ASSIGN(auto specification, query::SortSpec::parse(*document));
    if (specification.natural() != 0)
        return Error(ErrorCode::BadValue, "$natural is not allowed in the $sort stage");
    return StagePtr(std::make_shared<SortStage>(bson::Document(*document), std::move(specification),
                                                std::nullopt));
}

}  // namespace angelia::engine::aggregation
