// Patterns choose, rules rename.
#include "tools/keel/choose_tensors.h"

#include <algorithm>
#include <map>
#include <optional>

#include "base/text.h"
#include "ckpt/error_list.h"
#include "ckpt/glob.h"

namespace keel {
namespace {

// One side of a rule: a name, or what stands before and behind the '*'.
struct Side {
  std::string before;
  std::string behind = {};
  bool has_star = false;
};

struct Rule {
  std::string text;
  Side from;
  Side to;
  bool is_used = false;
};

Result<Side> ParseSide(const std::string& rule, const std::string& text) {
  const size_t star = text.find('*');
  if (star == std::string::npos) {
    if (!text.empty()) return Side{text};
    return Error{Code::kInvalid, "rule " + Shown(rule) + ": a name is empty"};
  }
  if (text.find('*', star + 1) == std::string::npos) {
    return Side{text.substr(0, star), text.substr(star + 1), true};
  }
  return Error{Code::kInvalid, "rule " + Shown(rule) + ": a side has more than one '*'"};
}

Result<Rule> ParseRule(const std::string& text) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos) {
    return Error{Code::kInvalid, "rule " + Shown(text) + " is not FROM=TO"};
  }
  Rule rule{text, {}, {}};
  KEEL_TRY_ASSIGN(rule.from, ParseSide(text, text.substr(0, equals)));
  KEEL_TRY_ASSIGN(rule.to, ParseSide(text, text.substr(equals + 1)));
  if (rule.from.has_star || !rule.to.has_star) return rule;
  return Error{Code::kInvalid, "rule " + Shown(text) + ": there is a '*' in TO, but none in FROM"};
}

// The new name, where the rule fits.
std::optional<std::string> Apply(const Rule& rule, const std::string& name) {
  const Side& from = rule.from;
  if (!from.has_star) {
    if (name != from.before) return std::nullopt;
    return rule.to.before;
  }
  const size_t fixed = from.before.size() + from.behind.size();
  if (name.size() < fixed || !name.starts_with(from.before) || !name.ends_with(from.behind)) {
    return std::nullopt;
  }
  if (!rule.to.has_star) return rule.to.before;
  return rule.to.before + name.substr(from.before.size(), name.size() - fixed) + rule.to.behind;
}

std::vector<ChosenTensor> Choose(const std::vector<TensorSpec>& tensors,
                                 const std::vector<std::string>& only, ErrorList* errors) {
  std::vector<ChosenTensor> chosen;
  std::vector<bool> is_used(only.size(), false);
  for (size_t i = 0; i < tensors.size(); ++i) {
    bool is_wanted = only.empty();
    for (size_t p = 0; p < only.size(); ++p) {
      if (!GlobMatches(only[p], tensors[i].name)) continue;
      is_used[p] = is_wanted = true;
    }
    if (is_wanted) chosen.push_back({i, tensors[i]});
  }
  for (size_t p = 0; p < only.size(); ++p) {
    if (!is_used[p]) {
      errors->Add(Code::kInvalid, "pattern " + Shown(only[p]) + " matches no tensor");
    }
  }
  return chosen;
}

void Rename(std::vector<Rule>* rules, std::vector<ChosenTensor>* chosen, ErrorList* errors) {
  std::map<std::string, std::string> old_names;  // by the new ones
  for (ChosenTensor& tensor : *chosen) {
    const std::string old_name = tensor.spec.name;
    for (Rule& rule : *rules) {
      const auto renamed = Apply(rule, old_name);
      if (!renamed.has_value()) continue;
      tensor.spec.name = *renamed;
      rule.is_used = true;
      break;
    }
    const auto [same, is_new] = old_names.emplace(tensor.spec.name, old_name);
    if (is_new) continue;
    errors->Add(Code::kInvalid, Shown(same->second) + " and " + Shown(old_name) +
                                    " would both be called " + Shown(tensor.spec.name));
  }
  for (const Rule& rule : *rules) {
    if (!rule.is_used) {
      errors->Add(Code::kInvalid, "rule " + Shown(rule.text) + " renames no tensor");
    }
  }
}

}  // namespace

void AddChoiceOptions(OptionTable* table) {
  table->Add(Option::List("only", "", "Only tensors whose name matches: * and ? are wildcards")
                 .Placeholder("GLOB"));
  table->Add(Option::List("rename", "",
                          "Rename a tensor, or all that fit a pattern such as 'model.*=*', where "
                          "both * stand for the same text. The first rule that fits counts")
                 .Placeholder("FROM=TO"));
}

Result<std::vector<ChosenTensor>> ChooseTensors(const std::vector<TensorSpec>& tensors,
                                                const Options& options) {
  return ChooseTensors(tensors, options.List("only"), options.List("rename"));
}

Result<std::vector<ChosenTensor>> ChooseTensors(const std::vector<TensorSpec>& tensors,
                                                const std::vector<std::string>& only,
                                                const std::vector<std::string>& renames) {
  ErrorList errors;
  std::vector<Rule> rules;
  for (const std::string& text : renames) {
    auto rule = ParseRule(text);
    if (rule.ok()) {
      rules.push_back(*std::move(rule));
    } else {
      errors.Add(rule.error());
    }
  }
  std::vector<ChosenTensor> chosen = Choose(tensors, only, &errors);
  Rename(&rules, &chosen, &errors);
  KEEL_TRY(errors.ToStatus("choosing tensors"));
  return chosen;
}

std::vector<TensorSpec> SpecsOf(const std::vector<ChosenTensor>& chosen) {
  std::vector<TensorSpec> specs;
  for (const ChosenTensor& tensor : chosen) specs.push_back(tensor.spec);
  return specs;
}

}  // namespace keel
