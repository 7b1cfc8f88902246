// Loads the plugin as OpenCode does, calls one of its hooks with `input` and `output`
// from standard input, and prints what became of them.
const [file, directory] = process.argv.slice(2);
let text = "";
for await (const chunk of process.stdin) text += chunk;
const { calls } = JSON.parse(text);
const module = await import(file);
const plugins = Object.values(module);
if (plugins.length !== 1) throw new Error("OpenCode calls everything that is exported");
const hooks = await plugins[0]({ directory, client: {}, project: {}, $: null });
const results = [];
for (const { name, input, output } of calls) {
  const kept = output?.args;
  let thrown = null;
  try {
    await hooks[name](input, output);
  } catch (error) {
    thrown = error.message;
  }
  // OpenCode runs the tool with the object that it handed over.
  results.push({ output: kept ? { ...output, args: kept } : output, thrown });
}
console.log(JSON.stringify(results));
