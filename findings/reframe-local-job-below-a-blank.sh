#!/usr/bin/env bash
# ReFrame 4.10's local scheduler cannot start a job whose stage folder has a blank in its name: it splits the path of the
# job's script at the blank and looks for the first part. The same check passes below a folder without one. A path with a
# blank is legal, and ReFrame creates the stage folder in it without a word.
#
# Seen: ReFrame-HPC 4.10.4, Python 3.11, Linux. The run's report says
#   Reason: file not found error: [Errno 2] No such file or directory: '…/a'
set -euo pipefail
version=4.10.4
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/env"
"$work/env/bin/pip" install --quiet --disable-pip-version-check "ReFrame-HPC==$version"

cat >"$work/check.py" <<'PYTHON'
import reframe as rfm
import reframe.utility.sanity as sn


@rfm.simple_test
class Hello(rfm.RunOnlyRegressionTest):
    valid_systems = ["*"]
    valid_prog_environs = ["*"]
    executable = "echo"
    executable_opts = ["hello"]

    @sanity_function
    def said_hello(self):
        return sn.assert_found("hello", self.stdout)
PYTHON

# A folder's name: prints what ReFrame says of the check.
checked() {
  "$work/env/bin/reframe" --nocolor --prefix "$work/$1" --checkpath "$work/check.py" --run 2>&1 || true
}
mkdir "$work/a_b" "$work/a b"
checked a_b | grep --quiet "PASSED" || { echo "changed: the check fails without a blank, too"; exit 1; }
checked "a b" | grep "Reason: .*No such file or directory: '$work/a'" ||
  { echo "changed: a local job below a folder with a blank no longer fails like this"; exit 1; }
echo "as described: ReFrame $version"
