#!/usr/bin/env bash
# Installs git handoff for the later steps of the job, as the inputs INSTALL, VERSION, SHA256 and
# RELEASES say. Called by action.yml.
set -euo pipefail

# Ends with a message that the runner shows as an error.
stop() {
	local text=$*
	text=${text//'%'/%25}
	text=${text//$'\r'/%0D}
	printf '::error title=git handoff::%s\n' "${text//$'\n'/%0A}"
	exit 1
}

# Unpacks the archive of a release into a folder after checking its SHA-256.
install_release() {
	local folder=$1 name archive url found
	[[ $VERSION =~ ^[0-9A-Za-z.+-]+$ ]] || stop "the input \`version\` is no version: $VERSION"
	name=git-handoff-$VERSION-$(uname -m)-unknown-linux-musl
	url=$RELEASES/v$VERSION/$name.tar.gz
	[[ $SHA256 =~ ^[0-9a-f]{64}$ ]] ||
		stop "the input \`sha256\` must be the SHA-256 of $name.tar.gz, as in SHA256SUMS beside it"
	archive=$folder/$name.tar.gz
	curl --fail --silent --show-error --location --retry 3 --max-time 300 --output "$archive" -- "$url" ||
		stop "cannot download $url"
	found=$(sha256sum "$archive" | cut -d ' ' -f 1)
	[ "$found" = "$SHA256" ] ||
		stop "$url has the SHA-256 $found, and the input \`sha256\` is $SHA256"
	tar --extract --gzip --file "$archive" --directory "$folder" --strip-components 1
	printf '%s\n' "$folder" >>"$GITHUB_PATH"
}

# Builds the source that has the commit of this action.
install_from_source() {
	local folder=$1
	# In the workspace, a `rust-toolchain.toml` of the pull request would choose the program to run.
	cd "$GITHUB_ACTION_PATH/.."
	command -v cargo >/dev/null || stop "\`install: cargo\` needs Rust 1.89 or newer on the runner"
	cargo install --locked --profile quick --path "$GITHUB_ACTION_PATH/.." --root "$folder"
	printf '%s\n' "$folder/bin" >>"$GITHUB_PATH"
}

[ "$(uname -s)" = Linux ] || stop "git handoff runs on Linux; this runner has $(uname -s)"
folder=$(mktemp -d "$RUNNER_TEMP/git-handoff.XXXXXX")
case $INSTALL in
release) install_release "$folder" ;;
cargo) install_from_source "$folder" ;;
*) stop "the input \`install\` is release, cargo or false, and not $INSTALL" ;;
esac
