import os  # expect: purpose
