#!/usr/bin/env python3
"""Checks server.json by the rules of the MCP registry, and that the versions of what is published agree.

usage: server.py <top folder of this repository>

The rules are those of the schema 2025-12-11 for what the file uses, and those of the registry for packages of crates.io. Each rule is
also tried on a file that breaks it.
"""
import copy
import json
import pathlib
import re
import sys
import tomllib

SCHEMA = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"
FIELDS = {"$schema", "name", "title", "description", "version", "repository", "packages"}
PACKAGE = {"registryType", "registryBaseUrl", "identifier", "version", "transport", "packageArguments", "environmentVariables"}


def faults(server, crate, readme):
    """Returns every rule that a server.json breaks."""
    name, description, version = (server.get(field, "") for field in ("name", "description", "version"))
    packages = server.get("packages", [])
    rules = [
        ("$schema is another one", server.get("$schema") == SCHEMA),
        ("there is an unknown field", set(server) <= FIELDS),
        ("name is no reverse-DNS name with one slash", re.fullmatch(r"(?=.{3,200}$)[a-zA-Z0-9][a-zA-Z0-9.-]*[a-zA-Z0-9]/[a-zA-Z0-9][a-zA-Z0-9._-]*[a-zA-Z0-9]", name)),
        ("name is not of the repository's owner", name == "io.github." + "/".join(crate["repository"].split("/")[-2:])),
        ("README.md does not name the server", re.search(rf"mcp-name: {re.escape(name)}(?![a-zA-Z0-9._/-])", readme)),
        ("title has not 1 to 100 characters", 1 <= len(server.get("title", "x")) <= 100),
        ("description has not 1 to 100 characters", 1 <= len(description) <= 100),
        ("version is not that of Cargo.toml", version == crate["version"]),
        ("repository is not that of Cargo.toml", server.get("repository") == {"url": crate["repository"], "source": "github"}),
        ("there is not one package", len(packages) == 1),
    ]
    for package in packages:
        arguments, variables = package.get("packageArguments", []), package.get("environmentVariables", [])
        rules += [
            ("a package has an unknown field", set(package) <= PACKAGE),
            ("a package is not the crate", package.get("registryType") == "cargo" and package.get("identifier") == crate["name"]),
            ("a package is not on crates.io", package.get("registryBaseUrl", "https://crates.io") == "https://crates.io"),
            ("a package has another version", package.get("version") == crate["version"]),
            ("a package has another transport", package.get("transport") == {"type": "stdio"}),
            ("a package is not started as `git-handoff mcp`", arguments == [{"type": "positional", "value": "mcp"}]),
            ("a variable has no name or another field", all("name" in one and set(one) <= {"name", "description", "default"} for one in variables)),
        ]
    return [rule for rule, holds in rules if not holds]


def broken(server):
    """Yields copies that each break one rule, and the rule."""
    def changed(place, value):
        other = copy.deepcopy(server)
        at = other
        for step in place[:-1]:
            at = at[step]
        if value is None:
            del at[place[-1]]
        else:
            at[place[-1]] = value
        return other

    yield changed(["$schema"], "https://example.com"), "$schema is another one"
    yield changed(["homepage"], "x"), "there is an unknown field"
    yield changed(["name"], "git-handoff"), "name is no reverse-DNS name with one slash"
    yield changed(["name"], "io.github.other/git-handoff"), "name is not of the repository's owner"
    yield changed(["name"], server["name"][:-1]), "README.md does not name the server"
    yield changed(["title"], ""), "title has not 1 to 100 characters"
    yield changed(["description"], "x" * 101), "description has not 1 to 100 characters"
    yield changed(["description"], None), "description has not 1 to 100 characters"
    yield changed(["version"], "0.0.9"), "version is not that of Cargo.toml"
    yield changed(["repository", "url"], "https://example.com"), "repository is not that of Cargo.toml"
    yield changed(["packages"], []), "there is not one package"
    first = ["packages", 0]
    yield changed([*first, "fileSha256"], "0" * 64), "a package has an unknown field"
    yield changed([*first, "identifier"], "other"), "a package is not the crate"
    yield changed([*first, "registryBaseUrl"], "https://example.com"), "a package is not on crates.io"
    yield changed([*first, "version"], "latest"), "a package has another version"
    yield changed([*first, "transport", "type"], "sse"), "a package has another transport"
    yield changed([*first, "packageArguments"], None), "a package is not started as `git-handoff mcp`"
    yield changed([*first, "environmentVariables", 0, "name"], None), "a variable has no name or another field"


def main():
    top = pathlib.Path(sys.argv[1])
    crate = tomllib.loads((top / "Cargo.toml").read_text())["package"]
    readme = (top / "README.md").read_text()
    server = json.loads((top / "server.json").read_text())
    wrong = [f"server.json: {fault}" for fault in faults(server, crate, readme)]
    tried = list(broken(server))
    wrong += [f"a copy of server.json is not refused: {rule}" for copied, rule in tried if rule not in faults(copied, crate, readme)]
    plugin = json.loads((top / "plugin/.claude-plugin/plugin.json").read_text())
    if plugin["version"] != crate["version"]:
        wrong.append("plugin/.claude-plugin/plugin.json: version is not that of Cargo.toml")
    if wrong:
        sys.exit("\n".join(wrong))
    print(f"server.json: valid; {len(tried)} broken copies are refused")


if __name__ == "__main__":
    main()
