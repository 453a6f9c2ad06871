// SPDX-License-Identifier: Apache-2.0
#include "rendezvous/launcher.h"

#include <sys/wait.h>
#include <unistd.h>

#include "base/process_stat.h"
#include "support/catch.h"
#include "support/scoped_environment.h"

using namespace khoro;
using test::ScopedEnvironment;

namespace {

using Variables = LauncherVariables;

const Variables khoro_set = {{"KHORO_RANK", "1"}, {"KHORO_SIZE", "4"}, {"KHORO_KEY_FD", "9"}};
const Variables torch_set = {{"RANK", "2"},        {"WORLD_SIZE", "3"},
                             {"LOCAL_RANK", "2"},  {"LOCAL_WORLD_SIZE", "3"},
                             {"MASTER_ADDR", "h"}, {"MASTER_PORT", "29500"}};
const Variables openmpi_set = {{"OMPI_COMM_WORLD_RANK", "5"},
                               {"OMPI_COMM_WORLD_SIZE", "6"},
                               {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                               {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                               {"PMIX_NAMESPACE", "job@1"}};
const Variables mpich_set = {{"PMI_RANK", "0"}, {"PMI_SIZE", "2"}, {"PMI_FD", "6"}};

Variables operator+(Variables a, const Variables& b) {
  for (const auto& [name, value] : b) a[name] = value;
  return a;
}

/// A process that now has the variables of the first, which it was started with unless `now` says
/// otherwise; its parent has those of the second, and so on.
Ancestry line(std::vector<std::optional<Variables>> started, std::optional<Variables> now = {}) {
  Ancestry ancestry;
  ancestry.variables = now ? *now : started.front().value();
  for (auto& variables : started) {
    const auto process = static_cast<pid_t>(100 - ancestry.line.size());
    ancestry.line.push_back({process, 7, "program", std::move(variables)});
  }
  return ancestry;
}

std::string winner(const LauncherChoice& choice) {
  return choice.chosen() ? std::string(choice.chosen()->row->name) : "none";
}
std::string winner(const Ancestry& ancestry, std::string_view wanted = "auto") {
  return winner(choose_launcher(ancestry, wanted));
}

const LauncherReport& report(const LauncherChoice& choice, std::string_view name) {
  for (const LauncherReport& each : choice.reports)
    if (each.row->name == name) return each;
  FAIL("no launcher is called " << name);
  return choice.reports.front();
}

}  // namespace

TEST_CASE("each launcher is understood alone", "[rendezvous]") {
  struct Case {
    const char* name;
    const Variables& set;
    int rank, size, local_rank, local_size;
  };
  for (const Case& each :
       {Case{"khoro", khoro_set, 1, 4, -1, -1}, Case{"torchrun", torch_set, 2, 3, 2, 3},
        Case{"openmpi", openmpi_set, 5, 6, 1, 2}, Case{"mpich", mpich_set, 0, 2, -1, -1}}) {
    CAPTURE(each.name);
    const LauncherChoice choice = choose_launcher(line({each.set, Variables()}));
    REQUIRE(winner(choice) == each.name);
    CHECK(choice.chosen()->rank == each.rank);
    CHECK(choice.chosen()->size == each.size);
    CHECK(choice.chosen()->local_rank == each.local_rank);
    CHECK(choice.chosen()->local_size == each.local_size);
    CHECK(choice.chosen()->generation == 1u);
    CHECK(choice.chosen()->starter.process == 99);
    CHECK(choice.chosen()->verdict == "wins");
  }
  CHECK(winner(line({Variables()})) == "none");
}

TEST_CASE("the launcher that is nearest to the process wins", "[rendezvous]") {
  const std::vector<Variables> sets = {khoro_set, torch_set, openmpi_set, mpich_set};
  const std::vector<std::string> names = {"khoro", "torchrun", "openmpi", "mpich"};
  for (std::size_t inner = 0; inner < sets.size(); ++inner)
    for (std::size_t outer = 0; outer < sets.size(); ++outer) {
      if (inner == outer) continue;
      CAPTURE(names[inner], names[outer]);
      const Variables both = sets[outer] + sets[inner];
      // A shell between the rank and its launcher, and one between the launchers.
      const LauncherChoice choice =
          choose_launcher(line({both, both, sets[outer], sets[outer], Variables()}));
      CHECK(winner(choice) == names[inner]);
      CHECK(report(choice, names[outer]).verdict == "was set further out");
    }
}

TEST_CASE("a launcher inside one of its own kind is the one that started the rank",
          "[rendezvous]") {
  Variables outer = mpich_set, inner = mpich_set;
  inner["PMI_FD"] = "11";  // the numbers of rank 0 of 2 are those of rank 0 of 2
  const LauncherChoice choice = choose_launcher(line({inner, inner, outer, outer, Variables()}));
  REQUIRE(winner(choice) == "mpich");
  CHECK(choice.chosen()->starter.process == 98);
}

TEST_CASE("what the process set itself is nearest of all", "[rendezvous]") {
  const Variables now = khoro_set + torch_set;
  CHECK(winner(line({khoro_set, Variables()}, now)) == "torchrun");
  Variables changed = now;
  changed["RANK"] = "0";  // a worker that torchrun's child started, and told another rank
  CHECK(winner(line({now, torch_set, Variables()})) == "khoro");
  CHECK(winner(line({now, torch_set, Variables()}, changed)) == "torchrun");
}

TEST_CASE("where nothing can be seen of who set them, the order of the table decides",
          "[rendezvous]") {
  const Variables both = mpich_set + torch_set;
  CHECK(winner(line({both, both})) == "torchrun");
  CHECK(winner(line({both, std::nullopt, mpich_set})) == "torchrun");
  CHECK(winner(line({both + openmpi_set, both, std::nullopt})) == "openmpi");
  CHECK(report(choose_launcher(line({both, both})), "mpich").verdict ==
        "was set as near, and comes later here");
}

TEST_CASE("a launcher that says half of it is ignored, however near", "[rendezvous]") {
  struct Case {
    Variables half;
    const char* name;
    const char* fault;
  };
  for (const Case& each :
       {Case{{{"RANK", "1"}}, "torchrun", "RANK is set and WORLD_SIZE is not"},
        Case{{{"WORLD_SIZE", "2"}}, "torchrun", "WORLD_SIZE is set and RANK is not"},
        Case{{{"RANK", "x"}, {"WORLD_SIZE", "2"}}, "torchrun", "RANK is 'x'"},
        Case{{{"RANK", "1 "}, {"WORLD_SIZE", "2"}}, "torchrun", "RANK is '1 '"},
        Case{{{"RANK", "2"}, {"WORLD_SIZE", "2"}}, "torchrun", "not a number from 0 to 1"},
        Case{{{"RANK", "0"}, {"WORLD_SIZE", "0"}}, "torchrun", "WORLD_SIZE is 0"},
        Case{{{"RANK", ""}, {"WORLD_SIZE", "2"}}, "torchrun", "RANK is ''"},
        Case{{{"RANK", "0"}, {"WORLD_SIZE", "99999999999"}}, "torchrun", "WORLD_SIZE is '9999"},
        Case{{{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"LOCAL_RANK", "?"}}, "torchrun", "LOCAL_RANK"},
        Case{{{"PMI_RANK", "1"}}, "mpich", "PMI_SIZE is not"},
        Case{{{"OMPI_COMM_WORLD_SIZE", "1"}}, "openmpi", "OMPI_COMM_WORLD_RANK is not"},
        Case{{{"KHORO_RANK", "1"}}, "khoro", "KHORO_SIZE is not"}}) {
    CAPTURE(each.name, each.fault);
    const Variables& whole = std::string(each.name) == "openmpi" ? mpich_set : openmpi_set;
    const LauncherChoice alone = choose_launcher(line({each.half, Variables()}));
    CHECK(winner(alone) == "none");
    CHECK(report(alone, each.name).state == LauncherReport::State::incomplete);
    CHECK_THAT(report(alone, each.name).fault, Catch::Contains(each.fault));
    CHECK(winner(line({each.half + whole, whole, Variables()})) != each.name);
    CHECK(winner(line({each.half + whole, whole, Variables()})) != "none");
  }
  // What says nothing is not half of anything.
  const Variables nothing = {{"KHORO_RANK", "-1"}, {"LOCAL_RANK", "0"}, {"MASTER_PORT", "1"}};
  for (const LauncherReport& each : choose_launcher(line({nothing})).reports)
    CHECK(each.state == LauncherReport::State::absent);
}

TEST_CASE("a launcher can be named, and wins if it is complete", "[rendezvous]") {
  const Ancestry nested = line({khoro_set + torch_set, khoro_set, Variables()});
  CHECK(winner(nested, "khoro") == "khoro");
  CHECK(winner(nested, "torchrun") == "torchrun");
  CHECK(winner(nested, "mpich") == "none");
  CHECK_THAT(choose_launcher(nested, "mpich").why, Catch::Contains("KHORO_LAUNCHER is mpich"));
}

TEST_CASE("jobs are told apart, and the ranks of one are not", "[rendezvous]") {
  const auto job = [](const Ancestry& ancestry) {
    const LauncherChoice choice = choose_launcher(ancestry);
    REQUIRE(choice.chosen());
    return choice.chosen()->job();
  };
  // torchrun's by where its store is, whoever started the process.
  Variables other = torch_set;
  other["RANK"] = "0";
  CHECK(job(line({torch_set, Variables()})) == job(line({other, other, other, Variables()})));
  for (const char* name : {"MASTER_PORT", "MASTER_ADDR", "TORCHELASTIC_RUN_ID",
                           "TORCHELASTIC_RESTART_COUNT", "WORLD_SIZE"}) {
    CAPTURE(name);
    other[name] = "4";
    CHECK(job(line({torch_set, Variables()})) != job(line({other, Variables()})));
    other = torch_set;
  }
  other.erase("MASTER_PORT");
  CHECK(job(line({other, Variables()})).empty());
  // mpirun's by who started them: the same process, behind shells or not.
  for (const Variables& set : {mpich_set, openmpi_set}) {
    Ancestry near = line({set, Variables()}), far = line({set, set, Variables()});
    far.line[2].process = near.line[1].process;
    CHECK(job(near) == job(far));
    CHECK_FALSE(job(near).empty());
    far.line[2].started += 1;  // the same number at another time
    CHECK(job(near) != job(far));
    CHECK(job(line({set, set})).empty());
    CHECK(job(line({Variables(), Variables()}, set)).empty());
  }
  Variables spawned = openmpi_set;
  spawned["PMIX_NAMESPACE"] = "job@2";
  CHECK(job(line({openmpi_set, Variables()})) != job(line({spawned, Variables()})));
  // The descriptor that a rank of MPICH has is its own.
  Variables rank_1 = mpich_set;
  rank_1["PMI_FD"] = "8";
  CHECK(job(line({mpich_set, Variables()})) == job(line({rank_1, Variables()})));
}

TEST_CASE("this process sees who started it and what it has set itself", "[rendezvous]") {
  const Ancestry before = Ancestry::of_this_process();
  REQUIRE(before.line.size() >= 2);
  CHECK(before.line[0].process == ::getpid());
  CHECK(before.line[1].process == ::getppid());
  CHECK(before.line[0].started == stat_of(::getpid())->started);
  REQUIRE(before.line[0].variables);
  CHECK_FALSE(before.line[0].variables->contains("OMPI_COMM_WORLD_RANK"));
  const ScopedEnvironment rank("OMPI_COMM_WORLD_RANK", "1"), size("OMPI_COMM_WORLD_SIZE", "2");
  const Ancestry after = Ancestry::of_this_process();
  CHECK(after.variables.at("OMPI_COMM_WORLD_RANK") == "1");
  CHECK(after.line[0].variables == before.line[0].variables);
  const LauncherChoice choice = choose_launcher(after);
  CHECK(report(choice, "openmpi").generation == 0u);
  CHECK(winner(choice) == "openmpi");
}
