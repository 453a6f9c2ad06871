// SPDX-License-Identifier: Apache-2.0
// Who may take part: other users, and keys in files.
#include <fcntl.h>
#include <sys/stat.h>

#include <cstdlib>
#include <fstream>

#include "rendezvous/frame.h"
#include "rendezvous/host.h"
#include "support/captured_log.h"
#include "support/catch.h"
#include "support/child.h"

using namespace khoro;
using test::CapturedLog;

namespace {

constexpr uid_t nobody = 65'534;

/// A file in a folder of its own, both gone at the end.
class KeyFile {
 public:
  explicit KeyFile(std::size_t bytes, mode_t mode = 0600) {
    char name[] = "/tmp/khoro-key-XXXXXX";
    if (!::mkdtemp(name)) throw std::runtime_error("mkdtemp failed");
    folder_ = name;
    std::ofstream(path(), std::ios::binary) << std::string(bytes, 'k');
    ::chmod(path().c_str(), mode);
  }
  ~KeyFile() {
    ::unlink(path().c_str());
    ::rmdir(folder_.c_str());
  }
  std::string path() const { return folder_ + "/key"; }
  const std::string& folder() const { return folder_; }
  std::string refusal() const {
    return outcome_of([&] { read_job_key(path()); }).text;
  }

 private:
  std::string folder_;
};

}  // namespace

TEST_CASE("a process of another user is refused with one line before it has said a word",
          "[rendezvous]") {
  if (::geteuid() != 0) {
    WARN("skipped: only root can become another user");
    return;
  }
  UniqueId id = UniqueId::draw();
  CapturedLog log;
  Meeting meeting(id);
  // It holds the key, and says so; the host closes before it looks.
  test::Child stranger([&] {
    if (::setuid(nobody) != 0) return 1;
    Descriptor socket = connect_to(id.socket);
    if (!socket) return 2;
    Hello hello{id.communicator, 0, 0, {}};
    Frame frame = Frame::make(FrameKind::hello, hello);
    send_packet(socket, std::as_bytes(std::span(&frame, 1)));
    pollfd one{socket.number(), POLLIN, 0};
    if (::poll(&one, 1, 20'000) != 1) return 3;
    std::vector<Descriptor> none;
    return receive_packet(socket, std::as_writable_bytes(std::span(&frame, 1)), none, 0) ==
                   PacketStatus::closed
               ? 0
               : 4;
  });
  const Time end = in_seconds(20);
  while (log.lines().empty() && machine().now() < end) {
    pollfd one{meeting.descriptor(), POLLIN, 0};
    ::poll(&one, 1, 100);
    meeting.advance();
  }
  CHECK(stranger.wait() == 0);
  CHECK(log.count("of user 65534: it belongs to another user") == 1);
  CHECK(log.lines().size() == 1);
  CHECK(meeting.present() == 0);
}

TEST_CASE("a meeting that another user serves is not joined", "[rendezvous]") {
  if (::geteuid() != 0) {
    WARN("skipped: only root can become another user");
    return;
  }
  UniqueId id = UniqueId::draw();
  id.host_may_be_late = true;
  test::Child impostor([&] {
    if (::setuid(nobody) != 0) return 1;
    Descriptor listener = listen_on(id.socket);
    pollfd one{listener.number(), POLLIN, 0};
    if (::poll(&one, 1, 20'000) != 1) return 2;
    Accepted accepted = accept_from(listener);
    // The joiner leaves without a word.
    Frame frame;
    std::vector<Descriptor> none;
    pollfd joiner{accepted.socket.number(), POLLIN, 0};
    if (::poll(&joiner, 1, 20'000) != 1) return 3;
    return receive_packet(accepted.socket, std::as_writable_bytes(std::span(&frame, 1)), none, 8) ==
                   PacketStatus::closed
               ? 0
               : 4;
  });
  Outcome outcome = outcome_of([&] { join(id, guest(0, 2), in_seconds(20)); });
  CHECK(outcome.code == Code::invalid_usage);
  CHECK_THAT(outcome.text, Catch::Contains("belongs to user 65534"));
  CHECK(impostor.wait() == 0);
}

TEST_CASE("a job's key comes from a file that nobody else can read", "[rendezvous]") {
  KeyFile file(32), same(32), longer(33), most(4096), read_only(32, 0400);
  CHECK(read_job_key(file.path()) == read_job_key(same.path()));
  CHECK(read_job_key(file.path()) == read_job_key(read_only.path()));
  CHECK(read_job_key(file.path()) != read_job_key(longer.path()));
  CHECK_NOTHROW(read_job_key(most.path()));
}

TEST_CASE("a key file that others may know, or that holds no key, is refused with what to do",
          "[rendezvous]") {
  for (mode_t mode : {0640, 0604, 0620, 0602, 0660, 0644, 0666, 0700, 04600}) {
    KeyFile file(32, mode);
    INFO(file.refusal());
    CHECK_THAT(file.refusal(), Catch::Contains("KHORO_JOB_KEY_FILE is " + file.path()) &&
                                   Catch::Contains("chmod 600"));
  }
  for (std::size_t bytes : {0, 1, 31, 4097, 100'000}) {
    KeyFile file(bytes);
    CHECK_THAT(file.refusal(), Catch::Contains("holds " + std::to_string(bytes) + " bytes"));
  }
  KeyFile file(32);
  auto refusal_of = [](const std::string& path) {
    Outcome outcome = outcome_of([&] { read_job_key(path); });
    CHECK(outcome.code == Code::invalid_argument);
    return outcome.text;
  };
  CHECK_THAT(refusal_of(file.folder()), Catch::Contains("is no file"));
  CHECK_THAT(refusal_of(file.path() + "-not"),
             Catch::Contains("No such file") && Catch::Contains("umask 077"));
  CHECK_THAT(refusal_of("/dev/zero"), Catch::Contains("is no file"));
  const std::string pipe = file.folder() + "/pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  CHECK_THAT(refusal_of(pipe), Catch::Contains("is no file"));  // and does not block
  ::unlink(pipe.c_str());
  if (::geteuid() == 0) {
    REQUIRE(::chown(file.path().c_str(), nobody, nobody) == 0);
    CHECK_THAT(file.refusal(), Catch::Contains("belongs to user 65534 and not to this one (0)"));
  }
}
