// Checks that what package.json names is in the package: node check.mjs PACKAGE
import { accessSync, constants, readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";

const folder = process.argv[2];
const manifest = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
const names = Object.keys(manifest.bin);
for (const path of Object.values(manifest.bin)) accessSync(join(folder, path), constants.X_OK);
for (const path of manifest.man) accessSync(join(folder, path), constants.R_OK);
if (String(manifest.os) !== "linux") throw new Error(`os is ${manifest.os}, and the programs are for Linux`);
const machines = readdirSync(join(folder, "programs"));
if (machines.length !== manifest.cpu.length) throw new Error(`programs for ${machines}, but cpu is ${manifest.cpu}`);
for (const machine of machines) {
	for (const name of names) accessSync(join(folder, "programs", machine, name), constants.X_OK);
}
