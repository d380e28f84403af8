#include "session/run/interrupt.h"

#include <unistd.h>

#include <atomic>
#include <csignal>

#include "base/error.h"

namespace penstock::session {
namespace {

std::atomic<int> caught{0};
static_assert(std::atomic<int>::is_always_lock_free);  // a signal handler may do nothing else
std::atomic<bool> listening{false};
using Handler = void (*)(int);
Handler former_int = SIG_DFL, former_term = SIG_DFL;

void Catch(int signal) {
  if (caught.exchange(signal) == 0) {
    constexpr char kText[] = "\npenstock: the run ends after this step; once more ends it at once\n";
    // write(2) is what a handler may call; whether anybody reads it does not matter.
    if (write(STDERR_FILENO, kText, sizeof(kText) - 1) < 0) return;
    return;
  }
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

}  // namespace

Interrupt::Interrupt() {
  PENSTOCK_CHECK(!listening.exchange(true), "two runs listen for signals");
  caught = 0;
  former_int = std::signal(SIGINT, Catch);
  former_term = std::signal(SIGTERM, Catch);
}

Interrupt::~Interrupt() {
  std::signal(SIGINT, former_int);
  std::signal(SIGTERM, former_term);
  listening = false;
}

int Interrupt::signal() const { return caught.load(); }

}  // namespace penstock::session
