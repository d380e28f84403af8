// src/session/run/interrupt.h
//
// Ctrl-C (SIGINT) and SIGTERM, which batch systems send before they kill, as a wish that the training loop sees at the
// end of a step: the state is saved and the run ends. A second signal ends the process at once, as if nobody listened.
// At most one object at a time.
#pragma once

namespace penstock::session {

class Interrupt {
 public:
  Interrupt();   // takes both signals over
  ~Interrupt();  // gives them back
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  // The signal that came; 0: none. Any thread.
  int signal() const;
};

}  // namespace penstock::session
