// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <charconv>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "commands.h"
#include "input.h"
#include "machines.h"
#include "plan.h"
#include "plan/image.h"
#include "plan/proofs.h"
#include "plan/text.h"
#include "table.h"

namespace khoro::tool {
namespace {

struct RankRange {
  int first = 1;
  int last = 64;

  /// "4" or "1..64".
  static RankRange read(const std::string& text) {
    RankRange range;
    const char* const end = text.data() + text.size();
    const auto [after, error] = std::from_chars(text.data(), end, range.first);
    range.last = range.first;
    bool good = error == std::errc{};
    if (good && after != end) {
      const std::size_t dots = static_cast<std::size_t>(after - text.data());
      good = text.compare(dots, 2, "..") == 0;
      if (good) {
        const auto second = std::from_chars(after + 2, end, range.last);
        good = second.ec == std::errc{} && second.ptr == end;
      }
    }
    if (!good || range.first < 1 || range.last > 65536 || range.first > range.last)
      throw Error(Code::invalid_argument,
                  fmt::format("--ranks {}: must be N or FIRST..LAST within 1..65536", text));
    return range;
  }
};

/// What was found, and where: one line, and the place below it.
struct Finding {
  std::string plan;  // its name, or the file's
  int ranks = 0;
  int root = 0;
  bool average = false;
  Machines machines;
  Proofs::Failure failure;

  std::string text() const {
    const VerifyOptions& options = failure.options;
    const Diagnostic& diagnostic = failure.found.diagnostic;
    return fmt::format(
        "{} ranks {}{}{}{} slots {}, {}, messages {}: {}: {}\n{}", plan, ranks, machines.text(),
        root != 0 ? fmt::format(" root {}", root) : "", average ? " average" : "", options.slots,
        options.in_place ? "in place" : "not in place", options.references ? "lent" : "copied",
        name(failure.found.fault), diagnostic.message, place());
  }

  std::string place() const {
    const Diagnostic& diagnostic = failure.found.diagnostic;
    if (diagnostic.place.empty()) return {};
    return fmt::format("    at {}{}\n",
                       diagnostic.line > 0 ? fmt::format("line {}, ", diagnostic.line) : "",
                       diagnostic.place);
  }

  nlohmann::ordered_json json() const {
    const VerifyOptions& options = failure.options;
    return {{"plan", plan},
            {"ranks", ranks},
            {"root", root},
            {"average", average},
            {"groups", machines.sizes},
            {"dealt", machines.dealt},
            {"slots", options.slots},
            {"in_place", options.in_place},
            {"references", options.references},
            {"fault", name(failure.found.fault)},
            {"message", failure.found.diagnostic.message},
            {"line", failure.found.diagnostic.line},
            {"place", failure.found.diagnostic.place}};
  }
};

class Verification {
 public:
  std::vector<std::string> what;
  bool all = false;
  std::string ranks;
  std::vector<int> slots;
  CallOptions call;
  Machines machines;
  Format format = Format::text;

  int run();

 private:
  void prove_algorithm(const Algorithm& algorithm, const Collective& collective,
                       const Machines& machines);
  void prove_variants(const Algorithm& algorithm, int ranks, const Machines& machines);
  void prove_range(const Algorithm& algorithm, const RankRange& range);
  void prove_file(const std::string& path);
  void note(const Plan& plan, const std::string& name, const Machines& machines, Proofs proofs);
  void note_programs(const Plan& plan);
  void print_text(double seconds) const;
  void print_json(double seconds) const;

  int proofs_ = 0;
  std::uint64_t steps_ = 0;
  std::vector<Finding> findings_;
  std::vector<Diagnostic> unreadable_;   // of a file that is no plan
  std::vector<std::uint64_t> programs_;  // hashes by rank, where one plan was asked for
  bool lends_nothing_in_place_ = false;  // a file's plan
};

void Verification::note(const Plan& plan, const std::string& name, const Machines& machines,
                        Proofs proofs) {
  proofs_ += proofs.made;
  steps_ += proofs.steps;
  const Collective& collective = plan.collective;
  for (Proofs::Failure& failure : proofs.failures)
    findings_.push_back({name, collective.ranks, collective.has_root() ? collective.root : 0,
                         collective.average, machines, std::move(failure)});
}

void Verification::note_programs(const Plan& plan) {
  for (int rank = 0; rank < plan.collective.ranks; ++rank)
    programs_.push_back(flatten(plan, rank).hash);
}

void Verification::prove_algorithm(const Algorithm& algorithm, const Collective& collective,
                                   const Machines& machines) {
  const int least = algorithm.least_slots;
  const Topology topology = machines.topology(collective.ranks);
  for (int count : slots.empty() ? std::vector<int>{least, least + 1, 8} : slots) {
    const Plan plan = make_plan(algorithm, collective, topology, Shape{.slots = count});
    note(plan, plan.name(), machines, prove(plan, count));
  }
}

/// Every call that makes a plan of its own: averaging or not, and every root of few ranks, of more
/// the first two and the last.
void Verification::prove_variants(const Algorithm& algorithm, int ranks, const Machines& machines) {
  constexpr int few = 16;
  const Collective plain{algorithm.collective, ranks};
  for (int root = 0; root < (plain.has_root() ? ranks : 1); ++root)
    if (ranks <= few || root < 2 || root == ranks - 1)
      prove_algorithm(algorithm, {algorithm.collective, ranks, root, false}, machines);
  if (plain.reduces()) prove_algorithm(algorithm, {algorithm.collective, ranks, 0, true}, machines);
}

void Verification::prove_range(const Algorithm& algorithm, const RankRange& range) {
  for (int n = range.first; n <= range.last; ++n)
    for (const Machines& each : machines_for(algorithm, n)) prove_variants(algorithm, n, each);
}

void Verification::prove_file(const std::string& path) {
  const std::optional<std::string> text = read_input(path, most_plan_bytes);
  if (!text) throw Error(Code::invalid_argument, fmt::format("{}: cannot be read", path));
  Parsed parsed = parse(*text);
  if (!parsed.plan) {
    unreadable_ = std::move(parsed.diagnostics);
    return;
  }
  for (int count : slots.empty() ? std::vector<int>{Shape{}.slots} : slots)
    note(*parsed.plan, path, {}, admit(*parsed.plan, count));
  lends_nothing_in_place_ = !parsed.plan->lends_in_place;
  note_programs(*parsed.plan);
}

int Verification::run() {
  const auto begin = std::chrono::steady_clock::now();
  if (all == !what.empty() || what.size() > 2)
    throw Error(Code::invalid_argument,
                "plan verify: expected a file, or a collective and an algorithm, or --all");
  if (what.size() == 1) {
    if (!ranks.empty())
      throw Error(Code::invalid_argument, "--ranks: a file says how many ranks its plan has");
    call.refuse("a file says which call its plan is for");
    machines.refuse("a file's plan is made already");
    prove_file(what[0]);
  } else {
    const RankRange range = ranks.empty() ? RankRange{} : RankRange::read(ranks);
    if (all || range.first != range.last) {
      call.refuse("--all and a range of ranks prove roots and averages by themselves");
      machines.refuse("--all and a range of ranks prove many by themselves");
    }
    if (all) {
      for (const Algorithm* algorithm : algorithms()) prove_range(*algorithm, range);
    } else {
      const Algorithm& algorithm = algorithm_named(what[0], what[1]);
      if (range.first == range.last) {
        const Collective collective = call.collective(algorithm.collective, range.first);
        prove_algorithm(algorithm, collective, machines);
        note_programs(make_plan(algorithm, collective, machines.topology(range.first), Shape{}));
      } else {
        prove_range(algorithm, range);
      }
    }
  }
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
  format == Format::json ? print_json(taken.count()) : print_text(taken.count());
  return findings_.empty() && unreadable_.empty() ? succeeded : found_something;
}

void Verification::print_text(double seconds) const {
  for (const Diagnostic& diagnostic : unreadable_)
    fmt::print("{}:{}: {}{}\n", what[0], diagnostic.line, diagnostic.message,
               diagnostic.place.empty() ? "" : "\n    " + diagnostic.place);
  if (!unreadable_.empty()) return;
  constexpr std::size_t most = 20;
  for (std::size_t i = 0; i < std::min(findings_.size(), most); ++i)
    fmt::print("{}", findings_[i].text());
  if (findings_.size() > most) fmt::print("... and {} more\n", findings_.size() - most);
  fmt::print("{} proofs, {} failed, {} steps in {:.2f} s\n", proofs_, findings_.size(), steps_,
             seconds);
  if (lends_nothing_in_place_)
    fmt::print("calls in place lend nothing: with lent messages they could not end\n");
  for (std::size_t rank = 0; rank < programs_.size(); ++rank)
    fmt::print("rank {} program {:016x}\n", rank, programs_[rank]);
}

void Verification::print_json(double seconds) const {
  nlohmann::ordered_json all_of_it = {
      {"version", 1}, {"proofs", proofs_}, {"steps", steps_}, {"seconds", seconds}};
  all_of_it["unreadable"] = nlohmann::ordered_json::array();
  for (const Diagnostic& diagnostic : unreadable_)
    all_of_it["unreadable"].push_back(
        {{"line", diagnostic.line}, {"message", diagnostic.message}, {"place", diagnostic.place}});
  all_of_it["found"] = nlohmann::ordered_json::array();
  for (const Finding& finding : findings_) all_of_it["found"].push_back(finding.json());
  if (!programs_.empty()) {
    all_of_it["lends_in_place"] = !lends_nothing_in_place_;
    for (std::uint64_t hash : programs_)
      all_of_it["programs"].push_back(fmt::format("{:016x}", hash));
  }
  fmt::print("{}\n", all_of_it.dump(2));
}

}  // namespace

void add_plan_verify(CLI::App& plan, int& status) {
  CLI::App* command = plan.add_subcommand("verify", "Prove plans");
  auto verification = std::make_shared<Verification>();  // lives as long as the command
  command->add_option("what", verification->what, "a file, or a collective and an algorithm")
      ->type_name("FILE | COLLECTIVE ALGORITHM");
  command->add_flag("--all", verification->all, "prove every algorithm");
  command->add_option("--ranks", verification->ranks, "N or FIRST..LAST; 1..64 if left out")
      ->type_name("RANGE");
  command->add_option("--slots", verification->slots, "slots of every channel, one or more numbers")
      ->check(CLI::Range(1, 65536))
      ->delimiter(',')
      ->expected(1, -1)
      ->type_name("N");
  verification->call.add_to(*command);
  verification->machines.add_to(*command);
  add_format(*command, verification->format);
  command->callback([verification, &status] { status = verification->run(); });
}

}  // namespace khoro::tool
