// SPDX-License-Identifier: Apache-2.0
#include "libmx/codec/caster.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

#include "libmx/base/bits.hpp"
#include "libmx/codec/stored_value.hpp"

namespace mx::codec {
namespace {

// Table of a cast for all values of a 16-bit type, or for every upper half of a float32, once with
// a zero and once with a non-zero lower half. Thresholds of dialect ocp lie between these classes:
// its formats have at most 7 bits after the leading one, and conversions are monotone, so equal
// results at both ends of a class apply to all of it.
class cast_table {
  public:
    // A table takes as long as casting some 10^5 elements; fewer do not justify one.
    static constexpr std::uint64_t worth = std::uint64_t{1} << 17;

    static bool suits(const element_cast& to, tensor::dtype from) {
        return to.number.mode.how != format::rounding::stochastic &&
               (from != tensor::dtype::f32 || to.number.by->id == dialect_id::ocp);
    }

    cast_table(const element_cast& to, tensor::dtype from) : from_(from) {
        const bool wide = from == tensor::dtype::f32;
        const std::uint32_t count = wide ? 0x20000 : 0x10000;
        codes_.reserve(count);
        values_.reserve(count);
        for (std::uint32_t i = 0; i < count; ++i) {
            if (!wide) {
                const auto word = static_cast<std::uint16_t>(i);
                add(to, base::bits_of(
                            stored_value(from, reinterpret_cast<const std::byte*>(&word), 0)));
                continue;
            }
            const std::uint32_t upper = i >> 1 << 16;
            if (i % 2 == 0) {
                add(to, upper);
                continue;
            }
            add(to, upper | 1u);
            const converted end = cast_element(to, upper | 0xffffu, 0);
            usable_ &= end.code == codes_.back() &&
                       base::bits_of(end.value) == base::bits_of(values_.back());
        }
    }

    bool usable() const { return usable_; }

    // Like caster::cast, from the first value on.
    std::size_t cast(const element_run& from, const element_results& to) const {
        return from_ == tensor::dtype::f32 ? look_up<std::uint32_t>(from, to)
                                           : look_up<std::uint16_t>(from, to);
    }

  private:
    void add(const element_cast& to, std::uint32_t bits) {
        const converted c = cast_element(to, bits, 0);
        codes_.push_back(static_cast<std::int16_t>(c.code));
        values_.push_back(c.value);
    }

    static std::size_t place_of(std::uint16_t word) { return word; }
    static std::size_t place_of(std::uint32_t word) {
        return std::size_t{word >> 16} * 2 + ((word & 0xffffu) != 0 ? 1u : 0u);
    }

    template <typename Word>
    std::size_t look_up(const element_run& from, const element_results& to) const {
        const auto word = [&](std::size_t i) {
            Word w;
            std::memcpy(&w, from.values.data + i * sizeof w, sizeof w);
            return place_of(w);
        };
        if (to.values != nullptr) {
            for (std::size_t i = 0; i < from.count; ++i) to.values[i] = values_[word(i)];
        }
        int all = 0;
        for (std::size_t i = 0; i < from.count; ++i) {
            const std::int16_t code = codes_[word(i)];
            all |= code;
            if (to.codes != nullptr) to.codes[i] = static_cast<std::uint8_t>(code);
        }
        if (all >= 0) return from.count;
        std::size_t first = 0;
        while (codes_[word(first)] >= 0) ++first;
        return first;
    }

    tensor::dtype from_;
    std::vector<std::int16_t> codes_;  // -1: none
    std::vector<float> values_;
    bool usable_ = true;
};

bool same(const element_cast& a, const element_cast& b) {
    const conversion& x = a.number;
    const conversion& y = b.number;
    return a.power_of_two == b.power_of_two && x.by == y.by && x.element == y.element &&
           x.mode == y.mode && x.saturate == y.saturate;
}

class host_caster final : public caster {
  public:
    using vector_casts = vector_cast (*)(const element_cast& to);
    explicit host_caster(vector_casts kernels) : kernels_(kernels) {}

    std::size_t cast(const element_cast& to, const element_run& from,
                     const element_results& results) override {
        if (!begun_ || from.values.type != type_ || !same(to, to_)) begin(to, from.values.type);
        if (!vectors_) return by_value(from, results);
        // Values that the kernels do not handle go to the reference, together with the rest of
        // their vector.
        constexpr std::size_t left_over = 16;
        std::size_t without_code = from.count;
        for (std::size_t at = 0; at < from.count;) {
            at += vectors_(run_from(from, at, from.count), results_from(results, at));
            if (at == from.count) break;
            const std::size_t end = std::min(at + left_over, from.count);
            const std::size_t without =
                at + by_value(run_from(from, at, end), results_from(results, at));
            if (without < end) without_code = std::min(without_code, without);
            at = end;
        }
        return without_code;
    }

  private:
    static element_run run_from(const element_run& from, std::size_t at, std::size_t end) {
        return {from.values.from(at), end - at, from.first + at, from.key};
    }
    static element_results results_from(const element_results& to, std::size_t at) {
        return {to.codes != nullptr ? to.codes + at : nullptr,
                to.values != nullptr ? to.values + at : nullptr};
    }

    void begin(const element_cast& to, tensor::dtype type) {
        begun_ = true;
        to_ = to;
        type_ = type;
        seen_ = 0;
        table_.reset();
        vectors_ = kernels_ != nullptr ? kernels_(to) : vector_cast();
    }

    std::size_t by_value(const element_run& from, const element_results& results) {
        if (const cast_table* table = table_after(from.count)) return table->cast(from, results);
        const bool random = to_.number.mode.how == format::rounding::stochastic;
        std::size_t without_code = from.count;
        for (std::size_t i = 0; i < from.count; ++i) {
            const float x = stored_value(from.values.type, from.values.data, i);
            const std::uint32_t draw = random ? base::random_u32(from.key, from.first + i) : 0u;
            const converted q = cast_element(to_, base::bits_of(x), draw);
            if (results.codes != nullptr) results.codes[i] = static_cast<std::uint8_t>(q.code);
            if (results.values != nullptr) results.values[i] = q.value;
            if (q.code < 0 && i < without_code) without_code = i;
        }
        return without_code;
    }

    // The table of the cast, made once enough values were cast.
    const cast_table* table_after(std::size_t count) {
        if (!cast_table::suits(to_, type_)) return nullptr;
        seen_ += count;
        if (seen_ < cast_table::worth) return nullptr;
        if (!table_) table_ = std::make_unique<cast_table>(to_, type_);
        return table_->usable() ? table_.get() : nullptr;
    }

    vector_casts kernels_;
    bool begun_ = false;
    tensor::dtype type_ = tensor::dtype::f32;
    element_cast to_{};
    vector_cast vectors_;
    std::uint64_t seen_ = 0;  // values of this type cast to this target, one by one
    std::unique_ptr<cast_table> table_;
};

}  // namespace

std::unique_ptr<caster> make_host_caster(base::notices* /*notices*/) {
    return std::make_unique<host_caster>(nullptr);
}

std::unique_ptr<caster> make_cpu_caster(vector_cast (*kernels)(const element_cast& to)) {
    return std::make_unique<host_caster>(kernels);
}

}  // namespace mx::codec
