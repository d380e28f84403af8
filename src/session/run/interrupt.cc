#include "session/run/interrupt.h"

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <ctime>

#include "base/error.h"

namespace penstock::session {
namespace {

std::atomic<int> caught{0};
static_assert(std::atomic<int>::is_always_lock_free);  // a signal handler may do nothing else
std::atomic<bool> listening{false};
using Handler = void (*)(int);
Handler former_int = SIG_DFL, former_term = SIG_DFL;

double Now() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}
double caught_at = 0;  // written by the first handler only, before it returns

// Calls only what a handler may call.
void Catch(int signal) {
  const int error = errno;
  if (caught.exchange(signal) == 0) {
    caught_at = Now();
    // Ctrl-C ends the reader of a pipe too: the state is to be saved all the same.
    std::signal(SIGPIPE, SIG_IGN);
    constexpr char kText[] = "\npenstock: the run ends after this step; once more ends it at once\n";
    if (write(STDERR_FILENO, kText, sizeof(kText) - 1) < 0) errno = error;  // nobody reads: nothing to do
  } else if (Now() - caught_at > 0.5) {  // sooner it is the same wish, sent to the process and to its group
    std::signal(signal, SIG_DFL);
    std::raise(signal);
  }
  errno = error;
}

// Who started us may want a signal ignored (a shell's background jobs): it stays so.
Handler Listen(int signal) {
  const Handler former = std::signal(signal, Catch);
  if (former == SIG_IGN) std::signal(signal, SIG_IGN);
  return former;
}

}  // namespace

Interrupt::Interrupt() {
  PENSTOCK_CHECK(!listening.exchange(true), "two runs listen for signals");
  caught = 0;
  former_int = Listen(SIGINT);
  former_term = Listen(SIGTERM);
}

Interrupt::~Interrupt() {
  std::signal(SIGINT, former_int);
  std::signal(SIGTERM, former_term);
  listening = false;
}

int Interrupt::signal() const { return caught.load(); }

}  // namespace penstock::session
