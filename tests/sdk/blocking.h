// For cases about an error that the call itself reports: `TEST_WITH_ENV(name, BLOCKING)`. Where
// work runs later (MUSA_LAUNCH_BLOCKING=0) the same mistake shows in a later call and sticks, as on
// a card.
#pragma once

#define BLOCKING "MUSA_LAUNCH_BLOCKING=1"
