#!/usr/bin/env bash
# All tests, and a closing line that counts what was checked: "N passed, M failed, K skipped".
#
# Skipped are tests that need data or programs that are not here: those that are ignored because they need a variable
# that is not set, and those that say so while they run (tests/support/skip.rs).
set -uo pipefail
cd "$(dirname "$0")/.."
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

target=${CARGO_TARGET_DIR:-target}
log=$target/test.log
skips=$target/tmp/skipped.log
mkdir -p "$target/tmp"
rm -f "$skips"

cargo test --workspace --no-fail-fast "$@" 2>&1 | tee "$log"
status=${PIPESTATUS[0]}

# Tests on other people's data, where it is at hand.
if [ -n "${BRECCIA_REFERENCE:-}" ]; then
    names=$(grep -rlE '^ *#\[ignore = "needs BRECCIA_REFERENCE"' tests | sed -E 's#tests/([^/.]+).*#--test \1#' | sort -u)
    # shellcheck disable=SC2086 # a list of arguments
    cargo test --no-fail-fast "$@" $names -- --ignored 2>&1 | tee -a "$log"
    other=${PIPESTATUS[0]}
    [ "$status" -eq 0 ] && status=$other
fi

touch "$skips"
sort -u "$skips" | awk '
    FILENAME == "-" { skipped++; if ($1 == "test") whole++; print "skipped " substr($0, 6); next }
    /^test .* \.\.\. ignored, needs / { sub(/^test /, ""); sub(/ \.\.\. ignored,/, ":"); waits[$1] = $0; next }
    /^test .* \.\.\. (ok|FAILED)/ { delete waits[$2 ":"] }
    /^test result/ {
        gsub(";", "")
        for (k = 1; k <= NF; k++) { if ($k == "passed") passed += $(k-1); if ($k == "failed") failed += $(k-1) }
    }
    END {
        for (name in waits) { skipped++; print "skipped " waits[name] }
        print passed - whole " passed, " failed + 0 " failed, " skipped + 0 " skipped"
    }' - "$log"
exit "$status"
