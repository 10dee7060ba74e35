// How large and how deep input may be. The program has the same bounds.

export const limits = {
  depth: 127,
  // The limit on weight allows 134,217,728 and 8 for each byte, and a byte weighs less than 128.
  unweighed: 1024 * 1024,
  commit: 32 * 1024 * 1024,
  folder: 32 * 1024 * 1024,
  file: 32 * 1024 * 1024,
  manifest: 16 * 1024 * 1024,
  pipeline: 256 * 1024,
  ruleDocument: 16 * 1024 * 1024,
  path: 4096,
  containers: 131072,
  commas: 1048576,
  // A proof has several entries.
  evidence: { size: 32 * 1024 * 1024, containers: 4 * 131072, commas: 4 * 1048576 },
  chain: 64 * 1024 * 1024,
  pack: 256 * 1024 * 1024,
  packRatio: 1024,
  exceptions: 64,
  pathspecs: 128 * 1024,
  invalidCommits: 100,
};
