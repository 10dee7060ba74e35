# shellcheck shell=bash
# Installs agents and other npm packages into the folder $clients, for scripts that read this file.
# shellcheck disable=SC2154 # they set $clients

# Installs the npm package of an agent in the version of tests/agents/versions.toml, unless it is there.
npm_install_agent() {
	local name version table
	table=$(sed -n "/^\[$1\]/,/^$/p" "$(dirname "${BASH_SOURCE[0]}")/../../tests/agents/versions.toml")
	name=$(sed -n 's/^package = "npm:\(.*\)"$/\1/p' <<<"$table")
	version=$(sed -n 's/^version = "\(.*\)"$/\1/p' <<<"$table")
	npm_install "$name" "$version"
}

# Installs an npm package, unless this version is there.
npm_install() {
	local name=$1 version=$2 manifest=$clients/node_modules/$1/package.json
	grep -qs "\"version\": \"$version\"" "$manifest" ||
		npm install --prefix "$clients" --silent --no-audit --no-fund "$name@$version" >&2
}
