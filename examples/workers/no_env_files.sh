#!/usr/bin/env bash
# A worker in bash, without jq or Python: keeps secrets out of .env files.
# The protocol is in docs/how-to/workers.md; try it with
#   hookline test --worker bash examples/workers/no_env_files.sh

LC_ALL=C # compare bytes: long lines are faster, and no character is invalid
reason='keep secrets out of .env files'

# Hookline writes ASCII as it is and escapes every quote inside a text, so this finds a
# key with a text that ends in ".env", and never the same characters inside a text.
env_file='"(path|file_path)": ?"([^"\\]|\\.)*\.env"'

blocks() { # whether the JSON in $1 names such a file; the first test is the cheap one
  [[ $1 == *'.env"'* && $1 =~ $env_file ]]
}

# Without HOOKLINE_WORKER it is a command hook: one event, then the end of the input.
if [[ ${HOOKLINE_WORKER-} != 1 ]]; then
  blocks "$(cat)" || exit 0
  echo "$reason" >&2
  exit 2
fi

# As a worker: one line per request, one line per answer.
while IFS= read -r request; do
  [[ $request =~ ^\{\"id\":([0-9]+), ]] || exit 1
  id=${BASH_REMATCH[1]}
  if blocks "$request"; then
    printf '{"id":%s,"exit_code":2,"stdout":"","stderr":"%s"}\n' "$id" "$reason"
  else
    printf '{"id":%s,"exit_code":0,"stdout":"","stderr":""}\n' "$id"
  fi
done
