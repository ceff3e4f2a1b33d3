#!/usr/bin/env bash
# Measures PROGRAM with the code of BASE and with that of the commit that is checked out, and judges the difference.
# Reads PROGRAM, BASE (if it is empty, PULLED and PULLED_INTO), SOURCE, ALLOWED, ROUNDS and BATCH; writes the summary, and
# `folder` and `verdict` as outputs.
set -euo pipefail

refuse() {
  # A line break would end this command of the log and begin another.
  echo "::error::${1//[$'\r\n']/ }"
  echo "verdict=failed" >>"$GITHUB_OUTPUT"
  exit 2
}

if [[ -z $BASE ]]; then
  # On pull_request HEAD is GitHub's merge of the pull request into the base branch of now, which may have more commits than
  # the base that the event names. A merge of the author's own has the pull request's head in no such place. A shallow
  # checkout lacks the parents, but not their names.
  parents=($(git cat-file commit HEAD | sed -n '/^$/q; s/^parent //p'))
  if [[ ${#parents[@]} == 2 && ${parents[1]} == "$PULLED" ]]; then BASE=${parents[0]}; else BASE=$PULLED_INTO; fi
fi
[[ -n $BASE ]] || refuse "There is no base: give the input base, or run on pull_request"
command -v kit >/dev/null || refuse "There is no kit: install steadykit and what the program imports before this action"
file=${PROGRAM%:*}
[[ $BASE != *[:+]* ]] || refuse "The base $BASE is no branch, tag or commit"
[[ -f $file ]] || refuse "The program $file does not exist: give its path in the repository"
# A shallow checkout has one commit, and branches of the remote alone.
commit() { git rev-parse --quiet --verify --end-of-options "$1^{commit}"; }
base=$(commit "$BASE" || commit "origin/$BASE") || {
  git fetch --quiet --no-tags --depth=1 -- origin "$BASE" || refuse \
    "There is no commit $BASE: give a branch, tag or commit, and check out with fetch-depth: 2, or 0 for an older one"
  base=$(commit FETCH_HEAD)
}

work=$(mktemp -d "${RUNNER_TEMP:-/tmp}/steadykit.XXXXXX")
remove_checkouts() {
  for side in base head; do git worktree remove --force "$work/$side" 2>/dev/null || true; done
}
trap remove_checkouts EXIT
git worktree add --quiet --detach "$work/base" "$base"
git worktree add --quiet --detach "$work/head" HEAD
# Outside both: Python looks in the program's own folder first, and both sides would import the same code.
mkdir "$work/program" "$work/out"
cp -- "$file" "$work/program/"
program=$work/program/$(basename -- "$file")${PROGRAM#"$file"}
# The job's PYTHONPATH is the program's. A package `kit` on it is not Steadykit.
more=${PYTHONPATH:+:$PYTHONPATH}
kit --version >/dev/null 2>&1 || unset PYTHONPATH

judged=0
# Where a row is slower, or nearly resolved, it is measured once more into run.confirm.json.
kit run --program "$program" --batch "$BATCH" --rounds "$ROUNDS" --out "$work/out/run.json" --fail-if-slower "$ALLOWED" \
  --variant "base:env=PYTHONPATH=$work/base/$SOURCE$more" \
  --variant "head:env=PYTHONPATH=$work/head/$SOURCE$more" 2>&1 | tee "$work/log" || judged=$?
[[ -f $work/out/run.json ]] || refuse "The run failed with exit code $judged: its last lines above say why"
grep -E '^kit: (slower by|not resolved|not compared|passes|nothing was|failed|[0-9,]+ rows? pass)' "$work/log" >"$work/verdict" || true
kit compare "$work/out/run.json" --format markdown >"$work/table.md" || true
# A cell that failed is not resolved either, but it is no question of noise.
case $judged in
  0) verdict=passed ;;
  1) verdict=slower ;;
  5) verdict=unresolved ;;
  *) verdict=failed judged=4 ;;
esac
{
  echo "<!-- steadykit -->"
  echo "**$verdict**: base ${base:0:12}, head $(git rev-parse --short=12 HEAD), at most $ALLOWED % slower allowed"
  echo
  sed 's/^kit: /- /' "$work/verdict"
  echo
  cat "$work/table.md"
} >"$work/out/summary.md"
cat "$work/out/summary.md" >>"$GITHUB_STEP_SUMMARY"
kit report "$work/out/run.json" --out "$work/out/page.html" || echo "::warning::The page could not be written"
echo "verdict=$verdict" >>"$GITHUB_OUTPUT"
echo "folder=$work/out" >>"$GITHUB_OUTPUT"

case $verdict in
  slower) echo "::error::The head is slower than the base by more than $ALLOWED %, in two runs" ;;
  unresolved)
    echo "::warning::The runner is too noisy to tell whether the head is slower by more than $ALLOWED %"
    judged=0
    ;;
  failed) echo "::error::A side failed, nothing was compared, or both sides loaded the same code" ;;
esac
exit "$judged"
