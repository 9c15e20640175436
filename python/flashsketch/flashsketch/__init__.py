"""A guard that nothing here imports.

The distribution `flashsketch` on pip's index is a placeholder that has nothing to do with this package.  Installed
after it, it replaces `flashsketch/__init__.py` by `from .flashsketch import sketch` and adds
`flashsketch/flashsketch.py`.  Python prefers this folder to that file, and so the import ends with the reason.
"""

from .._placeholder import REMEDY

raise ImportError(f"the placeholder distribution 'flashsketch' has replaced files of libflashsketch: {REMEDY}")
