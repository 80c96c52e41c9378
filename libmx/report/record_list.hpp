// SPDX-License-Identifier: Apache-2.0
// Compact storage of many records: an analysis has one per tensor and recipe, and a checkpoint may
// have a hundred thousand tensors. Member names are stored once per kind of record, equal strings
// once, and numbers in eight bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "libmx/base/text_tables.hpp"
#include "libmx/report/record.hpp"

namespace mx::report {

/// A sequence of records, returned by value. Needs about 9 bytes per scalar member.
class record_list {
  public:
    class iterator;

    record_list();
    record_list(const std::vector<record>& records);
    /// `size` records that are not stored: `make` makes one, by its index, whenever it is read.
    /// Nothing can be added to such a list.
    record_list(std::size_t size, std::function<record(std::size_t)> make);
    record_list(record_list&&) noexcept;
    record_list& operator=(record_list&&) noexcept;
    ~record_list();

    void push_back(const record& r);

    std::size_t size() const { return make_ ? made_ : rows_.size(); }
    bool empty() const { return size() == 0; }
    record operator[](std::size_t index) const;
    record front() const { return (*this)[0]; }
    iterator begin() const;
    iterator end() const;

  private:
    enum class tag : std::uint8_t { null, boolean, integer, real, text, nested };
    struct row {
        std::uint32_t names;  // index into names_
        std::uint64_t first;  // index of its first cell
    };

    std::uint32_t names_of(const record& r);
    void store(std::size_t cell, std::size_t column, const value& v);
    value load(std::size_t cell) const;

    std::vector<std::vector<std::string>> names_;
    std::deque<row> rows_;  // deques grow without holding everything twice
    std::deque<std::uint64_t> bits_;
    std::deque<tag> tags_;
    base::text_map<std::uint64_t> text_index_;
    std::vector<const std::string*> texts_;  // keys of text_index_, whose addresses stay
    std::deque<value> nested_;
    std::vector<std::uint64_t> last_nested_;   // by column: tensors repeat their shape
    std::function<record(std::size_t)> make_;  // else none of the above
    std::size_t made_ = 0;
};

/// Input iterator over records by value.
class record_list::iterator {
  public:
    using iterator_category = std::input_iterator_tag;
    using value_type = record;
    using difference_type = std::ptrdiff_t;
    using pointer = void;
    using reference = record;

    iterator(const record_list& records, std::size_t index) : list_(&records), index_(index) {}
    record operator*() const { return (*list_)[index_]; }
    iterator& operator++() {
        ++index_;
        return *this;
    }
    void operator++(int) { ++index_; }
    friend bool operator==(const iterator& a, const iterator& b) { return a.index_ == b.index_; }

  private:
    const record_list* list_;
    std::size_t index_;
};

}  // namespace mx::report
