// Ctrl-C asks for a clean stop; a second one kills at once.
#pragma once

namespace tg::app {

void catch_interrupts();  // SIGINT and SIGTERM from now on
bool interrupted();

}  // namespace tg::app
