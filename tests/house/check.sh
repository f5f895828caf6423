#!/usr/bin/env bash
# `./dev check` runs this script: house rules, format, lint. A file that passed is linted again only if the file, a
# header that it includes or .clang-tidy has changed.
#
# clang-format and clang-tidy are version 14. Files in format_later.txt are not formatted yet. The list may only shrink
# (tests/house/size_test.py): format a listed file when you next change it, and remove it from the list.
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
