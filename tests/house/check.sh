#!/usr/bin/env bash
# `./dev check` runs this script: house rules, format, lint. A file that passed is linted again only after it or a
# header that it includes changes.
#
# clang-format and clang-tidy are version 14. Files in format_later.txt are not formatted yet. The list may only shrink
# (tests/house/size_test.py); a file is removed from it when somebody next changes the file.
set -uo pipefail
cd "$(dirname "$0")/../.."
failed=0

echo "== house rules"
python3 -m unittest discover -s tests/house -p '*_test.py' || failed=1

echo "== format"
git ls-files --cached --others --exclude-standard 'src/*.cpp' 'src/*.h' | while read -r file; do [ -f "$file" ] && echo "$file"; done |
  grep -vxF -f tests/house/format_later.txt | xargs clang-format-14 --dry-run -Werror || failed=1

echo "== lint"
tests/house/lint.py || failed=1

[ $failed -eq 0 ] && echo "== all good"
exit $failed
