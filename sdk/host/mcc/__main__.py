"""`python sdk/host/mcc ...`, the host stand-in for the toolkit's compiler driver; see driver.py."""

import sys
from pathlib import Path

# mcc is run from its folder, not installed.
sys.path.insert(0, str(Path(__file__).parent))

from driver import main

sys.exit(main(sys.argv[1:]))
