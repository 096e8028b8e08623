"""The logs of all formats, written anew for each test in the formats' own schemas."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))  # so that tests here can import reader_logs
