
# Sends the query of a time stamp.
{
	printf 'url = %s\n' "$(quoted "$url")"
	printf '%s\n' 'data-binary = "@request"' 'header = "content-type: application/timestamp-query"' \
		'header = "accept: application/timestamp-reply"'
} | send
