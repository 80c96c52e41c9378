// SPDX-License-Identifier: Apache-2.0
// Many results in little memory: a run has one per tensor and recipe, and a checkpoint can have a
// hundred thousand tensors. Neighbours are of one tensor and agree in most members, so each result
// is stored as its differences from the one before.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "libmx/analysis/result.hpp"
#include "libmx/report/record_list.hpp"

namespace mx::analysis {

/// A sequence of results, handed out by value, bit for bit as they were added. Copies refer to the
/// same results: whoever makes a list fills it before handing out copies.
class result_list {
  public:
    class iterator;

    result_list();
    result_list(const std::vector<result>& results);
    result_list(std::initializer_list<result> results);

    void push_back(const result& r);

    std::size_t size() const;
    bool empty() const { return size() == 0; }
    /// The result at `index`, which is less than size().
    result operator[](std::size_t index) const;
    result front() const { return (*this)[0]; }
    iterator begin() const;
    iterator end() const;

    /// Every result says metrics::when::regret from now on: undefined until it is set.
    void add_regret();
    /// Sets it for the result at `index`, after add_regret().
    void set_regret(std::size_t index, double best_rmse, double regret, double regret_share);

  private:
    struct storage;
    // The members of a result as the words that are stored, and where the next result begins.
    struct cursor {
        std::array<std::uint64_t, 44> now{};
        std::size_t index = 0;  // of the result that is read next
        std::uint64_t next = 0;
    };
    std::shared_ptr<storage> in_;
};

/// Input iterator over results by value.
class result_list::iterator {
  public:
    using iterator_category = std::input_iterator_tag;
    using value_type = result;
    using difference_type = std::ptrdiff_t;
    using pointer = void;
    using reference = result;

    iterator() = default;
    iterator(std::shared_ptr<const storage> in, std::size_t index);
    result operator*() const;
    iterator& operator++();
    void operator++(int) { ++*this; }
    friend bool operator==(const iterator& a, const iterator& b) { return a.index_ == b.index_; }

  private:
    std::shared_ptr<const storage> in_;
    cursor at_;
    std::size_t index_ = 0;
};

/// Results from records. Throws base::error (input), as result_reader does.
result_list results_of(const report::record_list& records, const std::string& path);

/// The records of all results, made when they are read.
report::record_list records_of(const result_list& results);

/// Whether one of the results is of a tensor that has elements.
bool has_elements(const result_list& results);

}  // namespace mx::analysis
