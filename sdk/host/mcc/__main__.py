"""`python sdk/host/mcc ...`, the host stand-in for the toolkit's compiler driver; see driver.py."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from driver import main  # noqa: E402 (the folder is on the path only now: mcc is run, not installed)

sys.exit(main(sys.argv[1:]))
