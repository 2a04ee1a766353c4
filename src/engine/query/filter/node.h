// The two trees of a parsed filter: nodes ask about a document, tests ask about the values a path
// leads to.
#pragma once

#include "engine/query/field_path.h"

#include <angelia/bson/document.h>

#include <memory>
#include <string_view>
#include <utility>
#include <vector>

namespace angelia::engine::query::filter {

/// A condition on the values that a path reaches. Immutable after parse; keeps views into the
/// filter's bytes.
class Test {
  public:
    enum class Kind {
        Eq,
        Lt,
        Lte,
        Gt,
        Gte,  ///< ComparisonTest
        In,   ///< InTest
        Exists,
        Type,
        Size,
        ElemMatchValue,   ///< GroupTest of tests that one element passes
        ElemMatchFields,  ///< ElemMatchFieldsTest
        Mod,
        Not,  ///< NotTest
        All,  ///< AllOfTest
        Never,
    };
    explicit Test(Kind kind) : kind_(kind) {}
    virtual ~Test() = default;
    Kind kind() const noexcept { return kind_; }

    /// Does this one value pass? Missing when the path led nowhere. Arrays are taken as a whole.
    virtual bool matches_value(bson::ValueView value) const = 0;
    /// Does some value at `path` pass? (walk.cpp: arrays on the way and, unless whole_arrays(), at
    /// the end are taken apart.)
    virtual bool matches_at(bson::DocumentView document, const FieldPath& path) const;
    /// True for tests that look at an array only as a whole ($size, $elemMatch).
    virtual bool whole_arrays() const { return false; }

  private:
    Kind kind_;
};
using TestPtr = std::unique_ptr<const Test>;

/// Calls `test.matches_value` with every value that `path` reaches from `document` until one
/// passes. The rules are those of contract 3.1, "Dotted paths and arrays".
bool any_value_matches(bson::DocumentView document, const FieldPath& path, const Test& test);

/// $eq $lt $lte $gt $gte
class ComparisonTest final : public Test {
  public:
    ComparisonTest(Kind kind, bson::ValueView operand) : Test(kind), operand_(operand) {}
    bool matches_value(bson::ValueView value) const override;
    bson::ValueView operand() const { return operand_; }

  private:
    bson::ValueView operand_;
};

class InTest final : public Test {
  public:
    /// `values` need no order; they are sorted here.
    explicit InTest(std::vector<bson::ValueView> values);
    bool matches_value(bson::ValueView value) const override;
    const std::vector<bson::ValueView>& values() const {
        return values_;
    }  ///< sorted, without duplicates

  private:
    std::vector<bson::ValueView> values_;
    bool has_null_ = false;
};

class NotTest final : public Test {
  public:
    explicit NotTest(TestPtr child) : Test(Kind::Not), child_(std::move(child)) {}
    bool matches_value(bson::ValueView value) const override {
        return !child_->matches_value(value);
    }
    bool matches_at(bson::DocumentView document, const FieldPath& path) const override {
        return !child_->matches_at(document, path);
    }
    const Test& child() const { return *child_; }

  private:
    TestPtr child_;
};

/// Several tests, each of which some value passes (not necessarily the same).
class AllOfTest final : public Test {
  public:
    explicit AllOfTest(std::vector<TestPtr> children)
        : Test(Kind::All), children_(std::move(children)) {}
    bool matches_value(bson::ValueView value) const override;
    bool matches_at(bson::DocumentView document, const FieldPath& path) const override;
    const std::vector<TestPtr>& children() const { return children_; }

  private:
    std::vector<TestPtr> children_;
};

class NeverTest final : public Test {
  public:
    NeverTest() : Test(Kind::Never) {}
    bool matches_value(bson::ValueView) const override { return false; }
};

/// {$exists: true}; false is its negation.
class ExistsTest final : public Test {
  public:
    ExistsTest() : Test(Kind::Exists) {}
    bool matches_value(bson::ValueView value) const override { return !value.is_missing(); }
};

/// A condition on a document.
class Node {
  public:
    enum class Kind { And, Or, Nor, Path, Constant };
    explicit Node(Kind kind) : kind_(kind) {}
    virtual ~Node() = default;
    Kind kind() const noexcept { return kind_; }
    virtual bool matches(bson::DocumentView document) const = 0;

  private:
    Kind kind_;
};
using NodePtr = std::unique_ptr<const Node>;

/// And, Or, Nor over children; an empty And is true, an empty Or false.
class GroupNode final : public Node {
  public:
    GroupNode(Kind kind, std::vector<NodePtr> children)
        : Node(kind), children_(std::move(children)) {}
    bool matches(bson::DocumentView document) const override;
    const std::vector<NodePtr>& children() const { return children_; }

  private:
    std::vector<NodePtr> children_;
};

class PathNode final : public Node {
  public:
    PathNode(FieldPath path, TestPtr test)
        : Node(Kind::Path), path_(std::move(path)), test_(std::move(test)) {}
    bool matches(bson::DocumentView document) const override {
        return test_->matches_at(document, path_);
    }
    const FieldPath& path() const { return path_; }
    const Test& test() const { return *test_; }

  private:
    FieldPath path_;
    TestPtr test_;
};

class ConstantNode final : public Node {
  public:
    explicit ConstantNode(bool value) : Node(Kind::Constant), value_(value) {}
    bool matches(bson::DocumentView) const override { return value_; }
    bool value() const { return value_; }

  private:
    bool value_;
};

/// Value form of $elemMatch: one element passes all the tests.
class ElemMatchValueTest final : public Test {
  public:
    explicit ElemMatchValueTest(std::vector<TestPtr> children)
        : Test(Kind::ElemMatchValue), children_(std::move(children)) {}
    bool matches_value(bson::ValueView value) const override;
    bool matches_element(bson::ValueView element) const;
    bool whole_arrays() const override { return true; }
    const std::vector<TestPtr>& children() const { return children_; }

  private:
    std::vector<TestPtr> children_;
};

/// Object form of $elemMatch: one element is a document (or array) that matches.
class ElemMatchFieldsTest final : public Test {
  public:
    explicit ElemMatchFieldsTest(NodePtr condition)
        : Test(Kind::ElemMatchFields), condition_(std::move(condition)) {}
    bool matches_value(bson::ValueView value) const override;
    bool matches_element(bson::ValueView element) const;
    bool whole_arrays() const override { return true; }
    const Node& condition() const { return *condition_; }

  private:
    NodePtr condition_;
};

}  // namespace angelia::engine::query::filter
