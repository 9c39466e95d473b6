// Package api is the HTTP server of a member: one shell around several families of routes.
//
// The shell gives every request an id, a log line without payloads, limits of time and size, and an
// access check. It turns errors into statuses (errors.go) and knows the names of states in all
// dialects (words.go). The families, api/v1 and one in each folder of dialect, are thin: they
// decode, call and encode. Where two of them have the same path, the fields of a request decide
// which one serves it (shared.go). /healthz, /readyz and /metrics report the state of this member.
//
// The package promises:
//
// - No page of a foreign site can control a member: Origin and Host are checked.
// - A member that has tokens can be used only with a token.
// - Bodies are bounded.
// - A handler that panics answers 500 and affects no other request.
// - The server never opens a path or URL that a client sends.
// - Payloads never reach logs.
package api
