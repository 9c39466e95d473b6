package pocketflowhttp

import "regexp"

// Errors that name the object that was not found. Clients of these routes compare them with texts
// without the name.
var named = []struct {
	pattern *regexp.Regexp
	plain   string
}{
	{regexp.MustCompile(`no worker for service .*?( with the labels |"|$)`), "no worker$1"},
	{regexp.MustCompile(`fatal error: this member has no function [^"]*`), "fatal error"},
}

// plainError returns an error in the words of these routes.
func plainError(text string) string {
	for _, n := range named {
		text = n.pattern.ReplaceAllString(text, n.plain)
	}
	return text
}
