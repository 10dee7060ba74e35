
# Sends a request to S3, signed with the configured profile or file, else with the environment's
# key, else with the usual file; unsigned if there is no key.
key=${AWS_ACCESS_KEY_ID-} secret=${AWS_SECRET_ACCESS_KEY-} token=${AWS_SESSION_TOKEN-}
# curl does not need them in its environment.
unset AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY AWS_SESSION_TOKEN

# Prints `name=value` for the key in a section of the file on standard input.
section() {
	section=$1 awk '
		function trim(text) { gsub(/^[ \t\r]+|[ \t\r]+$/, "", text); return text }
		{ $0 = trim($0) }
		/^[#;]/ { next }
		/^\[.*\]$/ { inside = trim(substr($0, 2, length($0) - 2)) == ENVIRON["section"]; next }
		inside && (at = index($0, "=")) { print trim(substr($0, 1, at - 1)) "=" trim(substr($0, at + 1)) }
	'
}

if [ -n "$profile$credentials" ] || [ -z "$key" ] || [ -z "$secret" ]; then
	key='' secret='' token=''
	file=${credentials:-${AWS_SHARED_CREDENTIALS_FILE:-${HOME:+$HOME/.aws/credentials}}}
	case $file in
	'~/'*) file=${HOME-}/${file#'~/'} ;;
	esac
	if [ -e "$file" ] || [ -n "$profile$credentials" ]; then
		found=$(section "${profile:-${AWS_PROFILE:-default}}" 2>/dev/null <"$file") ||
			fail credentials "the credentials in $file could not be read"
		while IFS= read -r field; do
			case $field in
			aws_access_key_id=*) key=${field#*=} ;;
			aws_secret_access_key=*) secret=${field#*=} ;;
			aws_session_token=*) token=${field#*=} ;;
			esac
		done <<-END
			$found
		END
		if [ -n "$profile$credentials" ] && { [ -z "$key" ] || [ -z "$secret" ]; }; then
			fail credentials "$file has no access key and secret in its section [${profile:-${AWS_PROFILE:-default}}]"
		fi
	fi
fi
[ -n "$region" ] || region=${AWS_REGION:-${AWS_DEFAULT_REGION:-us-east-1}}
# Amazon's buckets have hosts of their own; others are folders of the endpoint.
if [ -n "$endpoint" ]; then
	url=${endpoint%/}/$bucket/$target
else
	url=https://$bucket.s3.$region.amazonaws.com/$target
fi

header() {
	printf 'header = %s\n' "$(quoted "$1")"
}
{
	printf 'url = %s\n' "$(quoted "$url")"
	if [ -n "$key" ] && [ -n "$secret" ]; then
		printf 'user = %s\n' "$(quoted "$key:$secret")"
		printf 'aws-sigv4 = %s\n' "$(quoted "aws:amz:$region:s3")"
		[ -z "$token" ] || header "x-amz-security-token: $token"
	fi
	header "x-amz-content-sha256: $sha256"
	if [ -n "$until" ]; then
		printf '%s\n' 'request = "PUT"' 'data-binary = "@request"'
		header 'content-type: application/json'
		header "x-amz-checksum-sha256: $checksum"
		header 'x-amz-object-lock-mode: COMPLIANCE'
		header "x-amz-object-lock-retain-until-date: $until"
		header 'x-amz-sdk-checksum-algorithm: SHA256'
	fi
} | send
