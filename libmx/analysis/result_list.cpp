// SPDX-License-Identifier: Apache-2.0
#include "libmx/analysis/result_list.hpp"

#include <algorithm>
#include <bit>
#include <deque>
#include <tuple>
#include <utility>

#include "libmx/base/task.hpp"

namespace mx::analysis {
namespace {

// So many results begin anew, so that any of them is found in as many steps.
constexpr std::size_t stride = 16;

constexpr std::size_t row_words = sizeof(metrics::row) / sizeof(double);
static_assert(sizeof(metrics::row) == row_words * sizeof(double));

// The first words of a result: indices into the lists of a storage, and two small members.
enum head : std::size_t {
    of_word,
    under_word,
    group_word,
    more_word,
    phase_word,
    flag_word,
    heads
};
constexpr std::uint64_t is_decomposed = 1, has_regret = 2;
constexpr std::array count_members{&result::elements,      &result::blocks, &result::nan,
                                   &result::inf,           &result::passes, &result::poisoned,
                                   &result::inexact_inputs};
constexpr std::array figures{&result::tensor_scale, &result::clamp_error_share,
                             &result::underflow_error_share, &result::grid_error_share};
constexpr std::size_t errors = std::tuple_size_v<decltype(result::squared_error)>;
constexpr std::size_t all_words =
    heads + count_members.size() + figures.size() + errors + row_words;

// The index of `x` in a list to which it is added unless it is its last; 0: null.
template <typename T>
std::uint64_t place_of(std::deque<std::shared_ptr<const T>>& list,
                       const std::shared_ptr<const T>& x) {
    if (!x) return 0;
    if (list.empty() || list.back() != x) list.push_back(x);
    return list.size();
}
template <typename T>
std::shared_ptr<const T> at_place(const std::deque<std::shared_ptr<const T>>& list,
                                  std::uint64_t place) {
    return place == 0 ? nullptr : list[place - 1];
}

}  // namespace

struct result_list::storage {
    std::deque<std::uint64_t> words;   // deques grow without holding everything twice
    std::deque<std::uint64_t> begins;  // of every stride
    cursor last;                       // where the next result is written
    std::deque<std::shared_ptr<const tensor_identity>> tensors;
    std::vector<std::shared_ptr<const named_recipe>> recipes;
    std::deque<std::shared_ptr<const group_facts>> groups;
    std::deque<report::record> more;
    std::deque<std::array<double, 3>> regrets;  // by result, as far as they were set
    bool all_regret = false;

    decltype(cursor::now) words_of(const result& r);
    result result_of(const decltype(cursor::now)& from, std::size_t index) const;
    void put_regret(std::size_t index, const std::array<double, 3>& regret);

    // Reads the result at c.index.
    void read(cursor& c) const {
        if (c.index % stride == 0) {
            c.now.fill(0);
            c.next = begins[c.index / stride];
        }
        const std::uint64_t changed = words[c.next++];
        const std::uint64_t zero = words[c.next++];
        for (std::uint64_t left = changed; left != 0; left &= left - 1) {
            const auto i = static_cast<std::size_t>(std::countr_zero(left));
            c.now[i] = (zero >> i & 1) != 0 ? 0 : words[c.next++];
        }
        ++c.index;
    }
    // Reads the result at `index` from the beginning of its stride.
    cursor read_at(std::size_t index) const {
        cursor c;
        c.index = index / stride * stride;
        while (c.index <= index) read(c);
        return c;
    }
};

decltype(result_list::cursor::now) result_list::storage::words_of(const result& r) {
    static_assert(std::tuple_size_v<decltype(cursor::now)> == all_words);
    decltype(cursor::now) to{};
    to[of_word] = place_of(tensors, r.of);
    if (r.under) {
        auto at = std::ranges::find(recipes, r.under);
        if (at == recipes.end()) at = recipes.insert(at, r.under);
        to[under_word] = static_cast<std::uint64_t>(at - recipes.begin()) + 1;
    }
    to[group_word] = place_of(groups, r.group);
    if (!r.more.empty()) {
        more.push_back(r.more);
        to[more_word] = more.size();
    }
    if (r.phase) to[phase_word] = static_cast<std::uint64_t>(*r.phase) + 1;
    to[flag_word] = (r.decomposed ? is_decomposed : 0) | (r.with_regret ? has_regret : 0);
    std::size_t i = heads;
    for (const auto member : count_members) to[i++] = r.*member;
    for (const auto member : figures) to[i++] = std::bit_cast<std::uint64_t>(r.*member);
    for (const double e : r.squared_error) to[i++] = std::bit_cast<std::uint64_t>(e);
    const auto row =
        std::bit_cast<std::array<std::uint64_t, row_words>>(static_cast<const metrics::row&>(r));
    std::ranges::copy(row, to.begin() + static_cast<std::ptrdiff_t>(i));
    return to;
}

result result_list::storage::result_of(const decltype(cursor::now)& from, std::size_t index) const {
    result r;
    r.of = at_place(tensors, from[of_word]);
    if (from[under_word] != 0) r.under = recipes[from[under_word] - 1];
    r.group = at_place(groups, from[group_word]);
    if (from[more_word] != 0) r.more = more[from[more_word] - 1];
    if (from[phase_word] != 0) r.phase = static_cast<std::int64_t>(from[phase_word] - 1);
    r.decomposed = (from[flag_word] & is_decomposed) != 0;
    r.with_regret = all_regret || (from[flag_word] & has_regret) != 0;
    if (index < regrets.size()) {
        r.best_rmse = regrets[index][0];
        r.regret = regrets[index][1];
        r.regret_share = regrets[index][2];
    }
    std::size_t i = heads;
    for (const auto member : count_members) r.*member = from[i++];
    for (const auto member : figures) r.*member = std::bit_cast<double>(from[i++]);
    for (double& e : r.squared_error) e = std::bit_cast<double>(from[i++]);
    std::array<std::uint64_t, row_words> row;
    std::copy_n(from.begin() + static_cast<std::ptrdiff_t>(i), row_words, row.begin());
    static_cast<metrics::row&>(r) = std::bit_cast<metrics::row>(row);
    return r;
}

void result_list::storage::put_regret(std::size_t index, const std::array<double, 3>& regret) {
    const result undefined;
    if (regrets.size() <= index) {
        regrets.resize(index + 1, {undefined.best_rmse, undefined.regret, undefined.regret_share});
    }
    regrets[index] = regret;
}

result_list::result_list() : in_(std::make_shared<storage>()) {}
result_list::result_list(const std::vector<result>& results) : result_list() {
    for (const result& r : results) push_back(r);
}
result_list::result_list(std::initializer_list<result> results) : result_list() {
    for (const result& r : results) push_back(r);
}

void result_list::push_back(const result& r) {
    storage& to = *in_;
    cursor& before = to.last;
    if (before.index % stride == 0) {
        before.now.fill(0);
        to.begins.push_back(to.words.size());
    }
    const auto now = to.words_of(r);
    std::uint64_t changed = 0, zero = 0;
    for (std::size_t i = 0; i < now.size(); ++i) {
        if (now[i] == before.now[i]) continue;
        changed |= std::uint64_t{1} << i;
        if (now[i] == 0) zero |= std::uint64_t{1} << i;
    }
    to.words.push_back(changed);
    to.words.push_back(zero);
    for (std::size_t i = 0; i < now.size(); ++i) {
        if (now[i] != before.now[i] && now[i] != 0) to.words.push_back(now[i]);
    }
    before.now = now;
    if (r.with_regret) to.put_regret(before.index, {r.best_rmse, r.regret, r.regret_share});
    ++before.index;
}

std::size_t result_list::size() const { return in_->last.index; }

result result_list::operator[](std::size_t index) const {
    return in_->result_of(in_->read_at(index).now, index);
}

result_list::iterator result_list::begin() const { return {in_, 0}; }
result_list::iterator result_list::end() const { return {in_, size()}; }

void result_list::add_regret() { in_->all_regret = true; }
void result_list::set_regret(std::size_t index, double best_rmse, double regret,
                             double regret_share) {
    in_->put_regret(index, {best_rmse, regret, regret_share});
}

result_list::iterator::iterator(std::shared_ptr<const storage> in, std::size_t index)
    : in_(std::move(in)), index_(index) {
    if (index_ < in_->last.index) at_ = in_->read_at(index_);
}

result result_list::iterator::operator*() const { return in_->result_of(at_.now, index_); }

result_list::iterator& result_list::iterator::operator++() {
    if (++index_ < in_->last.index) in_->read(at_);
    return *this;
}

result_list results_of(const report::record_list& records, const std::string& path) {
    result_reader reader(path);
    result_list results;
    base::task checking("checking results", records.size());
    for (const report::record& r : records) {
        results.push_back(reader.read(r));
        checking.step();
    }
    return results;
}

report::record_list records_of(const result_list& results) {
    return {results.size(), [results](std::size_t index) { return record_of(results[index]); }};
}

bool has_elements(const result_list& results) {
    return std::ranges::any_of(results, [](const result& r) { return r.elements != 0; });
}

}  // namespace mx::analysis
