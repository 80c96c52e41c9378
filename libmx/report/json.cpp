// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "libmx/report/writers.hpp"

namespace mx::report {
namespace {

using json = nlohmann::ordered_json;

json to_json(const value& v);

struct converter {
    json operator()(std::monostate) const { return nullptr; }
    json operator()(bool b) const { return b; }
    json operator()(std::int64_t i) const { return i; }
    json operator()(double d) const { return d; }
    json operator()(const std::string& s) const { return s; }
    json operator()(const list& items) const {
        json out = json::array();
        for (const value& item : items) out.push_back(to_json(item));
        return out;
    }
    json operator()(const record& members) const {
        json out = json::object();
        for (const auto& [name, v] : members) out[name] = to_json(v);
        return out;
    }
};

using alternatives = std::variant<std::monostate, bool, std::int64_t, double, std::string, list,
                                  std::vector<std::pair<std::string, value>>>;

json to_json(const value& v) {
    return std::visit(converter{}, static_cast<const alternatives&>(v));
}

// A name from a file may be any bytes; the document must be valid UTF-8 all the same.
std::string dump(const json& j) { return j.dump(-1, ' ', false, json::error_handler_t::replace); }

// Members of the top level, a line each, and the elements of their lists a line each too: records
// can be found with grep and compared with diff.
class object_printer {
  public:
    explicit object_printer(const sink& out) : out_(out) { out_("{"); }

    void member(const std::string& name, const value& v) {
        start(name);
        if (const list* items = std::get_if<list>(&v)) {
            array(*items);
        } else {
            out_(dump(to_json(v)));
        }
    }
    template <typename Items>
    void member(const std::string& name, const Items& items) {
        start(name);
        array(items);
    }
    void finish() { out_("\n}\n"); }

  private:
    void start(const std::string& name) {
        out_(first_ ? "\n" : ",\n");
        first_ = false;
        out_(dump(json(name)) + ":");
    }
    template <typename Items>
    void array(const Items& items) {
        out_("[");
        for (std::size_t i = 0; i < items.size(); ++i) {
            out_(i == 0 ? "\n" : ",\n");
            out_(dump(to_json(value(items[i]))));
        }
        out_(items.empty() ? "]" : "\n]");
    }

    const sink& out_;
    bool first_ = true;
};

}  // namespace

void write_json(const document& d, const layout&, const sink& out) {
    object_printer object(out);
    for (const auto& [name, v] : d.head) object.member(name, v);
    object.member("results", d.results);
    for (const auto& [name, v] : d.tail) object.member(name, v);
    object.finish();
}

}  // namespace mx::report
