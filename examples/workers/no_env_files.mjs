#!/usr/bin/env node
// A worker in Node, without a package: keeps secrets out of .env files.
// The protocol is in docs/how-to/workers.md; try it with
//   hookline test --worker node examples/workers/no_env_files.mjs
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";

console.log = console.error; // standard output is for answers only

function noEnvFiles(event) {
  const { path, file_path } = event.tool_input ?? {};
  if ([path, file_path].some((name) => String(name).endsWith(".env"))) {
    return { decision: "block", reason: "keep secrets out of .env files" };
  }
}

// What a process that was started for this event would do: exit code and output.
function run(event) {
  try {
    const said = noEnvFiles(event);
    return { exit_code: 0, stdout: said ? JSON.stringify(said) : "", stderr: "" };
  } catch (error) {
    return { exit_code: 1, stdout: "", stderr: String(error.stack) };
  }
}

if (process.env.HOOKLINE_WORKER === "1") {
  // As a worker: one line per request, one line per answer.
  createInterface({ input: process.stdin }).on("line", (line) => {
    const { id, input } = JSON.parse(line);
    process.stdout.write(`${JSON.stringify({ id, ...run(input) })}\n`);
  });
} else {
  // As a command: one event, then the end of the input.
  const { exit_code, stdout, stderr } = run(JSON.parse(readFileSync(0, "utf8")));
  process.stdout.write(stdout);
  process.stderr.write(stderr);
  process.exitCode = exit_code;
}
