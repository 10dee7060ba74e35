# Common part of the programs that send with curl. Each reads one request, a line of JSON whose
# values are all strings, and prints the answer as curl received it. It writes only to its folder,
# which is empty at first. Secrets reach curl on standard input; no other program sees them.
set -u

# Prints `name=value` for each field of the JSON object on standard input.
fields() {
	awk '{
		line = $0
		while (match(line, /"[A-Za-z0-9-]+":"([^"\\]|\\.)*"/)) {
			field = substr(line, RSTART + 1, RLENGTH - 2)
			line = substr(line, RSTART + RLENGTH)
			at = index(field, "\":\"")
			name = substr(field, 1, at - 1)
			rest = substr(field, at + 3)
			value = ""
			while ((at = index(rest, "\\")) > 0) {
				value = value substr(rest, 1, at - 1) substr(rest, at + 1, 1)
				rest = substr(rest, at + 2)
			}
			print name "=" value rest
		}
	}'
}

# Prints a value of curl's configuration.
quoted() {
	case $1 in
	*[\\\"]*) printf '"%s"\n' "$(printf '%s\n' "$1" | sed 's/[\\"]/\\&/g')" ;;
	*) printf '"%s"\n' "$1" ;;
	esac
}

# Ends with an error: its kind, and a message.
fail() {
	message=$(printf '%s' "$2" | tr -d '\000-\037' | sed 's/[\\"]/\\&/g')
	printf '{"error":"%s","message":"%s"}\n' "$1" "$message"
	exit
}

# Sends what curl's configuration on standard input says, and prints the answer. The limit of size
# for files ends an answer whose length is not announced.
send() {
	: >headers >body
	code=0
	status=$(
		trap '' XFSZ
		ulimit -f "$((limit / 512 + 128))"
		curl -q --silent --show-error --globoff --path-as-is --proto =http,https --config - \
			--max-time "$timeout" --max-filesize "$limit" --dump-header headers --output body \
			--suppress-connect-headers --user-agent git-handoff --write-out '%{http_code}' 2>errors
	) || code=$?
	case $code in
	0) ;;
	23 | 63) fail long '' ;;
	28) fail late '' ;;
	127) fail unreachable 'curl is missing, which sends requests; install it: sudo apt-get install curl' ;;
	*) fail unreachable "$(sed -n '1s/ after [0-9]* ms//;1s/^curl: ([0-9]*) //p' errors)" ;;
	esac
	printf '{"status":"%s","headers":"' "$status"
	base64 <headers | tr -d '\n'
	printf '","body":"'
	base64 <body | tr -d '\n'
	printf '"}\n'
}

bucket='' body='' checksum='' credentials='' endpoint='' limit='' profile='' region='' sha256='' target=''
timeout='' until='' url=''
IFS= read -r request || exit 1
while IFS= read -r field; do
	value=${field#*=}
	case $field in
	body=*) body=$value ;;
	bucket=*) bucket=$value ;;
	checksum=*) checksum=$value ;;
	credentials=*) credentials=$value ;;
	endpoint=*) endpoint=$value ;;
	limit=*) limit=$value ;;
	profile=*) profile=$value ;;
	region=*) region=$value ;;
	sha256=*) sha256=$value ;;
	target=*) target=$value ;;
	timeout=*) timeout=$value ;;
	until=*) until=$value ;;
	url=*) url=$value ;;
	esac
done <<END
$(printf '%s\n' "$request" | fields)
END
printf '%s' "$body" | base64 -d >request
