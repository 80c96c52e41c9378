// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <utility>
#include <vector>

#include "libmx/base/status.hpp"
#include "libmx/codec/clamp_zone.hpp"
#include "libmx/codec/recipe.hpp"
#include "libmx/codec/recipe_keys.hpp"
#include "libmx/format/block_formats.hpp"
#include "tests/catch.hpp"

using namespace mx::codec;

namespace {

std::string canonical(const std::string& text) { return to_string(parse_recipe(text)); }

std::string complaint(const std::string& text) {
    try {
        parse_recipe(text);
    } catch (const mx::base::error& e) {
        CHECK(e.kind() == mx::base::error_kind::usage);
        return e.what();
    }
    return "accepted";
}

}  // namespace

TEST_CASE("canonical recipes name what matters and nothing else") {
    const std::vector<std::pair<std::string, std::string>> cases{
        {"mxfp8_e4m3", "mxfp8"},
        {"e4m3", "e4m3"},
        {"E4M3:scale=tensor", "e4m3:scale=tensor"},
        {"int8:seed=3,scale=tensor,round=stochastic", "int8:scale=tensor,round=stochastic,seed=3"},
        {"int8:int_min=full", "int8"},
        {"e3m0:ties=even", "e3m0:ties=even"},
        {"fp16", "f16"},
        {"FP32", "f32"},
        {"tf32", "tf32"},
        {"mxfp4:scale=floor", "mxfp4"},
        {"mxfp4:seed=3", "mxfp4"},
        {"mxfp4:seed=3,round=stochastic", "mxfp4:round=stochastic,seed=3"},
        {"mxfp4:random_bits=8,round=stochastic", "mxfp4:round=stochastic,random_bits=8"},
        {"mxfp8:element=e5m2", "mxfp8_e5m2"},
        {"mxfp4:ties=even", "mxfp4"},
        {"mxfp4_e3m0:ties=even", "mxfp4_e3m0:ties=even"},
        {"mxfp4_e3m0:ties=even,round=away", "mxfp4_e3m0:round=away"},
        {"mxint4:int_min=symmetric", "mxint4"},
        {"mxint4:int_min=full", "mxint4:int_min=full"},
        {"mxint8:int_min=full", "mxint8"},
        {"mxint8:int_min=symmetric", "mxint8:int_min=symmetric"},
        {"mxint8:int_min=full,element=int5", "mxint8:element=int5,int_min=full"},
        {"mxint8:int_min=full,dialect=microxcaling", "mxint8:dialect=microxcaling"},
        {"mxint4:dialect=microxcaling-native,int_min=full", "mxint4:dialect=microxcaling-native"},
        {"mxint4:int_emax=1,scale=ceil", "mxint4:scale=ceil,int_emax=1"},
        {"mxint4:int_emax=1,scale=rceil", "mxint4:scale=rceil"},
        {"mxfp4:range=half", "mxfp4"},
        {"mxfp4:range=half,offset=fp16", "mxfp4:offset=fp16,range=half"},
        {"mxfp4:axis=sum", "mxfp4"},
        {"mxfp4:axis=-1", "mxfp4:axis=-1"},
        {"mxfp4:block=32x1,axis=-1", "mxfp4:axis=-1"},
        {"mxfp4:axis=-2", "mxfp4:axis=-2"},
        {"mxfp4:block=32x1", "mxfp4:block=32x1"},
        {"mxfp4:axis=0,block=16x1", "mxfp4:block=1x16,axis=0"},
        {"mxfp4:axis=flat", "mxfp4:axis=flat"},
        {"mxfp4:block=16x16,axis=-1", "mxfp4:block=16x16,axis=-1"},
        {"nvfp4:outer=row,axis=0", "nvfp4:axis=0,outer=row"},
        {"nvfp4:scale=two-level,scale_format=ue4m3", "nvfp4"},
        {"mxfp4:scale_format=ue4m3", "nvfp4:block=1x32"},
        {"nvfp4:scale_format=e8m0", "mxfp4:block=1x16"},
        {"nvfp4:dialect=ggml", "nvfp4:dialect=ggml"},
        {"nvfp4:dialect=ggml,scale=single-level", "nvfp4:dialect=ggml"},
        {"nvfp4:dialect=modelopt,round=rtne", "nvfp4:dialect=modelopt"},
        {"amdfp4", "amdfp4"},
        {"amdfp4:block=1x32,dialect=quark", "amdfp4:block=1x32,dialect=quark"},
        {"amdfp4:scale=single-level,dialect=ocp", "amdfp4"},
        {"nvfp4:scale_format=ue5m3", "nvfp4:scale_format=ue5m3"},
        {"nvfp4:scale_format=ue5m3,scale=single-level", "amdfp4"},
        {"amdfp4:outer=tensor", "nvfp4:scale_format=ue5m3"},
        {"amdfp4:dialect=alto", "nvfp4:scale_format=ue5m3,dialect=alto"},
        {"amdfp4:scale_format=ue5m3_inf", "nvfp4:scale_format=ue5m3_inf"},
        {"amdfp4:outer=none,dialect=alto", "amdfp4:scale=single-level,dialect=alto"},
        {"nvfp4:scale_format=ue5m3,dialect=te", "nvfp4:scale_format=ue5m3,dialect=te"},
        {"nvfp4:outer=tensor", "nvfp4"},
        {"nvfp4:outer=none,scale=two-level", "nvfp4:scale=single-level"},
        {"nvfp4:outer=row,dialect=te", "nvfp4:outer=row,dialect=te"},
        {"nvfp4:outer=col,block=16x1", "nvfp4:block=16x1,outer=col"},
        {"nvfp4:outer=0128x128", "nvfp4:outer=128x128"},
        {"nvfp4:outer=16x16,scale=search", "nvfp4:scale=search,outer=16x16"},
        {"nvfp4:outer=row,scale=search-single-level", "nvfp4:scale=search,outer=row"},
        {"nvfp4:outer=given:0.50", "nvfp4:outer=given:0.5"},
        {"nvfp4:outer=given:C:/scales.safetensors", "nvfp4:outer=given:C:/scales.safetensors"},
        {"nvfp4:bound=448", "nvfp4"},
        {"nvfp4:bound=256,four_over_six=mae", "nvfp4:four_over_six=mae"},
        {"nvfp4:four_over_six=mse,bound=448,candidates=fp16,dialect=te",
         "nvfp4:four_over_six=mse,bound=448,candidates=fp16,dialect=te"},
        {"nvfp4:scale_format=ue5m3,four_over_six=mse,bound=114688",
         "nvfp4:scale_format=ue5m3,four_over_six=mse,bound=114688"},
        {"mxfp4:element=e1m2", "mxfp4_e1m2"},
        {"nvfp4:element=e1m2", "nvfp4:element=e1m2"},
        {"nvfp4:four_over_six=none", "nvfp4"},
        {"nvfp4:element=int4,int_emax=1", "nvfp4:element=int4"},
        {"fp8_128x128:block=1x128", "fp8_1x128"},
        {"fp8_1x128:block=128x128", "fp8_128x128"},
        {"fp8_128x128:block=64x64", "fp8_1x128:block=64x64"},
        {"fp8_128x128:element=e5m2", "fp8_128x128:element=e5m2"},
        {"mxfp8:scale_format=f32,block=1x128", "fp8_1x128"},
        {"mxfp4:transform=hadamard,transform_size=32,transform_seed=7", "mxfp4:transform=hadamard"},
        {"mxfp4:transform=hadamard,block=1x64", "mxfp4:block=1x64,transform=hadamard"},
        {"mxfp4:transform_size=64,block=1x64,transform=hadamard",
         "mxfp4:block=1x64,transform=hadamard"},
        {"mxfp4:transform_size=32,block=1x64,transform=hadamard",
         "mxfp4:block=1x64,transform=hadamard,transform_size=32"},
        {"mxfp4:block=32x1,axis=-1,transform=hadamard", "mxfp4:axis=-1,transform=hadamard"},
        {"mxfp4:block=16x1,transform=hadamard", "mxfp4:block=16x1,transform=hadamard"},
        {"mxfp4:block=16x1,axis=0,transform=hadamard,transform_size=16",
         "mxfp4:block=1x16,axis=0,transform=hadamard"},
        {"mxfp4:block=4x128,transform=hadamard,transform_size=128",
         "mxfp4:block=4x128,transform=hadamard"},
        {"mxfp4:block=128x8,transform=hadamard,transform_size=32",
         "mxfp4:block=128x8,transform=hadamard"},
        {"nvfp4:transform=random-hadamard,transform_seed=3,transform_size=16",
         "nvfp4:transform=random-hadamard,transform_seed=3"},
        {"fp8_128x128:transform=hadamard,dialect=te", "fp8_128x128:transform=hadamard,dialect=te"},
        {"fp8_128x128:block=64x64,transform=hadamard", "fp8_1x128:block=64x64,transform=hadamard"},
        {"mxfp4:transform_size=128,transform_seed=4", "mxfp4"},
        {"mxfp4:transform=none,transform_size=16", "mxfp4"},
        {"mxfp4:block=16x16,dialect=ocp,transform=none,scale_format=e8m0", "mxfp4:block=16x16"},
    };
    for (const auto& [text, wanted] : cases) {
        INFO(text);
        CHECK(canonical(text) == wanted);
        CHECK(parse_recipe(canonical(text)) == parse_recipe(text));
    }
}

TEST_CASE("every preset and every key's default survives printing and parsing") {
    for (const mx::format::block_format& f : mx::format::block_formats) {
        const recipe r = parse_recipe(f.name);
        CHECK(to_string(r) == f.name);
        for (const recipe_key& key : recipe_keys()) {
            INFO(f.name << " " << key.name);
            std::string text(f.name);
            text += ":";
            text += key.name;
            text += "=" + key.get(r);
            CHECK(parse_recipe(text) == r);
        }
    }
}

TEST_CASE("spaces in a recipe mean nothing, so that one can be pasted from a table") {
    CHECK(parse_recipe("mxfp4:scale=even, block=1x16") ==
          parse_recipe("mxfp4:scale=even,block=1x16"));
    CHECK(parse_recipe(" mxfp4 : scale = even ,block= 1x16 ") ==
          parse_recipe("mxfp4:scale=even,block=1x16"));
    CHECK(complaint("mxfp4:scale=e ven").find("unknown scale rule 'e ven'") != std::string::npos);
    CHECK(complaint("mxfp4: ,scale=even").find("'' is not key=value") != std::string::npos);
    CHECK(complaint("mxfp4: =even").find("not key=value") != std::string::npos);
    CHECK(complaint("mxfp4:scale=floor:dialect=torchao").find("separated by commas") !=
          std::string::npos);
}

TEST_CASE("a mistake in a recipe is answered with its place and the nearest valid spelling") {
    CHECK(complaint("mxpf4").find("did you mean 'mxfp4'") != std::string::npos);
    CHECK(complaint("mxfp4:scales=even").find("did you mean 'scale'") != std::string::npos);
    CHECK(complaint("mxfp4:scale=evn").find("did you mean 'even'") != std::string::npos);
    CHECK(complaint("mxfp4:round=rtn").find("did you mean 'rtne'") != std::string::npos);
    CHECK(complaint("mxfp4:scale").find("not key=value") != std::string::npos);
    CHECK(complaint("mxfp4:").find("not key=value") != std::string::npos);
    CHECK(complaint("mxfp4:scale=even,scale=even").find("given twice") != std::string::npos);
    CHECK(complaint("mxfp4:block=1x1").find("2 to") != std::string::npos);
    CHECK(complaint("mxfp4:block=4096x4096").find("2 to") != std::string::npos);
    CHECK(complaint("mxfp4:block=32").find("rows x columns") != std::string::npos);
    CHECK(complaint("bf16:round=zero").find("takes no keys") != std::string::npos);
    CHECK(complaint("e4m3:scale=even").find("scale=tensor, scale=channel") != std::string::npos);
    CHECK(complaint("e4m3:roud=zero").find("did you mean 'round'") != std::string::npos);
    CHECK_THROWS_WITH(parse_block_recipe("e4m3"), Catch::Matchers::Contains("'mxfp8'"));
    CHECK_THROWS_WITH(parse_block_recipe("bf16"), Catch::Matchers::Contains("no blocks"));
    CHECK(complaint("mxfp4:block=4x4,axis=0").find("tile") != std::string::npos);
    CHECK(complaint("mxfp4:round=stochastic,random_bits=33").find("1 to 32") != std::string::npos);
    CHECK(complaint("mxfp4:round=stochastic,seed=-1").find("integer") != std::string::npos);
    CHECK(complaint("mxfp4:transform=hadamad").find("did you mean 'hadamard'") !=
          std::string::npos);
    CHECK(complaint("mxfp4:transform=hadamard,transform_size=36")
              .find("no Hadamard matrix of that size") != std::string::npos);
    CHECK(complaint("mxfp4:transform_size=x").find("integer") != std::string::npos);
    CHECK(complaint("mxfp4:transform=random-hadamard,transform_seed=-1").find("integer") !=
          std::string::npos);
    CHECK(complaint("mxfp4:scale_format=ue6m2").find("ue4m3") != std::string::npos);
    // Combinations that do not exist are named.
    const std::pair<const char*, const char*> combinations[] = {
        {"nvfp4:scale=floor", "scale=floor: that rule chooses e8m0 scales"},
        {"mxfp4:scale=two-level",
         "scale=two-level: that rule chooses ue4m3 or ue5m3 or ue5m3_inf scales"},
        {"fp8_1x128:scale=single-level", "this recipe has f32 scales"},
        {"nvfp4:dialect=fbgemm", "dialect=fbgemm: it has no scale rule for ue4m3 scales"},
        {"fp8_1x128:dialect=torchao", "dialect=torchao: it has no scale rule for f32 scales"},
        {"nvfp4:offset=fp16", "offset=fp16: only with e8m0 scales"},
        {"nvfp4:element=e4m3,dialect=te", "element=e4m3: dialect te has ue4m3 scales for e2m1"},
        {"fp8_1x128:element=e2m1,dialect=te", "element=e2m1: dialect te has f32 scales for e4m3"},
        {"mxfp4:four_over_six=mse", "four_over_six=mse: only for nvfp4 with scale=two-level"},
        {"nvfp4:scale=single-level,four_over_six=mae", "four_over_six=mae: only for nvfp4"},
        {"nvfp4:dialect=torchao,four_over_six=mse",
         "four_over_six=mse: dialect torchao does not have it"},
        {"nvfp4:dialect=te,four_over_six=abs_max", "dialect te has mse and mae"},
        {"nvfp4:dialect=te,four_over_six=mse,round=stochastic", "with round=rtne only"},
        {"nvfp4:dialect=te,four_over_six=mse,block=32x16", "at most 16 rows"},
        {"nvfp4:dialect=te,four_over_six=mse,outer=given:2", "looks at the tensor's maximum"},
        {"nvfp4:four_over_six=mse,candidates=fp16", "only under dialect te"},
        {"nvfp4:dialect=te,scale_format=ue5m3,four_over_six=mse,candidates=fp16",
         "not with ue5m3 scales"},
        {"nvfp4:four_over_six=mse,bound=65536", "bound=65536: give 256 or 448 with ue4m3 scales"},
        {"nvfp4:dialect=quark", "dialect=quark: it has no scale rule for ue4m3 scales"},
        {"nvfp4:scale_format=ue5m3,dialect=torchao", "it has no scale rule for ue5m3 scales"},
        {"amdfp4:dialect=quark,outer=row", "dialect quark does not have it"},
        {"mxfp4:outer=row", "outer=row: only with scales that are numbers"},
        {"nvfp4:outer=row,block=16x16", "outer=row: blocks lie along rows"},
        {"nvfp4:outer=column", "give tensor, none, row, col, ROWSxCOLS, given:NUMBER"},
        {"nvfp4:outer=col", "outer=col: blocks lie along columns"},
        {"nvfp4:outer=col,axis=0", "outer=col: blocks lie along columns"},
        {"nvfp4:outer=4x24", "outer=4x24: blocks lie in tiles of a whole number of blocks"},
        {"nvfp4:outer=8x32,block=16x16", "in tiles of a whole number of blocks"},
        {"nvfp4:outer=0x32", "outer"},
        {"nvfp4:outer=128x128,axis=flat", "and an axis of its own"},
        {"nvfp4:outer=given:", "outer=given: give a number or a file"},
        {"nvfp4:outer=given:-1", "give a positive float32"},
        {"nvfp4:outer=given:inf", "give a positive float32"},
        {"nvfp4:dialect=modelopt,round=nearest-ties-to-zero", "it has rtne"},
        {"mxfp4:dialect=modelopt,round=rtne", "it has nearest-ties-to-zero"},
    };
    for (const auto& [text, wanted] : combinations) {
        INFO(text << ": " << complaint(text));
        CHECK(complaint(text).find(wanted) != std::string::npos);
    }
}

TEST_CASE("clamp zones are those of the thresholds") {
    const auto zone = [](const char* text) {
        const clamp_zone z = clamp_zone_of(parse_recipe(text));
        return std::pair(z.from, z.to);
    };
    CHECK(zone("mxfp8") == std::pair(1.75, 2.0));
    CHECK(zone("mxfp4") == std::pair(1.5, 2.0));
    CHECK(zone("mxfp6") == std::pair(1.875, 2.0));
    CHECK(zone("mxfp4:scale=even") == std::pair(1.5, 1.75));
    CHECK(zone("mxfp8:scale=even") == std::pair(1.75, 1.9375));
    CHECK(zone("mxfp6:scale=even") == std::pair(1.875, 1.9375));
    // Not all elements that overflow are clamped: below the midpoint between the largest value and
    // the next one, they round to the largest value anyway.
    const auto clamps = [](const char* text) {
        return clamp_zone_of(parse_recipe(text)).clamps_from;
    };
    CHECK(clamps("mxfp4") == 1.75);
    CHECK(clamps("mxfp8") == 1.8125);
    CHECK(clamps("mxfp4:scale=even") == 1.75);
    CHECK(clamp_zone_of(parse_recipe("mxfp4:scale=even")).clamped_share() == 0);
    CHECK(clamps("mxfp4:round=zero") == 2);
    CHECK(clamps("mxfp4:round=away") == 1.75);
    CHECK(zone("mxint8") == std::pair(1.984375, 2.0));
    CHECK(zone("mxint4:int_emax=1") == std::pair(1.0, 2.0));
    for (const char* rule : {"ceil", "rceil"}) {
        CHECK(clamp_zone_of(parse_recipe(std::string("mxfp4:scale=") + rule)).empty());
        CHECK(clamp_zone_of(parse_recipe(std::string("mxfp8_e5m2:scale=") + rule)).empty());
    }
}
